"""Brackets, dates, names and years: values by hand, and what each cell promises."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, datetime, timedelta

import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.dates import Dates, read_date
from circuitdb.ingest.tasks.dyck import Dyck, read_brackets
from circuitdb.ingest.tasks.greater_than import GreaterThan
from circuitdb.ingest.tasks.ioi import Ioi, read_name
from circuitdb.records import Subtask

CLOSES = {"(": ")", "[": "]", "{": "}", "<": ">"}


class TestDyck:
    @pytest.mark.parametrize("subtask", Dyck(range(1, 7), (2, 3, 4)).subtasks(), ids=lambda s: s.name)
    def test_the_answer_closes_what_is_open(self, subtask: Subtask) -> None:
        depth, kinds = subtask.parameters["depth"], subtask.parameters["kinds"]
        for question in Dyck().questions(subtask, 30, seed=0):
            waiting: list[str] = []
            brackets = question.prompt.removeprefix("Open: ").removesuffix(" Close:").split()
            for bracket in brackets:
                if bracket in CLOSES:
                    waiting.append(CLOSES[bracket])
                else:
                    assert waiting.pop() == bracket
            assert " ".join(reversed(waiting)) == question.answer
            assert len(waiting) == depth
            assert len(brackets) == int(depth) + 8
            assert len({bracket for bracket in brackets if bracket in CLOSES}) == kinds

    def test_a_small_cell_gives_all_it_has(self) -> None:
        """Of one open bracket and four pairs: 42 shapes (of 9 steps to 1), and 2^5 - 2 ways to have two kinds."""
        questions = Dyck().questions(Dyck((1,), (2,)).subtasks()[0], 5000, seed=0)
        assert len(questions) == len({q.prompt for q in questions}) == 42 * 30
        assert Counter(q.answer for q in questions) == {")": 630, "]": 630}

    @pytest.mark.parametrize(
        ("text", "answer"), [(" ) ]", ") ]"), ("))]\n(", ") ) ]"), (") ( )", ")"), ("( )", None), ("x )", None)]
    )
    def test_read_answer(self, text: str, answer: str | None) -> None:
        assert read_brackets(text) == answer

    def test_impossible_partitions(self) -> None:
        with pytest.raises(UsageError, match="kinds is a list of numbers from 2 to 4"):
            Dyck((1,), (1,))
        with pytest.raises(UsageError, match="depth is a list of numbers from 1 to 6"):
            Dyck((), (2,))


class TestDates:
    @pytest.mark.parametrize("subtask", Dates(spans=(1, 11, 60)).subtasks(), ids=lambda s: s.name)
    def test_the_answer_is_the_day_so_much_later(self, subtask: Subtask) -> None:
        unit, span = str(subtask.parameters["unit"]), int(subtask.parameters["span"])
        for question in Dates().questions(subtask, 40, seed=0):
            found = re.fullmatch(r"(\d+) (day|week|month)s? after (\d\d \w+ \d{4}) is", question.prompt)
            assert found is not None
            assert (int(found[1]), f"{found[2]}s") == (span, unit)
            first, last = (_date(text) for text in (found[3], question.answer))
            if unit == "months":
                assert last.day == first.day
                assert 12 * (last.year - first.year) + last.month - first.month == span
            else:
                assert last - first == timedelta(**{unit: span})

    def test_by_hand(self) -> None:
        """Over the ends of months and years, and a 29 February, among all questions of a cell."""
        found = {
            q.prompt: q.answer
            for subtask in Dates(spans=(1, 2)).subtasks()
            for q in Dates().questions(subtask, 100_000, seed=0)
        }
        assert len(found) == 6 * 19 * 12 * 70
        assert found["2 weeks after 20 December 1999 is"] == "3 January 2000"
        assert found["1 week after 22 February 2000 is"] == "29 February 2000"
        assert found["1 week after 22 February 1999 is"] == "1 March 1999"
        assert found["1 day after 28 February 2004 is"] == "29 February 2004"
        assert found["2 months after 28 December 1970 is"] == "28 February 1971"

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            (" 4 April 2021", "4 April 2021"), ("04 April 2021.", "4 April 2021"), ("4 Avril 2021", None),
            ("4 April 20215", None), ("April 4", None),
        ],
    )  # fmt: skip
    def test_read_answer(self, text: str, answer: str | None) -> None:
        assert read_date(text) == answer

    def test_impossible_partitions(self) -> None:
        with pytest.raises(UsageError, match="unit is one or more of days,weeks,months"):
            Dates(("years",))
        with pytest.raises(UsageError, match="span is a list of numbers from 1 to 60"):
            Dates(spans=(0,))


class TestIoi:
    @pytest.mark.parametrize("subtask", Ioi(names=(3, 24), places=(1, 8)).subtasks(), ids=lambda s: s.name)
    def test_the_answer_is_the_one_who_does_not_give(self, subtask: Subtask) -> None:
        names, places = set(), set()
        for question in Ioi().questions(subtask, 200, seed=0):
            found = re.fullmatch(r"\w+ (\w+) and (\w+) [\w ]+ the (\w+), (\w+) \w+ the \w+ to", question.prompt)
            assert found is not None
            assert found[1] != found[2]
            assert question.answer == (found[1] if subtask.parameters["order"] == "ABBA" else found[2])
            assert found[4] == (found[2] if subtask.parameters["order"] == "ABBA" else found[1])
            names |= {found[1], found[2]}
            places.add(found[3])
        assert len(names) <= int(subtask.parameters["names"])
        assert len(places) == subtask.parameters["places"]

    def test_names_of_subtasks(self) -> None:
        assert [s.name for s in Ioi(names=(5,), places=(1, 8)).subtasks()] == [
            "ABBA 5 names 1 place", "ABBA 5 names 8 places", "BABA 5 names 1 place", "BABA 5 names 8 places",
        ]  # fmt: skip

    def test_every_question_comes_with_its_exchange_two_places_on(self) -> None:
        questions = Ioi().questions(Ioi().subtasks()[0], 20, seed=0)
        for start in range(0, 20, 4):
            for i in (start, start + 1):
                assert questions[i].answer != questions[i + 2].answer
                swap = {questions[i].answer: questions[i + 2].answer, questions[i + 2].answer: questions[i].answer}
                exchanged = re.sub(r"\w+", lambda word: swap.get(word[0], word[0]), questions[i].prompt)  # noqa: B023
                assert exchanged == questions[i + 2].prompt

    def test_a_small_cell_gives_all_it_has(self) -> None:
        """Two names either way, one place, 8 things, 4 sentences."""
        questions = Ioi().questions(Ioi(("BABA",), (2,), (1,)).subtasks()[0], 1000, seed=0)
        assert len(questions) == len({q.prompt for q in questions}) == 2 * 8 * 4
        assert Counter(q.answer for q in questions) == {"John": 32, "Mary": 32}

    @pytest.mark.parametrize(
        ("text", "answer"), [(" Mary", "Mary"), ("John.", "John"), ("the store", None), ("Mar", None), ("", None)]
    )
    def test_read_answer(self, text: str, answer: str | None) -> None:
        assert read_name(text) == answer

    def test_impossible_partitions(self) -> None:
        with pytest.raises(UsageError, match="order is one or more of ABBA,BABA"):
            Ioi(("ABAB",))
        with pytest.raises(UsageError, match="names is a list of numbers from 2 to 24"):
            Ioi(names=(25,))
        with pytest.raises(UsageError, match="places is a list of numbers from 1 to 8"):
            Ioi(places=(0,))


class TestGreaterThan:
    @pytest.mark.parametrize("subtask", GreaterThan().subtasks(), ids=lambda s: s.name)
    def test_any_later_year_of_the_century_is_right(self, subtask: Subtask) -> None:
        for question in GreaterThan().questions(subtask, 40, seed=0):
            found = re.fullmatch(r"The \w+ lasted from the year (\d\d)(\d\d) to the year (\d\d)", question.prompt)
            assert found is not None
            assert int(found[1]) == int(found[3]) == subtask.parameters["century"]
            right = [text for text in (f"{n:02d}" for n in range(100)) if question.is_right(text)]
            assert right == [f"{n:02d}" for n in range(int(found[2]) + 1, 100)]
            assert question.answer == right[0]
            assert question.solved == question.prompt + question.answer
            assert not any(question.is_right(str(n)) for n in range(10, 21))

    def test_years_that_gpt2_has_as_one_token_are_left_out(self) -> None:
        solved = [
            q.solved for s in GreaterThan((12, 14)).subtasks() for q in GreaterThan().questions(s, 10_000, seed=0)
        ]
        assert len(solved) == 2 * 16 * 75
        assert not [text for text in solved if "1280" in text or "1440" in text]

    @pytest.mark.parametrize(
        ("text", "answer"), [("33", "33"), ("33 .", "33"), ("333", None), ("3", None), ("x", None)]
    )
    def test_read_answer(self, text: str, answer: str | None) -> None:
        assert GreaterThan().read_answer(text) == answer

    def test_impossible_partitions(self) -> None:
        with pytest.raises(UsageError, match="century is a list of numbers from 12 to 17"):
            GreaterThan((20,))


def _date(text: str) -> date:
    return datetime.strptime(text, "%d %B %Y").date()

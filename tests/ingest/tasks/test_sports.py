"""Sports: facts without contradictions, sentences that follow from them, balance, and parts that share nothing."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.sports import Sports, read_verdict, sentences
from circuitdb.ingest.tasks.sports_facts import ACTIONS, ATHLETES

PROMPT = re.compile(r"Is it plausible that (\w+ \w+) (.+)\? Answer:")


def test_the_facts_contradict_each_other_nowhere() -> None:
    assert ATHLETES.keys() == ACTIONS.keys()
    athletes = Counter(athlete for each in ATHLETES.values() for athlete in each)
    actions = Counter(action for each in ACTIONS.values() for action in each)
    assert set(athletes.values()) == set(actions.values()) == {1}
    assert len(athletes) == 56
    assert all(len(athlete.split()) == 2 for athlete in athletes)
    assert all(len(action.split()) == 4 for action in actions)
    # No action names a sport, which would give the answer away.
    assert not [a for a in actions for sport in ATHLETES for word in sport.split() if word in a.split()]


def sport_of(table: dict[str, tuple[str, ...]], what: str) -> str:
    return next(sport for sport, members in table.items() if what in members)


@pytest.mark.parametrize("parts", [None, 3])
def test_answers_follow_from_the_facts_and_are_balanced(parts: int | None) -> None:
    task = Sports(parts=parts)
    for subtask in task.subtasks():
        questions = task.questions(subtask, 31, seed=0)
        assert len(questions) == 31
        assert abs(Counter(q.answer for q in questions)["yes"] - 15.5) == 0.5
        for question in questions:
            found = PROMPT.fullmatch(question.prompt)
            assert found is not None
            sport = sport_of(ATHLETES, found[1])
            assert question.answer == ("yes" if sport == sport_of(ACTIONS, found[2]) else "no")
            assert parts is not None or sport == subtask.parameters["sport"]


def test_sports_are_subtasks() -> None:
    assert [s.name for s in Sports(("golf", "tennis")).subtasks()] == ["golf", "tennis"]
    assert Sports().subtasks()[3].parameters == {"sport": "american football"}


def test_random_parts_share_no_sentence_and_leave_none_out() -> None:
    """8 athletes x 6 actions of 7 sports are plausible: 336 of 56 x 42 sentences, 84 in each of four parts."""
    assert Counter(s.plausible for s in sentences()) == {True: 336, False: 56 * 42 - 336}
    task = Sports(parts=4)
    assert [s.name for s in task.subtasks()] == ["part 1 of 4", "part 2 of 4", "part 3 of 4", "part 4 of 4"]
    plausible = [
        {q.prompt for q in task.questions(s, 10_000, seed=seed) if q.answer == "yes"}
        for seed, s in enumerate(task.subtasks())
    ]
    assert [len(part) for part in plausible] == [84] * 4
    assert len(set().union(*plausible)) == 336
    # The parts are the same whatever the seed of the questions.
    assert plausible[2] == {q.prompt for q in task.questions(task.subtasks()[2], 10_000, seed=9) if q.answer == "yes"}
    implausible = [{q.prompt for q in task.questions(s, 10_000, seed=0) if q.answer == "no"} for s in task.subtasks()]
    assert [len(part) for part in implausible] == [84] * 4
    assert len(set().union(*implausible)) == 336


def test_a_sport_gives_all_that_keeps_the_balance() -> None:
    task = Sports(("golf",))
    questions = task.questions(task.subtasks()[0], 1000, seed=0)
    assert Counter(q.answer for q in questions) == {"yes": 48, "no": 48}


@pytest.mark.parametrize(
    ("text", "answer"), [(" yes", "yes"), ("No, he plays", "no"), ("Yes.", "yes"), ("maybe", None), ("", None)]
)
def test_read_answer(text: str, answer: str | None) -> None:
    assert read_verdict(text) == answer


def test_impossible_partitions() -> None:
    with pytest.raises(UsageError, match="sports is one or more of basketball,soccer"):
        Sports(("curling",))
    with pytest.raises(UsageError, match="parts is a list of numbers from 2 to 20"):
        Sports(parts=1)
    with pytest.raises(UsageError, match="give either parts or sports"):
        Sports.from_options({"sports": "golf", "parts": "3"})
    with pytest.raises(UsageError, match="parts=3-5: name one number of parts"):
        Sports.from_options({"parts": "3-5"})

"""The four operations: operands of so many digits, exact answers, every question of a cell once."""

from __future__ import annotations

import operator
from collections import Counter

import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.arithmetic import Arithmetic
from circuitdb.records import Subtask

APPLY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


def cell(name: str) -> Subtask:
    """The subtask of that name."""
    return next(s for s in Arithmetic(digits=range(1, 9)).subtasks() if s.name == name)


def split(prompt: str) -> tuple[int, str, int]:
    first, sign, second, equals = prompt.split(" ")
    assert equals == "="
    return int(first), sign, int(second)


def test_addition_is_as_it_was() -> None:
    """Circuits that are stored already must be found again: names, parameters, questions."""
    task = Addition((1, 2, 3))
    assert [q.solved for q in task.questions(task.subtasks()[1], 4, 0)] == [
        "7 + 18 = 25", "4 + 18 = 22", "4 + 59 = 63", "8 + 46 = 54",
    ]  # fmt: skip
    assert [q.solved for q in task.questions(task.subtasks()[8], 3, 7)] == [
        "333 + 115 = 448", "254 + 309 = 563", "807 + 166 = 973",
    ]  # fmt: skip
    assert task.subtasks()[5] == Subtask("addition", "2+3", {"digits_a": 2, "digits_b": 3}, task.description)


def test_partition() -> None:
    names = [s.name for s in Arithmetic(digits=(1, 2)).subtasks()]
    assert names == [
        "1+1", "1+2", "2+1", "2+2", "1-1", "2-1", "2-2", "1*1", "1*2", "2*1", "2*2", "1/1", "2/1", "2/2",
    ]  # fmt: skip
    assert len(Arithmetic(digits=range(1, 9)).subtasks()) == 2 * 64 + 2 * 36
    assert cell("4/2").parameters == {"operator": "/", "digits_a": 4, "digits_b": 2}


@pytest.mark.parametrize("subtask", Arithmetic(digits=(1, 3, 8)).subtasks(), ids=lambda s: s.name)
def test_digit_counts_and_answers(subtask: Subtask) -> None:
    for question in Arithmetic().questions(subtask, 40, seed=2):
        first, sign, second = split(question.prompt)
        assert sign == subtask.parameters["operator"]
        assert (len(str(first)), len(str(second))) == (subtask.parameters["digits_a"], subtask.parameters["digits_b"])
        assert int(question.answer) == APPLY[sign](first, second) >= 0
        assert sign != "/" or first % second == 0


# Of 2-2: 90 first numbers, the n-th of them with n second ones. Of 1/1: 9 + 4 + 3 + 2 + 5 by the divisors 1 to 9.
# Of 3/2 the multiples from 100 to 999 of each divisor from 10 to 99, of 2/2 those but the divisor itself, and of 2/1
# those of each divisor from 2 to 9.
SIZES = {
    "1+1": 81,
    "2-2": 90 * 91 // 2,
    "2-1": 810,
    "1*2": 810,
    "1/1": 23,
    "2/1": sum(1 for y in range(2, 10) for x in range(10, 100) if x % y == 0),
    "2/2": sum(1 for y in range(10, 100) for x in range(y + 1, 100) if x % y == 0),
    "3/2": sum(1 for y in range(10, 100) for x in range(100, 1000) if x % y == 0),
    "3/1": sum(1 for y in range(2, 10) for x in range(100, 1000) if x % y == 0),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_small_cell_gives_all_it_has(name: str) -> None:
    found = Arithmetic().questions(cell(name), 10_000, seed=0)
    assert len(found) == len({question.prompt for question in found}) == SIZES[name]


def test_every_pair_of_a_cell_is_as_likely() -> None:
    """Of 2-2, one question each from 1,000 seeds: the mean first number is 2/3, the second 1/3 of the way up."""
    drawn = [split(Arithmetic().questions(cell("2-2"), 1, seed)[0].prompt) for seed in range(1000)]
    assert sum(first for first, _, _ in drawn) / 1000 == pytest.approx(10 + 89 * 2 / 3, abs=2.5)
    assert sum(second for _, _, second in drawn) / 1000 == pytest.approx(10 + 89 / 3, abs=2.5)


def test_divisions_by_one_and_by_itself_are_left_out_but_of_digits() -> None:
    divided = Counter(split(q.prompt)[2] == 1 or q.answer == "1" for q in Arithmetic().questions(cell("1/1"), 99, 0))
    assert divided == {True: 17, False: 6}
    for name in ("2/1", "2/2", "5/1", "6/6"):
        assert not any(
            split(q.prompt)[2] == 1 or q.answer == "1" for q in Arithmetic().questions(cell(name), 200, seed=0)
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operators": ()}, "operators is one or more of"),
        ({"operators": ("%",)}, r"not \['%'\]"),
        ({"digits": ()}, "1 to 8 digits"),
        ({"digits": (9,)}, "1 to 8 digits"),
    ],
)
def test_impossible_partitions(given: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Arithmetic(**given)  # type: ignore[arg-type]


def test_divisors_or_quotients_are_drawn_evenly() -> None:
    """Of 4/1 the divisors 2 to 9, of 4/4 the quotients 2 to 9: 10 each of 80."""
    by_divisor = Counter(split(q.prompt)[2] for q in Arithmetic().questions(cell("4/1"), 80, seed=0))
    by_quotient = Counter(int(q.answer) for q in Arithmetic().questions(cell("4/4"), 80, seed=0))
    assert by_divisor == by_quotient == dict.fromkeys(range(2, 10), 10)

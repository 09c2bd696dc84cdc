"""Worked reasoning is right, step by step, and ends in the answer."""

from __future__ import annotations

import re
import warnings

import pytest

from circuitdb.ingest.tasks import registry, worked
from circuitdb.ingest.tasks.sports_facts import ACTIONS, ATHLETES
from circuitdb.ingest.tasks.task import Question


def value_of(text: str) -> object:
    """What Python makes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value: object = eval(text, {"__builtins__": {}})
    return value


def questions(name: str, options: dict[str, str], n: int = 40) -> list[Question]:
    task = registry.find(name, options)
    return [question for subtask in task.subtasks() for question in task.questions(subtask, n, seed=1)]


@pytest.mark.parametrize(
    ("a", "operator", "b", "text"),
    [
        (93, "+", 971, "3 + 1 = 4, 9 + 7 = 16, 0 + 9 + 1 = 10."),
        (5, "+", 4, "5 + 4 = 9."),
        (122, "-", 97, "12 - 7 = 5, 12 - 9 - 1 = 2, 1 - 0 - 1 = 0."),
        (100, "-", 1, "10 - 1 = 9, 10 - 0 - 1 = 9, 1 - 0 - 1 = 0."),
        (84, "*", 203, "84 * 200 = 16800, 84 * 3 = 252, 16800 + 252 = 17052."),
        (84, "*", 2, "80 * 2 = 160, 4 * 2 = 8, 160 + 8 = 168."),
        (7, "*", 8, "7 * 8 = 56."),
        (672, "/", 96, "96 * 7 = 672."),
        (4872, "/", 12, "12 * 400 = 4800, 12 * 6 = 72, 4800 + 72 = 4872."),
    ],
)
def test_arithmetic_by_hand(a: int, operator: str, b: int, text: str) -> None:
    assert worked.arithmetic(a, operator, b) == text


@pytest.mark.parametrize("name", ["addition", "arithmetic"])
def test_every_step_of_arithmetic_holds_and_they_make_the_answer(name: str) -> None:
    asked = questions(name, {"digits": "1-4,8"})
    assert len(asked) > 900
    for question in asked:
        a, operator, b, _ = question.prompt.split(" ")
        steps = [step.split(" = ") for step in question.reasoning.removesuffix(".").split(", ")]
        assert all(value_of(left) == int(right) for left, right in steps), question
        if operator in "+-":
            # A column each from the ones; a sum's last one has what is carried out of it, too.
            columns = [right for _, right in steps]
            last = columns[-1] if operator == "+" else columns[-1][-1]
            whole = last + "".join(column[-1] for column in reversed(columns[:-1]))
            assert int(whole) == int(question.answer), question
        else:
            assert int(steps[-1][1]) == int(question.answer if operator == "*" else a), question
        if operator == "/":
            products = [left.split(" * ") for left, _ in steps if "*" in left]
            assert {divisor for divisor, _ in products} == {b}
            assert sum(int(place) for _, place in products) == int(question.answer), question


def test_boolean_rewritings_have_one_value_and_get_shorter() -> None:
    asked = [*questions("boolean", {"length": "4-9"}), *questions("boolean", {"length": "9", "depth": "1-6"})]
    assert len(asked) > 800
    for question in asked:
        forms = question.reasoning.removesuffix(".").split(" = ")
        assert forms[0] == question.prompt.removesuffix(" is")
        assert forms[-1] == question.answer
        assert {value_of(form) for form in forms} == {question.answer == "True"}, question
        lengths = [len(form.split()) for form in forms]
        assert lengths == sorted(lengths, reverse=True)
        assert len(set(lengths)) == len(lengths)


def test_what_binds_closest_is_rewritten_first() -> None:
    assert worked.boolean("not True or False and not ( True and False )") == (
        "not True or False and not ( True and False ) = not True or False and not False = False or False and True"
        " = False or False = False."
    )


def test_sports_reasoning_has_the_facts_that_decide() -> None:
    for question in questions("sports", {}):
        found = re.fullmatch(r'(.+) plays (.+), and "(.+)" is part of (.+)\.', question.reasoning)
        assert found is not None
        athlete, sport, action, other = found.groups()
        assert athlete in ATHLETES[sport]
        assert action in ACTIONS[other]
        assert question.prompt == f"Is it plausible that {athlete} {action}? Answer:"
        assert question.answer == ("yes" if sport == other else "no")


@pytest.mark.parametrize(
    ("name", "choices"), [("boolean", {"True", "False"}), ("sports", {"yes", "no"}), ("addition", set())]
)
def test_choices(name: str, choices: set[str]) -> None:
    assert all(set(question.choices) == choices for question in questions(name, {}, 6))


def test_ioi_chooses_between_the_two_who_are_named() -> None:
    for question in questions("ioi", {}, 10):
        assert len(question.choices) == 2
        assert question.answer in question.choices
        assert all(f" {name} " in question.prompt.replace(",", " ") for name in question.choices)

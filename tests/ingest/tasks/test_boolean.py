"""Boolean expressions: the parser against Python's own, the counts against every text there is, the balance."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator

import pytest

from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest.tasks.boolean import Boolean, read_value
from circuitdb.ingest.tasks.expressions import count, evaluate, expression, kind
from circuitdb.records import Subtask


def random_expression(generator: random.Random, depth: int) -> str:
    """Any expression of at most that depth, by a grammar of its own."""
    roll = generator.random()
    if depth == 0 or roll < 0.2:
        return generator.choice(("True", "False"))
    if roll < 0.45:
        return f"not {random_expression(generator, depth - 1)}"
    if roll < 0.6:
        return f"( {random_expression(generator, depth - 1)} )"
    sides = [random_expression(generator, depth - 1) for _ in range(2)]
    return f"{sides[0]} {generator.choice(('and', 'or'))} {sides[1]}"


def python_value(text: str) -> bool:
    """What Python makes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(eval(text, {"__builtins__": {}}))


def test_the_parser_agrees_with_python_on_ten_thousand_expressions() -> None:
    generator = random.Random(0)
    texts = [random_expression(generator, generator.randrange(1, 8)) for _ in range(10_000)]
    assert sum("(" in text for text in texts) > 3000
    assert max(map(len, texts)) > 200
    wrong = [text for text in texts if evaluate(text) != python_value(text)]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ["", "not", "True and", "and True", "True True", "( True", "True )", "()", "true", "not or", "True not"]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(TaskError, match="is no boolean expression"):
        evaluate(text)


def all_texts(operators: tuple[str, ...], length: int, pairs: int, depth: int | None) -> Iterator[str]:
    """Every text of those words that is an expression of all the operators, so many pairs and that depth, if given."""
    for sequence in itertools.product(
        ("True", "False", *operators, *("()" if pairs else ())), repeat=length + 2 * pairs
    ):
        if sequence.count("(") != pairs or sequence.count(")") != pairs or not set(operators) <= set(sequence):
            continue
        heights = list(itertools.accumulate((word == "(") - (word == ")") for word in sequence))
        text = " ".join(sequence)
        if depth is not None and max(heights) != depth:
            continue
        try:
            evaluate(text)
        except TaskError:
            continue
        yield text


@pytest.mark.parametrize(
    ("operators", "length", "pairs", "depth"),
    [
        (("not",), 3, 0, None), (("not",), 3, 2, None), (("not",), 4, 2, 2), (("not", "and"), 4, 0, None),
        (("not", "and"), 5, 0, None), (("not", "and"), 4, 1, 1), (("not", "and"), 4, 1, None),
        (("not", "and", "or"), 6, 0, None), (("not", "and", "or"), 7, 0, None),
    ],
)  # fmt: skip
def test_every_expression_is_counted_once(
    operators: tuple[str, ...], length: int, pairs: int, depth: int | None
) -> None:
    expected = set(all_texts(operators, length, pairs, depth))
    found = []
    for value in (True, False):
        of = kind(operators, length, pairs, value, nested=depth is not None)
        texts = [expression(of, place) for place in range(count(of))]
        assert all(evaluate(text) == value for text in texts)
        found += texts
    assert len(found) == len(expected)
    assert set(found) == expected


def test_the_papers_six_subtasks() -> None:
    found = Boolean().subtasks()
    assert [s.name for s in found] == [
        "not", "not parentheses", "not,and 7", "not,and 7 parentheses", "not,and,or 7", "not,and,or 7 parentheses",
    ]  # fmt: skip
    assert found[0].parameters == {"operators": "not", "parentheses": False}
    assert found[3].parameters == {"operators": "not,and", "length": 7, "parentheses": True}
    deep = Boolean(("not,and",), (5,), ("yes",), (2, 6)).subtasks()
    assert [s.name for s in deep] == ["not,and 5 depth 2", "not,and 5 depth 6"]
    assert deep[1].parameters == {"operators": "not,and", "length": 5, "parentheses": True, "depth": 6}


def test_a_length_without_room_for_all_operators_is_left_out() -> None:
    names = [s.name for s in Boolean(lengths=range(3, 7), parentheses=("no",)).subtasks()]
    assert names == ["not", "not,and 4", "not,and 5", "not,and 6", "not,and,or 6"]


CELLS = [*Boolean(lengths=(6, 9)).subtasks(), *Boolean(lengths=(9,), parentheses=("yes",), depths=(1, 3, 6)).subtasks()]


@pytest.mark.parametrize("subtask", CELLS, ids=lambda s: s.name)
def test_operators_length_depth_and_balance(subtask: Subtask) -> None:
    questions = Boolean().questions(subtask, 13, seed=1)
    n_true = sum(question.answer == "True" for question in questions)
    assert abs(2 * n_true - len(questions)) <= 1
    for question in questions:
        text = question.prompt.removesuffix(" is")
        assert question.answer == str(python_value(text))
        words = text.split()
        assert {w for w in words if w.islower()} == set(str(subtask.parameters["operators"]).split(","))
        assert len([w for w in words if w not in "()"]) == subtask.parameters.get(
            "length", len(words) - words.count("(") * 2
        )
        heights = list(itertools.accumulate((word == "(") - (word == ")") for word in words))
        if "depth" in subtask.parameters:
            assert max(heights) == words.count("(") == subtask.parameters["depth"]
        else:
            assert words.count("(") == (2 if subtask.parameters["parentheses"] else 0)


@pytest.mark.parametrize("folds", [1, 2])
def test_each_fold_has_as_many_of_each_answer(folds: int) -> None:
    for subtask in CELLS:
        questions = Boolean().questions(subtask, 12, seed=0)
        for fold in range(folds):
            answers = [question.answer for question in questions[fold::folds]]
            assert answers.count("True") == answers.count("False")


def test_a_small_cell_gives_all_it_has_as_long_as_it_is_balanced() -> None:
    chains, four = (
        Boolean().questions(subtask, 1000, seed=0) for subtask in Boolean(("not", "not,and"), (4,), ("no",)).subtasks()
    )
    assert {q.prompt for q in chains} == {f"{'not ' * n}{value} is" for n in range(2, 9) for value in ("True", "False")}
    # Of `not a and b` and `a and not b` two are true: both of these, and as many of the six false ones.
    assert [q.answer for q in four].count("True") == 2
    assert len({q.prompt for q in four}) == 4


@pytest.mark.parametrize(
    ("text", "answer"),
    [(" True", "True"), ("False.\nnot", "False"), ("True and", "True"), ("true", None), ("Truely", None), ("", None)],
)
def test_read_answer(text: str, answer: str | None) -> None:
    assert read_value(text) == answer


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operators": ("or",)}, "operators is one or more of not/not,and/not,and,or"),
        ({"operators": ("not,and,or",), "lengths": (3, 5)}, "those of not,and,or begin at a length of 6"),
        ({"lengths": (10,)}, "length is a list of numbers from 3 to 9"),
        ({"lengths": ()}, "length is a list of numbers from 3 to 9"),
        ({"depths": (7,)}, "depth is a list of numbers from 1 to 6"),
        ({"parentheses": ("no",), "depths": (1,)}, "Without parentheses there is no depth"),
        ({"parentheses": ()}, "parentheses is one or more of no,yes"),
    ],
)
def test_impossible_partitions(given: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Boolean(**given)  # type: ignore[arg-type]

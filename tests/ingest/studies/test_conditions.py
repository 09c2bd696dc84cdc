"""What each study ingests, at each size: the paper's partitions, and ways of asking that options allow."""

from __future__ import annotations

import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest.studies.condition import SIZES, Condition
from circuitdb.ingest.studies.registry import STUDIES, find

GRID = {f"{a}+{b}" for a in range(1, 9) for b in range(1, 9)}
EVERY = [(name, size) for name in STUDIES for size in SIZES]


def subtasks(study: str, size: str) -> dict[str, list[str]]:
    """Names of the subtasks of each condition."""
    return {
        condition.name: [subtask.name for subtask in condition.task.subtasks()]
        for condition in find(study).conditions(size)
    }


def test_arithmetic_is_the_grid_of_digit_counts() -> None:
    assert subtasks("arithmetic", "tiny") == {
        "few-shot": ["1+1", "1+2", "1+3", "2+1", "2+2", "2+3", "3+1", "3+2", "3+3"]
    }
    (names,) = subtasks("arithmetic", "paper").values()
    assert len(names) == 64
    assert set(names) == GRID


def test_boolean_has_every_set_of_operators_with_and_without_parentheses() -> None:
    without = ["not", "not,and 8", "not,and 9", "not,and,or 8", "not,and,or 9"]
    (names,) = subtasks("boolean", "tiny").values()
    assert sorted(names) == sorted([*without, *(f"{name} parentheses" for name in without)])
    (names,) = subtasks("boolean", "paper").values()
    assert len(names) == 2 * (1 + 3 + 3)


@pytest.mark.parametrize(
    ("size", "partitions"),
    [("tiny", {"random parts": 4}), ("paper", {"random parts": 5, "by sport": 7})],
)
def test_sports_asks_the_same_with_and_without_reasoning(size: str, partitions: dict[str, int]) -> None:
    conditions = find("sports").conditions(size)
    assert [c.name for c in conditions] == [
        f"{style}, {partition}" for partition in partitions for style in ("few-shot", "chain of thought")
    ]
    for plain, reasoned, n_subtasks in zip(conditions[::2], conditions[1::2], partitions.values(), strict=True):
        assert plain.task == reasoned.task
        assert len(plain.task.subtasks()) == n_subtasks
        assert {**plain.settings, "chain_of_thought": True} == reasoned.settings
        assert [one.options().prompt_style for one in (plain, reasoned)] == ["few-shot", "chain-of-thought"]


@pytest.mark.parametrize(("study", "size"), EVERY)
def test_every_subtask_has_questions_enough(study: str, size: str) -> None:
    for condition in find(study).conditions(size):
        options = condition.options()
        for subtask in condition.task.subtasks():
            asked = condition.task.questions(subtask, options.n_examples + options.shots, options.seed)
            assert len(asked) >= options.shots + 4 * options.folds, subtask.name


@pytest.mark.parametrize(
    ("study", "size", "n_examples", "drawn"),
    [
        ("arithmetic", "tiny", 64, "fixed"),
        ("arithmetic", "paper", 512, "per-example"),
        ("boolean", "tiny", 32, "fixed"),
        ("boolean", "paper", 256, "per-example"),
        ("sports", "tiny", 16, "fixed"),
        ("sports", "paper", 128, "per-example"),
    ],
)
def test_examples_and_shots(study: str, size: str, n_examples: int, drawn: str) -> None:
    for condition in find(study).conditions(size):
        options = condition.options()
        assert (options.n_examples, options.shots, options.shots_drawn) == (n_examples, 3, drawn)


def test_the_users_changes_go_over_the_settings() -> None:
    (condition,) = find("arithmetic").conditions("tiny")
    options = condition.options(n_examples=10, method="eap", metric="logit-difference", seed=7)
    assert (options.n_examples, options.method, options.metric, options.seed) == (10, "eap", "logit-difference", 7)
    assert (options.shots, options.steps) == (3, None)
    assert condition.options() == Condition("again", condition.task, condition.settings).options()
    with pytest.raises(UsageError, match="at least 2, not 1"):
        condition.options(n_examples=1)


def test_unknown_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"There is no study 'sport'; choose one of arithmetic, boolean, sports."):
        find("sport")
    with pytest.raises(UsageError, match=r"There is no size 'huge'; choose one of tiny, paper."):
        find("boolean").conditions("huge")

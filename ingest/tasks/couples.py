"""Questions dealt by couples, so that each finds a partner of another answer in its own fold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from circuitdb.ingest.tasks.task import Question

if TYPE_CHECKING:
    import random


def two_apart(couples: Sequence[tuple[Question, Question]], generator: random.Random) -> list[Question]:
    """The questions of couples of different answers, the two of a couple two places apart.

    Two folds take questions in turn, so that both of a couple fall into one fold, and every fold has as many of each
    answer; so has every beginning of the list but for one.
    """
    found: list[Question] = []
    for start in range(0, len(couples), 2):
        block = [pair if i == 0 else pair[::-1] for i, pair in enumerate(couples[start : start + 2])]
        if generator.random() < 0.5:
            block = [pair[::-1] for pair in block]
        found += chain.from_iterable(zip(*block, strict=True))
    return found

"""What is run of a pair: token ids of the clean and of the corrupted run, and the labels at each scored position.

`last`    the prompts; the metric is taken where the answer's first token is predicted
`answer`  the prompts and the clean answer but for its last token, in both runs; taken where each of its tokens is
`all`     the same over all tokens after the prompt: the answer and the end of its line, where the model is to stop
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from circuitdb.ingest.alignment import EQUAL, LEFT_PAD
from circuitdb.ingest.batch import Group
from circuitdb.ingest.pairs import Pair

POSITIONS = ("last", "answer", "all")
NO_TOKEN = -1


@dataclass(frozen=True)
class Sequences:
    """Token ids of both runs; `labels` [scored, choice]: the answer, then what it is compared with."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    fold: int

    @property
    def padded(self) -> bool:
        """Whether the runs have unequally many tokens, so that one of them stands as if padded."""
        return len(self.clean) != len(self.corrupted)


def sequences(pair: Pair, positions: str, others: Sequence[tuple[int, ...]] | None = None) -> Sequences:
    """What is run of a pair.

    `others`: token ids of the answers that the right one is compared with; by default the corrupted answer. A label is
    `NO_TOKEN` where such an answer has no token, or the right answer's own, or one that another of them has already.
    """
    answer = pair.clean.line_ids if positions == "all" else pair.clean.answer_ids
    n_scored = 1 if positions == "last" else len(answer)
    partner = pair.corrupted.line_ids if positions == "all" else pair.corrupted.answer_ids
    compared = [partner] if others is None else others
    labels = tuple(_different([answer, *compared], at) for at in range(n_scored))
    read = answer[: n_scored - 1]
    return Sequences((*pair.clean.ids, *read), (*pair.corrupted.ids, *read), labels, pair.fold)


def _different(answers: Sequence[tuple[int, ...]], at: int) -> tuple[int, ...]:
    """The token of each answer at a position, each token once."""
    found: list[int] = []
    for answer in answers:
        token = answer[at] if at < len(answer) else NO_TOKEN
        found.append(NO_TOKEN if token in found else token)
    return tuple(found)


def groups(members: Sequence[Sequences]) -> tuple[list[Group], list[int]]:
    """Pairs of one length of either run and number of scored positions together, so that no batch needs padding.

    Returns the groups, and for each of their pairs, in their order, its place in `members`.
    """
    found, places = [], []
    kinds = [(len(s.clean), len(s.corrupted), len(s.labels)) for s in members]
    for kind in sorted(set(kinds)):
        chosen = [i for i, own in enumerate(kinds) if own == kind]
        places += chosen
        found.append(
            Group(
                clean=torch.tensor([members[i].clean for i in chosen]),
                corrupted=torch.tensor([members[i].corrupted for i in chosen]),
                labels=torch.tensor([members[i].labels for i in chosen]),
                fold=torch.tensor([members[i].fold for i in chosen]),
                n_scored=kind[2],
                align=EQUAL if kind[0] == kind[1] else LEFT_PAD,
            )
        )
    return found, places

"""Clean and corrupted partners: another question of the subtask, of equal token length, with another answer.

Every pair is checked by itself. A question without a partner is skipped, and the reason kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from circuitdb.ingest.scoring import Group
from circuitdb.ingest.tokens import TokenisedQuestion


@dataclass(frozen=True)
class Pair:
    """A clean question and its corrupted partner: equal number of tokens, another answer."""

    clean: TokenisedQuestion
    corrupted: TokenisedQuestion


@dataclass(frozen=True)
class Pairing:
    """For each question, in order, its pair, or the reason why it has none."""

    outcomes: tuple[Pair | str, ...]

    @property
    def pairs(self) -> list[Pair]:
        """The pairs alone, in order."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, Pair)]


def pair(questions: Sequence[TokenisedQuestion], *, distinct_first_token: bool) -> Pairing:
    """Give each question the next one after it, around the circle, that can be its partner.

    `distinct_first_token`: the answers must differ in their first token, as the logit difference needs; otherwise a
    partner whose answer does is only preferred.
    """
    outcomes: list[Pair | str] = []
    for index, clean in enumerate(questions):
        others = [*questions[index + 1 :], *questions[:index]]
        equal_length = [other for other in others if len(other.ids) == len(clean.ids)]
        candidates = [other for other in equal_length if other.question.answer != clean.question.answer]
        better = [other for other in candidates if other.answer_ids[0] != clean.answer_ids[0]]
        if better:
            outcomes.append(Pair(clean, better[0]))
        elif candidates and not distinct_first_token:
            outcomes.append(Pair(clean, candidates[0]))
        elif candidates:
            outcomes.append("every question of equal token length has an answer that begins with the same token")
        elif equal_length:
            outcomes.append("every question of equal token length has the same answer")
        else:
            outcomes.append(f"no other question has {len(clean.ids)} tokens")
    return Pairing(tuple(outcomes))


def groups(pairs: Sequence[Pair], folds: Sequence[int]) -> list[Group]:
    """Pairs of one length together, so that no batch needs padding; `folds[i]` is the fold of pair i."""
    found = []
    for length in sorted({len(p.clean.ids) for p in pairs}):
        members = [i for i, p in enumerate(pairs) if len(p.clean.ids) == length]
        found.append(
            Group(
                clean=torch.tensor([pairs[i].clean.ids for i in members]),
                corrupted=torch.tensor([pairs[i].corrupted.ids for i in members]),
                labels=torch.tensor(
                    [(pairs[i].clean.answer_ids[0], pairs[i].corrupted.answer_ids[0]) for i in members]
                ),
                fold=torch.tensor([folds[i] for i in members]),
            )
        )
    return found

"""Clean and corrupted partners: another question of the subtask, of equal token length, with another answer.

Questions are dealt into folds first and paired within their fold, so that folds have no question in common and their
correlation is that of independent samples. Within a fold every question is a partner at most once: no single prompt
weighs more than another. Every pair is checked by itself; a question without a partner is skipped, and the reason kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from circuitdb.ingest.scoring import Group
from circuitdb.ingest.tokens import TokenisedQuestion

# Costs of the matching: an impossible partner is dearer than any number of possible ones.
_POSSIBLE, _SAME_FIRST_TOKEN, _IMPOSSIBLE = 0.0, 1.0, 1e6


@dataclass(frozen=True)
class Pair:
    """A clean question and its corrupted partner: equal number of tokens, another answer; `fold` has both."""

    clean: TokenisedQuestion
    corrupted: TokenisedQuestion
    fold: int


@dataclass(frozen=True)
class Pairing:
    """For each question, in order, its pair, or the reason why it has none."""

    outcomes: tuple[Pair | str, ...]

    @property
    def pairs(self) -> list[Pair]:
        """The pairs alone, in order."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, Pair)]


def pair(questions: Sequence[TokenisedQuestion], *, folds: int, distinct_first_token: bool) -> Pairing:
    """Deal the questions into `folds` folds and match each with a partner, as many as can be.

    `distinct_first_token`: the answers must differ in their first token, as the logit difference needs; otherwise a
    partner whose answer does is only preferred.
    """
    outcomes: list[Pair | str] = [""] * len(questions)
    for fold in range(folds):
        dealt = range(fold, len(questions), folds)
        for length in sorted({len(questions[i].ids) for i in dealt}):
            members = [i for i in dealt if len(questions[i].ids) == length]
            _match(questions, members, fold, outcomes, distinct_first_token=distinct_first_token)
    return Pairing(tuple(outcomes))


def _match(
    questions: Sequence[TokenisedQuestion],
    members: Sequence[int],
    fold: int,
    outcomes: list[Pair | str],
    *,
    distinct_first_token: bool,
) -> None:
    """Pair the questions of one fold and length, each a partner at most once, at the lowest cost."""
    answers = np.array([questions[i].question.answer for i in members])
    first = np.array([questions[i].answer_ids[0] for i in members])
    same_answer = answers[:, None] == answers[None, :]  # a question has its own answer, so it is never its own partner
    same_first = first[:, None] == first[None, :]
    cost = np.where(same_first, _IMPOSSIBLE if distinct_first_token else _SAME_FIRST_TOKEN, _POSSIBLE)
    cost[same_answer] = _IMPOSSIBLE
    for row, column in zip(*linear_sum_assignment(cost), strict=True):
        if cost[row, column] < _IMPOSSIBLE:
            outcomes[members[row]] = Pair(questions[members[row]], questions[members[column]], fold)
        elif len(members) == 1:
            outcomes[members[row]] = f"no other question of its fold has {len(questions[members[row]].ids)} tokens"
        elif bool(same_answer[row].all()):
            outcomes[members[row]] = "every question of its fold and token length has the same answer"
        elif bool((cost[row] == _IMPOSSIBLE).all()):
            outcomes[members[row]] = (
                "every question of its fold and token length has an answer that begins with the same token"
            )
        else:
            outcomes[members[row]] = "every question that could be its partner is another one's"


def groups(pairs: Sequence[Pair]) -> list[Group]:
    """Pairs of one length together, so that no batch needs padding."""
    found = []
    for length in sorted({len(p.clean.ids) for p in pairs}):
        members = [p for p in pairs if len(p.clean.ids) == length]
        found.append(
            Group(
                clean=torch.tensor([p.clean.ids for p in members]),
                corrupted=torch.tensor([p.corrupted.ids for p in members]),
                labels=torch.tensor([(p.clean.answer_ids[0], p.corrupted.answer_ids[0]) for p in members]),
                fold=torch.tensor([p.fold for p in members]),
            )
        )
    return found

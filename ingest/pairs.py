"""Clean and corrupted partners: another question of the subtask, of equal token length, with another answer.

With the alignment `left-pad` any length will do: as many questions as can be get a partner, as many of these as can be
one of equal length, and the others partners of the least difference in all.

Questions are dealt into folds first and paired within their fold, so that folds have no question in common and their
correlation is that of independent samples. Within a fold every question is a partner at most once: no single prompt
weighs more than another. Every pair is checked by itself; a question without a partner is skipped, and the reason kept.

Where the task gives the corrupted prompt, that one is the partner, and the folds are dealt over the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from circuitdb.ingest.alignment import EQUAL, LEFT_PAD
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import TokenisedQuestion

# Costs of the matching: an impossible partner is dearer than any number of possible ones.
_POSSIBLE, _SAME_FIRST_TOKEN, _IMPOSSIBLE = 0.0, 1.0, 1e6


@dataclass(frozen=True)
class Pair:
    """A clean question and its corrupted partner with another answer; `fold` has both."""

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


def pair(questions: Sequence[TokenisedQuestion], *, folds: int, compared: int, align: str = EQUAL) -> Pairing:
    """Deal the questions into `folds` folds and match each with a partner, as many as can be.

    `compared`: of how many of their first tokens the answers must differ in one, as a difference of answers needs; with
    0 a partner whose answer differs in its first token is only preferred.
    """
    outcomes: list[Pair | str] = [""] * len(questions)
    for fold in range(folds):
        dealt = range(fold, len(questions), folds)
        if align == LEFT_PAD and len(dealt):
            _match(questions, dealt, fold, outcomes, compared, align)
            continue
        for length in sorted({len(questions[i].ids) for i in dealt}):
            members = [i for i in dealt if len(questions[i].ids) == length]
            _match(questions, members, fold, outcomes, compared, align)
    return Pairing(tuple(outcomes))


def pair_given(
    questions: Sequence[TokenisedQuestion],
    partners: Sequence[TokenisedQuestion],
    *,
    folds: int,
    compared: int,
    shots: Sequence[Question] = (),
    align: str = EQUAL,
) -> Pairing:
    """Deal the questions that can be a pair with the partner that their task gives into `folds` folds.

    `compared` as in `pair`. A question whose partner is one of the `shots` is skipped: they would give the answer away
    in one of the runs alone.
    """
    solved = {shot.prompt for shot in shots}
    outcomes: list[Pair | str] = []
    n_pairs = 0
    for clean, corrupted in zip(questions, partners, strict=True):
        reason = _refusal(clean, corrupted, compared, solved, align)
        outcomes.append(reason or Pair(clean, corrupted, n_pairs % folds))
        n_pairs += reason is None
    return Pairing(tuple(outcomes))


def _refusal(
    clean: TokenisedQuestion, corrupted: TokenisedQuestion, compared: int, solved: set[str], align: str
) -> str | None:
    """Why a question and the partner that is given can't be a pair."""
    reason = None
    if corrupted.question.prompt in solved:
        reason = "its corrupted prompt stands among the shots"
    elif align == EQUAL and len(clean.ids) != len(corrupted.ids):
        reason = f"its clean prompt has {len(clean.ids)} tokens and its corrupted one {len(corrupted.ids)}"
    elif compared and not corrupted.answer_ids:
        reason = "it has no corrupted answer that the answer could be compared with"
    elif compared and bool(_same([clean.answer_ids, corrupted.answer_ids], compared)[0, 1]):
        reason = (
            "its answer and its corrupted answer begin with the same token"
            if compared == 1
            else ("its answer and its corrupted answer do not differ in a token")
        )
    return None if reason is None else clean.question.told(reason)


def _match(
    questions: Sequence[TokenisedQuestion],
    members: Sequence[int],
    fold: int,
    outcomes: list[Pair | str],
    compared: int,
    align: str,
) -> None:
    """Pair questions of one fold, of one length if they must, each a partner at most once, at the lowest cost."""
    where = "of its fold and token length" if align == EQUAL else "of its fold"
    answers = np.array([questions[i].question.answer for i in members])
    same_answer = answers[:, None] == answers[None, :]  # a question has its own answer, so it is never its own partner
    tokens = [questions[i].answer_ids for i in members]
    cost = np.where(_same(tokens, max(1, compared)), _IMPOSSIBLE if compared else _SAME_FIRST_TOKEN, _POSSIBLE)
    cost[same_answer] = _IMPOSSIBLE
    possible = cost < _IMPOSSIBLE
    cost = _with_lengths(cost, possible, np.array([len(questions[i].ids) for i in members]))
    for row, column in zip(*linear_sum_assignment(cost), strict=True):
        if possible[row, column]:
            outcomes[members[row]] = Pair(questions[members[row]], questions[members[column]], fold)
        elif len(members) == 1:
            n_tokens = len(questions[members[row]].ids)
            outcomes[members[row]] = (
                f"no other question of its fold has {n_tokens} tokens"
                if align == EQUAL
                else "its fold has no other question"
            )
        elif bool(same_answer[row].all()):
            outcomes[members[row]] = f"every question {where} has the same answer"
        elif not bool(possible[row].any()):
            outcomes[members[row]] = (
                f"every question {where} has an answer that begins with the same token"
                if compared == 1
                else f"no question {where} has an answer that differs in a token"
            )
        else:
            outcomes[members[row]] = "every question that could be its partner is another one's"


def _with_lengths(
    cost: npt.NDArray[np.float64], possible: npt.NDArray[np.bool_], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Costs in which one partner of another length weighs more than all differences of length, these than all else."""
    n, gaps = len(lengths), np.abs(lengths[:, None] - lengths[None, :])
    token = n * _SAME_FIRST_TOKEN + 1
    unequal = token * (n * gaps.max() + 1)
    whole: npt.NDArray[np.float64] = cost + token * gaps + unequal * (gaps > 0)
    whole[~possible] = max(_IMPOSSIBLE, (n + 1) * whole[possible].max(initial=0))
    return whole


def _same(answers: Sequence[tuple[int, ...]], compared: int) -> npt.NDArray[np.bool_]:
    """[n, n]: whether two answers agree in their first tokens, as far as both have them."""
    width = min(compared, max(map(len, answers)))
    table = np.array([[*answer[:width], *[-1] * (width - len(answer[:width]))] for answer in answers])
    first, second = table[:, None], table[None, :]
    same: npt.NDArray[np.bool_] = ((first == second) | (first < 0) | (second < 0)).all(-1)
    return same

"""Addition by digit counts: which of them go together, and does the order of the operands matter?"""

from __future__ import annotations

from circuitdb.ingest.studies.condition import PAPER, TINY, Condition, Study
from circuitdb.ingest.tasks.addition import MAX_DIGITS, Addition

# The released scripts of the paper ask after three solved questions.
_SHOTS = 3


def _tiny() -> tuple[Condition, ...]:
    # 1 to 3 digits: the smallest grid with all that the paper finds (equal counts, one apart, first or second heavy).
    # 64 examples: SmolLM2's median reliability is about 0.3 then, so that corrected similarities can be told; half of
    # the two minutes is spent on reading the answers.
    return (Condition("few-shot", Addition((1, 2, 3)), {"shots": _SHOTS, "n_examples": 64}),)


def _paper() -> tuple[Condition, ...]:
    # 1 to 8 digits of both operands: the paper's 64 subtasks. 512 examples: on SmolLM2 64 give circuits a reliability
    # of 0.33 to 0.41, so that by Spearman-Brown 512 give 0.79 to 0.85; `1+1` has no more than 81 questions.
    digits = tuple(range(1, MAX_DIGITS + 1))
    return (
        Condition("few-shot", Addition(digits), {"shots": _SHOTS, "shots_drawn": "per-example", "n_examples": 512}),
    )


STUDY = Study(
    "arithmetic",
    "Do additions of different digit counts share a circuit, and is a + b like b + a?",
    {TINY: _tiny, PAPER: _paper},
)

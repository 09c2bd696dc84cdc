"""Boolean expressions by operators: do parentheses change the circuit, and the accuracy?"""

from __future__ import annotations

from circuitdb.ingest.studies.condition import PAPER, TINY, Condition, Study
from circuitdb.ingest.tasks.boolean import Boolean

# The released scripts of the paper ask after three solved questions.
_SHOTS = 3


def _tiny() -> tuple[Condition, ...]:
    # All three sets of operators with and without parentheses, at two lengths, so that a condition has circuits to
    # compare with each other; of 8 and 9 words, for without parentheses {not, and} has 22 expressions of 7 and fewer of
    # less. 32 examples: on SmolLM2 they give reliabilities around 0.35, the least to correct a similarity by.
    return (Condition("few-shot", Boolean(lengths=(8, 9)), {"shots": _SHOTS, "n_examples": 32}),)


def _paper() -> tuple[Condition, ...]:
    # Around the paper's length of 7 all sets of operators have expressions. 256 examples: by Spearman-Brown 0.35 at 32
    # is 0.81 at 256; cells with fewer expressions give all they have.
    return (
        Condition(
            "few-shot",
            Boolean(lengths=(7, 8, 9)),
            {"shots": _SHOTS, "shots_drawn": "per-example", "n_examples": 256},
        ),
    )


STUDY = Study(
    "boolean",
    "Do parentheses change the circuit of a boolean expression, and how often it is right?",
    {TINY: _tiny, PAPER: _paper},
)

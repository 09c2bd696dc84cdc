"""Sports understanding: does thinking aloud make the circuits of a task more alike?"""

from __future__ import annotations

from typing import Unpack

from circuitdb.ingest.studies.condition import PAPER, TINY, Condition, Settings, Study
from circuitdb.ingest.tasks.sports import Sports

# The released scripts of the paper ask after three solved questions.
_SHOTS = 3


def _conditions(parts: int, **more: Unpack[Settings]) -> tuple[Condition, ...]:
    """Few-shot and chain of thought, each in random parts (as the paper has it) and by sport (a real partition)."""
    # Scored over all that is written, as in the paper: of the reasoning too, so that partners need to agree in the
    # length of the question alone; and of both, so that the two conditions differ in nothing but the reasoning.
    few: Settings = {"shots": _SHOTS, "positions": "all", **more}
    thinking: Settings = {**few, "chain_of_thought": True}
    return (
        Condition("few-shot, random parts", Sports(parts=parts), few),
        Condition("chain of thought, random parts", Sports(parts=parts), thinking),
        Condition("few-shot, by sport", Sports(), few),
        Condition("chain of thought, by sport", Sports(), thinking),
    )


def _tiny() -> tuple[Condition, ...]:
    # 4 parts: the fewest that have 6 pairs to compare. 16 examples and 40 tokens of reasoning (the worked shots have
    # 30): writing and scoring it takes ten times as long as an answer alone.
    return _conditions(4, n_examples=16, reasoning_tokens=40)


def _paper() -> tuple[Condition, ...]:
    # 5 parts, and shots that are drawn anew for each question, as in the released scripts. 128 examples: nearly all
    # questions there are, for a part has 134 whose verdicts are balanced, and a sport 96.
    return _conditions(5, n_examples=128, shots_drawn="per-example")


STUDY = Study(
    "sports",
    "Does chain of thought make the circuits of sports understanding more alike, and the answers better?",
    {TINY: _tiny, PAPER: _paper},
)

"""Sports understanding: does thinking aloud make the circuits of a task more alike?"""

from __future__ import annotations

from circuitdb.ingest.studies.condition import PAPER, TINY, Condition, Settings, Study
from circuitdb.ingest.tasks.sports import Sports

# The released scripts of the paper ask after three solved questions.
_SHOTS = 3


def _conditions(task: Sports, partition: str, settings: Settings) -> tuple[Condition, ...]:
    """Few-shot and chain of thought on one partition."""
    # Scored over all that is written, as in the paper: of the reasoning too, so that partners need to agree in the
    # length of the question alone; and of both, so that the two conditions differ in nothing but the reasoning.
    few: Settings = {"shots": _SHOTS, "positions": "all", **settings}
    thinking: Settings = {**few, "chain_of_thought": True}
    return (
        Condition(f"few-shot, {partition}", task, few),
        Condition(f"chain of thought, {partition}", task, thinking),
    )


def _tiny() -> tuple[Condition, ...]:
    # 4 random parts, as the paper has them: the fewest that have 6 pairs to compare. 16 examples and 40 tokens of
    # reasoning (the worked shots have 30): writing and scoring it takes five times as long as an answer alone.
    return _conditions(Sports(parts=4), "random parts", {"n_examples": 16, "reasoning_tokens": 40})


def _paper() -> tuple[Condition, ...]:
    # 5 parts, and shots that are drawn anew for each question, as in the released scripts. By sport, too: random parts
    # are no subtasks. 128 examples: nearly all questions there are, for a part has 134 whose verdicts are balanced, and
    # a sport 96.
    settings: Settings = {"n_examples": 128, "shots_drawn": "per-example"}
    return (
        *_conditions(Sports(parts=5), "random parts", settings),
        *_conditions(Sports(), "by sport", settings),
    )


STUDY = Study(
    "sports",
    "Does chain of thought make the circuits of sports understanding more alike, and the answers better?",
    {TINY: _tiny, PAPER: _paper},
)

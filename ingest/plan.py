"""What an ingest has to do: the pairs and the spec of every subtask, before any pass of the model."""

from __future__ import annotations

from dataclasses import dataclass

from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest import metrics, path
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.pairs import Pairing, pair
from circuitdb.ingest.prompts import prompt_set
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import TokenisedQuestion, tokenise
from circuitdb.records import Json, Subtask, digest

# Raised when the meaning of a score changes, so that circuits of the old meaning are not taken for the new.
SCORE_VERSION = 1


@dataclass(frozen=True)
class Options:
    """How circuits are scored: method and metric, and how many examples they are scored on.

    Raises UsageError for options that can't be.
    """

    method: str = "eap-ig"
    steps: int | None = 5
    grid: str | None = "right"
    metric: str = "kl"
    shots: int = 3
    n_examples: int = 16
    folds: int = 2
    seed: int = 0
    batch_size: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("examples", self.n_examples, 2),
            ("shots", self.shots, 0),
            ("folds", self.folds, 1),
        ):
            if value < least:
                raise UsageError(f"The number of {name} must be at least {least}, not {value}.")
        if 2 * self.folds > self.n_examples:
            raise UsageError(
                f"{self.n_examples} examples can't be split into {self.folds} folds with at least a pair in each."
            )
        if not -(2**63) <= self.seed < 2**63:
            raise UsageError(f"The seed must be a 64-bit whole number, not {self.seed}.")
        if self.batch_size is not None and self.batch_size < 1:
            raise UsageError(f"A batch needs at least one pair, not {self.batch_size}.")
        path.points(self.method, self.steps, self.grid, metrics.find(self.metric))


@dataclass(frozen=True)
class Job:
    """One circuit to score: its questions, how they were paired, and its spec."""

    subtask: Subtask
    questions: tuple[TokenisedQuestion, ...]
    pairing: Pairing
    spec: dict[str, Json]

    @property
    def spec_digest(self) -> str:
        """The key under which the store knows it."""
        return digest(self.spec)


def plan(model: LoadedModel, task: Task, subtask: Subtask, options: Options) -> Job:
    """Draw, tokenise and pair a subtask's questions. Raises TaskError if nothing can be scored."""
    drawn = prompt_set(task, subtask, n_examples=options.n_examples, shots=options.shots, seed=options.seed)
    questions = tuple(tokenise(model, drawn.header, question) for question in drawn.questions)
    longest = max(len(question.ids) for question in questions)
    if longest > model.n_context:
        raise TaskError(
            f"{task.name} {subtask.name} has prompts of {longest} tokens, more than the {model.n_context} of "
            f"{model.record.name}'s context: use fewer shots."
        )
    needs_labels = metrics.find(options.metric).needs_labels
    pairing = pair(questions, folds=options.folds, distinct_first_token=needs_labels)
    n_filled = len({p.fold for p in pairing.pairs})
    if n_filled < options.folds:
        reasons = sorted({outcome for outcome in pairing.outcomes if isinstance(outcome, str)})
        raise TaskError(
            f"{task.name} {subtask.name} has pairs to score in {n_filled} of {options.folds} folds"
            f"{': ' + '; '.join(reasons) if reasons else ''}; use more examples or fewer folds."
        )
    return Job(subtask, questions, pairing, _spec(model, task, subtask, pairing, options))


def _spec(model: LoadedModel, task: Task, subtask: Subtask, pairing: Pairing, options: Options) -> dict[str, Json]:
    """All that decides the scores; not device and batch size, which change them by rounding only."""
    gradient_path = options.method == "eap-ig"
    ids: list[Json] = [
        [list(p.clean.ids), list(p.corrupted.ids), p.clean.answer_ids[0], p.corrupted.answer_ids[0], p.fold]
        for p in pairing.pairs
    ]
    return {
        "score_version": SCORE_VERSION,
        "model": model.record.name,
        "weights": model.record.weights_digest,
        "dtype": str(model.dtype).removeprefix("torch."),
        "task": task.name,
        "subtask": subtask.name,
        "parameters": dict(subtask.parameters),
        "tokens": digest(ids),
        "n_pairs": len(ids),
        "folds": options.folds,
        "method": options.method,
        "steps": options.steps if gradient_path else None,
        "grid": options.grid if gradient_path else None,
        "metric": options.metric,
        "positions": "last",
        "ablation": "patching",
    }

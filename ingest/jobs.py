"""One circuit to score, and the spec by which the store knows it."""

from __future__ import annotations

from dataclasses import dataclass

from circuitdb.errors import TaskError
from circuitdb.ingest import metrics
from circuitdb.ingest.accuracy import Answers, Shots, answers
from circuitdb.ingest.asking import Asking
from circuitdb.ingest.forms import INSTRUCTION, LEAD, Form
from circuitdb.ingest.pairs import Pair, Pairing
from circuitdb.ingest.sequences import Sequences, sequences
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Json, Subtask, digest

# Raised when the meaning of a score changes, so that circuits of the old meaning are not taken for the new.
SCORE_VERSION = 1


@dataclass(frozen=True)
class Job:
    """One circuit to score: its questions, how they were paired, what is run of each pair, and its spec.

    `form` and `shots` are how each was asked. After a chain of thought there is the `reasoning` of each, and what the
    model `answered` where that is part of what is scored.
    """

    subtask: Subtask
    questions: tuple[TokenisedQuestion, ...]
    pairing: Pairing
    sequences: tuple[Sequences, ...]
    spec: dict[str, Json]
    form: Form
    shots: tuple[Shots, ...]
    reasoning: tuple[str, ...] = ()
    answered: Answers | None = None

    @property
    def n_padded(self) -> int:
        """Pairs whose prompts have unequally many tokens."""
        return sum(run.padded for run in self.sequences)

    @property
    def spec_digest(self) -> str:
        """The key under which the store knows it."""
        return digest(self.spec)

    @property
    def most_pairs(self) -> int:
        """How many pairs there are."""
        return len(self.sequences)

    def answers(self) -> Answers:
        """What the model answers. Raises as `circuitdb.ingest.accuracy.answers` does."""
        return self.answered or answers(self.form, self.shots, self.questions, self.reasoning)


def job_of(
    asking: Asking,
    questions: tuple[TokenisedQuestion, ...],
    pairing: Pairing,
    shots: tuple[Shots, ...],
    reasoning: tuple[str, ...] = (),
    spec: dict[str, Json] | None = None,
) -> Job:
    """The job of questions that are paired; its spec is that of what is run, unless it was known before."""
    options = asking.options
    behind = [
        (outcome, own, reasoning[i] if reasoning else "")
        for i, (outcome, own) in enumerate(zip(pairing.outcomes, shots, strict=True))
        if isinstance(outcome, Pair)
    ]
    run = tuple(sequences(p, options.positions, asking.others(own, p.clean, words)) for p, own, words in behind)
    asking.check_runs(run)
    for given in run if options.against else ():
        if all(label < 0 for at in given.labels for label in at[1:]):
            raise TaskError(
                f"{asking.task.name} {asking.subtask.name} has a question whose answer is like every answer of "
                "--against in the scored tokens; name others."
            )
    if spec is None:
        ids: list[Json] = [[list(s.clean), list(s.corrupted), *_labels(s), s.fold] for s in run]
        spec = spec_of(asking, ids, n_pairs=len(ids), padded=any(s.padded for s in run))
    return Job(asking.subtask, questions, pairing, run, spec, asking.form, shots, reasoning)


def spec_of(asking: Asking, ids: list[Json], *, n_pairs: int, padded: bool) -> dict[str, Json]:
    """All that decides the scores; not device and batch size, which change them by rounding only.

    `ids`: the tokens that are run, or with a chain of thought those that the model is asked with; `n_pairs`: how many
    pairs there are, or can be; `padded`: whether some are, or can be, of unequal length.
    """
    options, model = asking.options, asking.form.model
    source = metrics.find(options.metric).source
    own: dict[str, Json] = {} if source is None else {"metric_source": source}
    if options.against:
        own["contrast"] = options.contrast
    if padded:
        own["padding"] = "left"
    if asking.form.chat is not None:
        own["chat_template"] = asking.form.chat.digest
    if options.chain_of_thought:
        own["chain_of_thought"] = {"instruction": INSTRUCTION, "lead": LEAD, "tokens": options.reasoning_tokens}
    return own | {
        "score_version": SCORE_VERSION,
        "model": model.record.name,
        "weights": model.record.weights_digest,
        "dtype": model.dtype_name,
        "task": asking.task.name,
        "subtask": asking.subtask.name,
        "parameters": dict(asking.subtask.parameters),
        "tokens": digest(ids),
        "n_pairs": n_pairs,
        "folds": options.folds,
        "method": options.method,
        "steps": options.steps,
        "grid": options.grid,
        "metric": options.metric,
        "positions": options.positions,
        "ablation": options.ablation,
    }


def _labels(run: Sequences) -> list[Json]:
    """The answer's first token and the corrupted answer's, as circuits have it that score nothing else; else all."""
    if len(run.labels) == 1 and len(run.labels[0]) == 2:
        return list(run.labels[0])
    return [[list(at) for at in run.labels]]

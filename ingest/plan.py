"""What an ingest has to do: the pairs and the spec of every subtask, before any pass of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest import methods, metrics
from circuitdb.ingest.alignment import EQUAL, LEFT_PAD, check_known
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.pairs import Pairing, pair, pair_given
from circuitdb.ingest.prompts import prompt_set
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.sequences import POSITIONS, Sequences, sequences
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import TokenisedQuestion, tokenise, tokenise_corrupted
from circuitdb.records import Json, Subtask, canonical_json, digest

# Raised when the meaning of a score changes, so that circuits of the old meaning are not taken for the new.
SCORE_VERSION = 1
# The answers of all questions are at most so long that comparing more of their tokens is comparing all of them.
_ALL_TOKENS = 10_000
# Of the reasons why questions have no partner, this many are told where that is an error.
_SHOWN_REASONS = 3


@dataclass(frozen=True)
class Options:
    """How circuits are scored: method and metric, and how many examples they are scored on.

    `steps` and `grid` are 5 and `right` for a method that is integrated, and None for any other. `against`: answers
    that the right one is compared with, in the place of the corrupted answer. `by_example`: keep the scores of every
    single example. `align`: `equal`, or `left-pad`, which pairs questions of unequal token length too. Raises
    UsageError for options that can't be.
    """

    method: str = "eap-ig"
    steps: int | None = None
    grid: str | None = None
    metric: str = "kl"
    shots: int = 3
    n_examples: int = 16
    folds: int = 2
    seed: int = 0
    batch_size: int | None = None
    ablation: str = methods.PATCHING
    positions: str = "last"
    against: tuple[str, ...] = ()
    by_example: bool = False
    align: str = EQUAL

    def __post_init__(self) -> None:
        for name, value, least in (
            ("examples", self.n_examples, 2),
            ("shots", self.shots, 0),
            ("folds", self.folds, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"The number of {name} must be a whole number, not {value!r}.")
            if value < least:
                raise UsageError(f"The number of {name} must be at least {least}, not {value}.")
        if 2 * self.folds > self.n_examples:
            raise UsageError(
                f"{self.n_examples} examples can't be split into {self.folds} folds with at least a pair in each."
            )
        if not isinstance(self.seed, int) or not -(2**63) <= self.seed < 2**63:
            raise UsageError(f"The seed must be a 64-bit whole number, not {self.seed}.")
        if self.batch_size is not None and (not isinstance(self.batch_size, int) or self.batch_size < 1):
            raise UsageError(f"A batch needs a whole number of pairs, at least one pair, not {self.batch_size!r}.")
        if self.positions not in POSITIONS:
            raise UsageError(f"There are no positions {self.positions!r}; choose one of {', '.join(POSITIONS)}.")
        metric = metrics.find(self.metric)
        steps, grid = methods.with_defaults(methods.find(self.method), self.steps, self.grid)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "grid", grid)
        methods.points(methods.find(self.method), self.steps, self.grid, metric)
        methods.check_ablation(methods.find(self.method), self.ablation)
        if isinstance(self.against, str) or not all(isinstance(text, str) and text.strip() for text in self.against):
            raise UsageError("The answers to compare with must be a list of texts, none of them empty.")
        object.__setattr__(self, "against", tuple(dict.fromkeys(self.against)))
        if self.against and not metric.needs_contrast:
            raise UsageError(f"The metric {metric.name} compares the answer with nothing; leave --against out.")

        check_known(self.align)
        if self.align == LEFT_PAD and self.ablation == methods.MEAN_POSITIONAL:
            raise UsageError(
                "mean-positional takes its means over prompts of one length, and --align left-pad pairs prompts of "
                "several; use --ablation mean, or --align equal."
            )

    @property
    def contrast(self) -> str | None:
        """What the answer is compared with, as the database says it."""
        if not metrics.find(self.metric).needs_contrast:
            return None
        return canonical_json(list(self.against)) if self.against else "corrupted"

    def scorer(self, model: LoadedModel) -> Scorer:
        """The scorer of these options. Raises UsageError or ModelError as `Scorer` does."""
        return Scorer(
            model,
            method=self.method,
            steps=self.steps,
            grid=self.grid,
            ablation=self.ablation,
            metric=self.metric,
            folds=self.folds,
            by_example=self.by_example,
            batch_size=self.batch_size,
        )


@dataclass(frozen=True)
class Job:
    """One circuit to score: its questions, how they were paired, what is run of each pair, and its spec."""

    subtask: Subtask
    questions: tuple[TokenisedQuestion, ...]
    pairing: Pairing
    sequences: tuple[Sequences, ...]
    spec: dict[str, Json]

    @property
    def n_padded(self) -> int:
        """Pairs whose prompts have unequally many tokens."""
        return sum(run.padded for run in self.sequences)

    @property
    def spec_digest(self) -> str:
        """The key under which the store knows it."""
        return digest(self.spec)


def plan(model: LoadedModel, task: Task, subtask: Subtask, options: Options) -> Job:
    """Draw, tokenise and pair a subtask's questions. Raises TaskError if nothing can be scored."""
    drawn = prompt_set(task, subtask, n_examples=options.n_examples, shots=options.shots, seed=options.seed)
    questions = tuple(tokenise(model, drawn.header, question) for question in drawn.questions)
    read = options.positions != "last"
    brought = [tokenise_corrupted(model, drawn.header, question) for question in drawn.questions]
    longest = max((*questions, *filter(None, brought)), key=lambda question: _length(question, read=read))
    if _length(longest, read=read) > model.n_context:
        raise TaskError(
            longest.question.told(
                f"{task.name} {subtask.name} has prompts of {_length(longest, read=read):,} tokens, more than the "
                f"{model.n_context:,} of {model.record.name}'s context: "
                f"{'use fewer shots' if options.shots else 'make them shorter'}."
            )
        )
    compares = metrics.find(options.metric).needs_contrast and not options.against
    compared = compares * (_ALL_TOKENS if read else 1)
    partners = [partner for partner in brought if partner is not None]
    if len(partners) == len(questions):
        pairing = pair_given(
            questions, partners, folds=options.folds, compared=compared, shots=drawn.shots, align=options.align
        )
    else:
        pairing = pair(questions, folds=options.folds, compared=compared, align=options.align)
    _check_folds(task, subtask, questions, pairing, options.folds)
    others = [_others(model, drawn.header, p.clean, options) for p in pairing.pairs]
    run = tuple(sequences(p, options.positions, o) for p, o in zip(pairing.pairs, others, strict=True))
    for given in run if options.against else ():
        if all(label < 0 for at in given.labels for label in at[1:]):
            raise TaskError(
                f"{task.name} {subtask.name} has a question whose answer is like every answer of --against in the "
                "scored tokens; name others."
            )
    return Job(subtask, questions, pairing, run, _spec(model, task, subtask, run, options))


def _length(question: TokenisedQuestion, *, read: bool) -> int:
    """Tokens of a prompt, and where they are `read` those of the answer and the end of its line."""
    return len(question.ids) + read * len(question.line_ids)


def _check_folds(
    task: Task, subtask: Subtask, questions: tuple[TokenisedQuestion, ...], pairing: Pairing, folds: int
) -> None:
    """Raise TaskError unless every fold has a pair."""
    n_filled = len({p.fold for p in pairing.pairs})
    if n_filled == folds:
        return
    outcomes = sorted(zip(questions, pairing.outcomes, strict=True), key=lambda known: known[0].question.row)
    reasons = list(dict.fromkeys(outcome for _, outcome in outcomes if isinstance(outcome, str)))
    told = "; ".join(reasons[:_SHOWN_REASONS])
    if len(reasons) > _SHOWN_REASONS:
        told += f"; and {len(reasons) - _SHOWN_REASONS} more"
    raise TaskError(
        f"{task.name} {subtask.name} has pairs to score in {n_filled} of {folds} folds"
        f"{': ' + told if told else ''}; use more examples or fewer folds."
    )


def _others(
    model: LoadedModel, header: str, question: TokenisedQuestion, options: Options
) -> list[tuple[int, ...]] | None:
    """Token ids of the answers that the user wants the right one compared with, as they would follow this prompt."""
    if not options.against:
        return None
    asked = question.question
    others = [tokenise(model, header, replace(asked, answer=text, answer_id=None)) for text in options.against]
    return [other.line_ids if options.positions == "all" else other.answer_ids for other in others]


def _spec(
    model: LoadedModel, task: Task, subtask: Subtask, run: tuple[Sequences, ...], options: Options
) -> dict[str, Json]:
    """All that decides the scores; not device and batch size, which change them by rounding only."""
    ids: list[Json] = [[list(s.clean), list(s.corrupted), *_labels(s), s.fold] for s in run]
    source = metrics.find(options.metric).source
    own: dict[str, Json] = {} if source is None else {"metric_source": source}
    if options.against:
        own["contrast"] = options.contrast
    if any(s.padded for s in run):
        own["padding"] = "left"
    return own | {
        "score_version": SCORE_VERSION,
        "model": model.record.name,
        "weights": model.record.weights_digest,
        "dtype": model.dtype_name,
        "task": task.name,
        "subtask": subtask.name,
        "parameters": dict(subtask.parameters),
        "tokens": digest(ids),
        "n_pairs": len(ids),
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

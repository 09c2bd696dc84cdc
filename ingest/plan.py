"""What an ingest has to do: the pairs and the spec of every subtask, before any pass of the model.

With a chain of thought the pairs are known once the model has written its reasoning. The spec is known before: greedy
decoding makes the same of the same prompts, so it has the prompts as far as the reasoning and how that is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from circuitdb.errors import UsageError
from circuitdb.ingest import methods, metrics
from circuitdb.ingest.alignment import EQUAL, LEFT_PAD, check_known
from circuitdb.ingest.asking import Asking
from circuitdb.ingest.chat import chat
from circuitdb.ingest.forms import Form
from circuitdb.ingest.jobs import Job, job_of
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.prompts import FIXED, PER_EXAMPLE, SHOTS_DRAWN, prompt_set
from circuitdb.ingest.reasoning import Draft, draft
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.sequences import POSITIONS
from circuitdb.ingest.tasks.task import Task
from circuitdb.records import Subtask, canonical_json


@dataclass(frozen=True)
class Options:
    """How circuits are scored: method and metric, and how many examples they are scored on.

    `steps` and `grid` are 5 and `right` for a method that is integrated, and None for any other. `against`: answers
    that the right one is compared with, in the place of the corrupted answer. `by_example`: keep the scores of every
    single example. `shots_drawn` is `fixed` or `per-example`. `chain_of_thought`: the model first writes its reasoning,
    of at most `reasoning_tokens` tokens. `chat`: prompts go through the chat template.
    `align`: `equal`, or `left-pad`, which pairs questions of unequal token length too. Raises UsageError for options
    that can't be.
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
    shots_drawn: str = FIXED
    chain_of_thought: bool = False
    reasoning_tokens: int = 64
    chat: bool = False
    align: str = EQUAL

    def __post_init__(self) -> None:
        for name, value, least in (
            ("examples", self.n_examples, 2),
            ("shots", self.shots, 0),
            ("folds", self.folds, 1),
            ("reasoning tokens", self.reasoning_tokens, 1),
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
        if self.shots_drawn not in SHOTS_DRAWN:
            raise UsageError(f"Shots are not drawn {self.shots_drawn!r}; choose one of {', '.join(SHOTS_DRAWN)}.")
        if self.chain_of_thought:
            self._check_reasoned(metric)

    def _check_reasoned(self, metric: metrics.Metric) -> None:
        if self.positions == "all" and metric.needs_contrast:
            raise UsageError(
                f"The metric {metric.name} compares answers, and of a chain of thought --positions all scores the "
                "reasoning too; use --positions answer, or another metric."
            )
        if self.positions != "all" and self.own_shots:
            raise UsageError(
                "Both runs of a pair read the same shots, and with --chain-of-thought partners are found after the "
                "reasoning that shots lead to; use --positions all with shots per-example."
            )

    @property
    def own_shots(self) -> bool:
        """Whether each pair has shots of its own."""
        return self.shots_drawn == PER_EXAMPLE and self.shots > 0

    @property
    def prompt_style(self) -> str:
        """How questions are put, as the database says it."""
        return "chain-of-thought" if self.chain_of_thought else "few-shot" if self.shots else "zero-shot"

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


def plan(model: LoadedModel, task: Task, subtask: Subtask, options: Options) -> Job:
    """Draw, tokenise and pair a subtask's questions; for a chain of thought the model writes its reasoning first.

    Raises TaskError if nothing can be scored, ModelError for a model that can't be asked so.
    """
    found = prepare(model, task, subtask, options)
    return found.written() if isinstance(found, Draft) else found


def prepare(model: LoadedModel, task: Task, subtask: Subtask, options: Options) -> Job | Draft:
    """As far as `plan` goes without a pass of the model: with a chain of thought, up to where the reasoning begins.

    Raises as `plan` does.
    """
    drawn = prompt_set(
        task, subtask, n_examples=options.n_examples, shots=options.shots, seed=options.seed,
        drawn=options.shots_drawn, reasoned=options.chain_of_thought,
    )  # fmt: skip
    form = Form(model, options.chain_of_thought, chat(model) if options.chat else None)
    asking = Asking(task, subtask, options, form, drawn)
    if options.chain_of_thought:
        return draft(asking)
    questions, partners = asking.asked()
    asking.check_length((*questions, *(partners or ())))
    pairing = asking.paired(questions, partners)
    shots = asking.shots(pairing)
    if options.own_shots:
        questions, pairing = asking.behind(shots, pairing)
        asking.check_length((*questions, *(p.corrupted for p in pairing.pairs)))
    return job_of(asking, questions, pairing, shots)

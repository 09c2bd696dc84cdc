"""From the questions of a subtask to token ids and pairs, in the form that the options ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from circuitdb.errors import TaskError
from circuitdb.ingest import metrics
from circuitdb.ingest.alignment import LEFT_PAD
from circuitdb.ingest.forms import Form
from circuitdb.ingest.pairs import Pair, Pairing, pair, pair_given
from circuitdb.ingest.prompts import PromptSet
from circuitdb.ingest.sequences import Sequences
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Subtask

if TYPE_CHECKING:
    from circuitdb.ingest.plan import Options

# The answers of all questions are at most so long that comparing more of their tokens is comparing all of them.
_ALL_TOKENS = 10_000
# Of the reasons why questions have no partner, this many are told where that is an error.
_SHOWN_REASONS = 3


@dataclass(frozen=True)
class Asking:
    """How the questions of a subtask become token ids and pairs."""

    task: Task
    subtask: Subtask
    options: Options
    form: Form
    drawn: PromptSet

    def one(self, shots: tuple[Question, ...], question: Question) -> TokenisedQuestion:
        """A question behind its shots, up to its answer or to where its reasoning begins."""
        return (self.form.open if self.options.chain_of_thought else self.form.ask)(shots, question)

    def asked(self) -> tuple[tuple[TokenisedQuestion, ...], tuple[TokenisedQuestion, ...] | None]:
        """The questions and, where the task gives one for each, their partners; with no shots but fixed ones."""
        questions = tuple(self.one(self.drawn.shots, question) for question in self.drawn.questions)
        found = [self.form.ask_partner(self.drawn.shots, question) for question in self.drawn.questions]
        partners = tuple(partner for partner in found if partner is not None)
        return questions, partners if len(partners) == len(questions) else None

    def paired(
        self, questions: tuple[TokenisedQuestion, ...], partners: tuple[TokenisedQuestion, ...] | None
    ) -> Pairing:
        """Pairs, of equal length unless they are aligned otherwise. Raises TaskError unless every fold has one."""
        options = self.options
        compares = metrics.find(options.metric).needs_contrast and not options.against
        compared = compares * (_ALL_TOKENS if options.positions != "last" else 1)
        if partners is not None:
            pairing = pair_given(
                questions, partners, folds=options.folds, compared=compared, shots=self.drawn.shots, align=options.align
            )
        else:
            pairing = pair(questions, folds=options.folds, compared=compared, align=options.align)
        self.check_folds(questions, pairing)
        return pairing

    def shots(self, pairing: Pairing | None) -> tuple[tuple[Question, ...], ...]:
        """Those before each question: the fixed ones, or its own, which its partner reads too. Raises TaskError."""
        questions, options = self.drawn.questions, self.options
        if not options.own_shots or pairing is None:
            return (self.drawn.shots,) * len(questions)
        fold = [o.fold if isinstance(o, Pair) else i % options.folds for i, o in enumerate(pairing.outcomes)]
        members = [[q for q, own in zip(questions, fold, strict=True) if own == each] for each in range(options.folds)]
        return tuple(
            self.drawn.own_shots(
                question, outcome.corrupted.question if isinstance(outcome, Pair) else None, n=options.shots,
                seed=options.seed, fold=(own, options.folds), members=members[own],
            )
            for question, outcome, own in zip(questions, pairing.outcomes, fold, strict=True)
        )  # fmt: skip

    def behind(
        self, shots: tuple[tuple[Question, ...], ...], pairing: Pairing
    ) -> tuple[tuple[TokenisedQuestion, ...], Pairing]:
        """Questions and pairs behind their own shots. Raises TaskError unless every fold has a pair."""
        options = self.options
        questions = tuple(self.one(own, asked) for own, asked in zip(shots, self.drawn.questions, strict=True))
        outcomes: list[Pair | str] = []
        for question, own, outcome in zip(questions, shots, pairing.outcomes, strict=True):
            if isinstance(outcome, str):
                outcomes.append(outcome)
                continue
            given = self.form.ask_partner(own, question.question)
            partner = self.one(own, outcome.corrupted.question) if given is None else given
            if options.align == LEFT_PAD or len(partner.ids) == len(question.ids):
                outcomes.append(Pair(question, partner, outcome.fold))
            else:
                outcomes.append("behind its own shots it and its partner have different numbers of tokens")
        found = Pairing(tuple(outcomes))
        self.check_folds(questions, found)
        return questions, found

    def check_folds(self, questions: tuple[TokenisedQuestion, ...], pairing: Pairing) -> None:
        """Raise TaskError unless every fold has a pair."""
        folds, n_filled = self.options.folds, len({p.fold for p in pairing.pairs})
        if n_filled == folds:
            return
        outcomes = sorted(zip(questions, pairing.outcomes, strict=True), key=lambda known: known[0].question.row)
        reasons = list(dict.fromkeys(outcome for _, outcome in outcomes if isinstance(outcome, str)))
        told = "; ".join(reasons[:_SHOWN_REASONS])
        if len(reasons) > _SHOWN_REASONS:
            told += f"; and {len(reasons) - _SHOWN_REASONS} more"
        raise TaskError(
            f"{self.task.name} {self.subtask.name} has pairs to score in {n_filled} of {folds} folds"
            f"{': ' + told if told else ''}; use more examples or fewer folds."
        )

    def check_length(self, asked: Sequence[TokenisedQuestion], more: int = 0) -> None:
        """Raise TaskError for a prompt that does not fit in the context with its answer and `more` tokens."""
        options, model = self.options, self.form.model
        read = options.positions != "last" or options.chain_of_thought
        longest = max(asked, key=lambda question: _length(question, read=read))
        length = _length(longest, read=read) + more
        if length > model.n_context:
            raise TaskError(
                longest.question.told(
                    f"{self.task.name} {self.subtask.name} has prompts of {length:,} tokens, more than the "
                    f"{model.n_context:,} of {model.record.name}'s context: "
                    f"{'use fewer shots' if options.shots else 'make them shorter'}"
                    f"{' or fewer --reasoning-tokens' if more else ''}."
                )
            )

    def check_runs(self, runs: Sequence[Sequences]) -> None:
        """Raise TaskError for a run that is longer than the context, as a long partner is with another's answer."""
        model = self.form.model
        length = max(max(len(run.clean), len(run.corrupted)) for run in runs)
        if length > model.n_context:
            raise TaskError(
                f"{self.task.name} {self.subtask.name} has a pair of which one prompt takes {length:,} tokens with the "
                f"clean answer, more than the {model.n_context:,} of {model.record.name}'s context: make them shorter, "
                "or use --align equal."
            )

    def others(
        self, shots: tuple[Question, ...], question: TokenisedQuestion, reasoning: str = ""
    ) -> list[tuple[int, ...]] | None:
        """Token ids of the answers that the right one is to be compared with, as they would follow this prompt."""
        if not self.options.against:
            return None
        asked = question.question
        found = [
            self.form.ask(shots, replace(asked, answer=text, answer_id=None), reasoning)
            for text in self.options.against
        ]
        return [other.line_ids if self.options.positions == "all" else other.answer_ids for other in found]


def _length(question: TokenisedQuestion, *, read: bool) -> int:
    """Tokens of a prompt, and where they are `read` those of the answer and the end of its line."""
    return len(question.ids) + read * len(question.line_ids)

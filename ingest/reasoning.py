"""Circuits by chain of thought: the model writes its reasoning for each question, then there are pairs to score.

1. The prompts as far as where the reasoning begins are tokenised and, with the rest of the options, make the spec: what
   is stored already is known by that, and nothing is written for it.
2. The model writes on, greedily: its reasoning is what it wrote up to the end of the line, up to the words that lead to
   the answer, or of so many tokens.
3. At the positions `last` and `answer` a prompt is the question with its own reasoning and these words. Its partner has
   its own reasoning too, and must have as many tokens in all.
4. At `all` positions a partner is a question alone. What follows in both runs is what the model wrote for the clean
   question: the reasoning, the words that lead to the answer (given to it where it did not come to them) and the answer
   with the end of its line; all of these tokens are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from circuitdb.ingest.accuracy import Shots, answers
from circuitdb.ingest.alignment import LEFT_PAD
from circuitdb.ingest.asking import Asking
from circuitdb.ingest.decoding import first_line, write
from circuitdb.ingest.forms import LEAD
from circuitdb.ingest.jobs import Job, job_of, spec_of
from circuitdb.ingest.pairs import Pair, Pairing
from circuitdb.ingest.sequences import NO_TOKEN, Sequences
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Json, Subtask, digest


@dataclass(frozen=True)
class Draft:
    """A circuit by chain of thought, for which the model has yet to write its reasoning.

    `questions` and `partners` (those that the task gives) end where it begins. `pairing` is there where the reasoning
    itself is scored. `shots` are those before each question.
    """

    asking: Asking
    questions: tuple[TokenisedQuestion, ...]
    partners: tuple[TokenisedQuestion, ...] | None
    pairing: Pairing | None
    shots: tuple[Shots, ...]
    spec: dict[str, Json]

    @property
    def subtask(self) -> Subtask:
        """Whose circuit it will be."""
        return self.asking.subtask

    @property
    def spec_digest(self) -> str:
        """The key under which the store knows it."""
        return digest(self.spec)

    @property
    def most_pairs(self) -> int:
        """At most so many pairs there will be."""
        return len(self.questions)

    def written(self) -> Job:
        """The job, once the model has written. Raises TaskError if nothing can be scored, ModelError for no memory."""
        reasoning = self._reasoning(self.questions)
        asked = self._with(reasoning)
        self.asking.check_length(asked)
        if self.pairing is not None:
            return self._scored_whole(self.pairing, reasoning, asked)
        partners = None
        if self.partners is not None:
            others = self._reasoning(self.partners)
            found = [
                self.asking.form.ask_partner(own, question.question, words)
                for own, question, words in zip(self.shots, self.questions, others, strict=True)
            ]
            partners = tuple(partner for partner in found if partner is not None)
            self.asking.check_length(partners)
        pairing = self.asking.paired(asked, partners)
        return job_of(self.asking, asked, pairing, self.shots, reasoning, self.spec)

    def _reasoning(self, prompts: Sequence[TokenisedQuestion]) -> tuple[str, ...]:
        model, n_tokens = self.asking.form.model, self.asking.options.reasoning_tokens
        written = write(model, [prompt.ids for prompt in prompts], n_tokens, done=_is_done)
        return tuple(reasoning_in(text) for text, _, _ in written)

    def _with(self, reasoning: Sequence[str]) -> tuple[TokenisedQuestion, ...]:
        return tuple(
            self.asking.form.ask(own, question.question, words)
            for own, question, words in zip(self.shots, self.questions, reasoning, strict=True)
        )

    def _scored_whole(self, pairing: Pairing, reasoning: tuple[str, ...], asked: tuple[TokenisedQuestion, ...]) -> Job:
        answered = answers(self.asking.form, self.shots, asked, reasoning)
        outcomes: list[Pair | str] = []
        run: list[Sequences] = []
        for question, whole, ids, outcome in zip(self.questions, asked, answered.ids, pairing.outcomes, strict=True):
            if isinstance(outcome, Pair) and whole.ids[: len(question.ids)] != question.ids:
                outcome = "its last token and the first of its reasoning are one where both are read together"
            outcomes.append(outcome)
            if isinstance(outcome, Pair):
                run.append(_read_on(outcome, (*whole.ids[len(question.ids) :], *ids)))
        found = Pairing(tuple(outcomes))
        self.asking.check_folds(self.questions, found)
        self.asking.check_runs(run)
        return Job(
            self.subtask,
            self.questions,
            found,
            tuple(run),
            self.spec,
            self.asking.form,
            self.shots,
            reasoning,
            answered,
        )


def draft(asking: Asking) -> Draft:
    """The circuit of questions that are to be answered by chain of thought. Raises TaskError if none can be scored."""
    options, form = asking.options, asking.form
    questions, partners = asking.asked()
    begun, whole = questions[0], form.ask(asking.drawn.shots, questions[0].question)
    more = options.reasoning_tokens + len(whole.ids) - len(begun.ids)
    asking.check_length((*questions, *(partners or ())), more)
    pairing = asking.paired(questions, partners) if options.positions == "all" else None
    shots = asking.shots(pairing)
    if options.own_shots and pairing is not None:
        questions, pairing = asking.behind(shots, pairing)
        asking.check_length((*questions, *(p.corrupted for p in pairing.pairs)), more)
    ids: list[Json] = [[[list(q.ids), list(q.answer_ids)] for q in each] for each in (questions, partners or ())]
    if pairing is not None:
        ids.append([[list(p.clean.ids), list(p.corrupted.ids), p.fold] for p in pairing.pairs])
    # What will be paired is known after the reasoning alone.
    may_pad = asking.options.align == LEFT_PAD
    return Draft(
        asking, questions, partners, pairing, shots, spec_of(asking, ids, n_pairs=len(questions), padded=may_pad)
    )


def reasoning_in(text: str) -> str:
    """The reasoning in what a model wrote: its first line that is not empty, up to the words before the answer."""
    # A character of which only some bytes are written is none.
    return first_line(text.lstrip()).split(LEAD)[0].split("\ufffd")[0].strip()


def _is_done(text: str) -> bool:
    """Whether nothing that the model could write on belongs to the reasoning."""
    return "\n" in text.lstrip() or LEAD in text


def _read_on(pair: Pair, ids: tuple[int, ...]) -> Sequences:
    """Both prompts with the same tokens behind them, each of which is scored."""
    labels = tuple((token, NO_TOKEN) for token in ids)
    return Sequences((*pair.clean.ids, *ids[:-1]), (*pair.corrupted.ids, *ids[:-1]), labels, pair.fold)

"""How a question is put to the model: directly or for a chain of thought, as plain text or through a chat template.

    plain                             12 + 7 = 19
    chain of thought                  12 + 7 =
                                      Let's think step by step. 2 + 7 = 9, 1 + 0 = 1. So the answer is 19
    through a chat template           the question is a user's turn, all after it (reasoning, answer) the assistant's

Solved questions stand before it in the same form. What the model writes as its reasoning stands between `INSTRUCTION`
and `LEAD`, the words that lead to the answer; both are always there, whether the model writes the second or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from circuitdb.ingest.chat import Chat
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import TokenisedQuestion, tokenise

INSTRUCTION = "Let's think step by step."
LEAD = "So the answer is"


@dataclass(frozen=True)
class Form:
    """The form of all prompts of a circuit; `chat` is None for plain text."""

    model: LoadedModel
    chain_of_thought: bool = False
    chat: Chat | None = None

    def ask(self, shots: Sequence[Question], question: Question, reasoning: str = "") -> TokenisedQuestion:
        """The prompt up to the answer, `reasoning` between, with the answer's tokens. Raises as `tokenise` does."""
        header, asked, gap = self._before(shots, question)
        posed = replace(question, prompt=asked, gap=gap)
        if self.chain_of_thought:
            posed = replace(posed, prompt=asked + gap + f"{reasoning} {LEAD}".lstrip(), gap=" ")
        if self.chain_of_thought or self.chat:
            posed = replace(posed, answer_id=None)
        found = tokenise(
            self.model, header, posed, special=self.chat is None, end=self._end(shots, question, posed, asked)
        )
        return replace(found, question=question)

    def ask_partner(
        self, shots: Sequence[Question], question: Question, reasoning: str | None = None
    ) -> TokenisedQuestion | None:
        """The partner that a question brings along, None if it brings none; up to its reasoning where none is given.

        Where no answer of the partner is known, its prompt ends where it would before the question's own answer.
        Raises as `tokenise` does.
        """
        partner = question.corrupted
        if partner is None:
            return None
        known = bool(partner.answer) or partner.answer_id is not None
        answered = (
            partner
            if known
            else replace(partner, answer=question.answer, answer_id=question.answer_id, gap=question.gap)
        )
        if self.chain_of_thought and reasoning is None:
            found = self.open(shots, answered)
        else:
            found = self.ask(shots, answered, reasoning or "")
        return found if known else replace(found, question=partner, answer_ids=(), line_ids=())

    def open(self, shots: Sequence[Question], question: Question) -> TokenisedQuestion:
        """The prompt up to where the reasoning begins, with the tokens of the answer as they would be without any.

        Raises as `tokenise` does.
        """
        header, asked, gap = self._before(shots, question)
        begun = Question(asked, LEAD, gap, file=question.file, row=question.row)
        found = tokenise(self.model, header, begun, special=self.chat is None)
        answered = self.ask(shots, question)
        return replace(answered, text=found.text, ids=found.ids)

    def _before(self, shots: Sequence[Question], question: Question) -> tuple[str, str, str]:
        """(the solved questions, the question, what stands between it and what is to follow)."""
        if self.chat is not None:
            return "", self.chat.prompt(self._turns(shots), self._asked(question)), ""
        if not self.chain_of_thought:
            return "".join(f"{shot.solved}\n" for shot in shots), question.prompt, question.gap
        return "".join(f"{asked} {reply}\n" for asked, reply in self._turns(shots)), self._asked(question), " "

    def _turns(self, shots: Sequence[Question]) -> list[tuple[str, str]]:
        return [
            (self._asked(shot), f"{shot.reasoning} {LEAD} {shot.answer}" if self.chain_of_thought else shot.answer)
            for shot in shots
        ]

    def _asked(self, question: Question) -> str:
        return f"{question.prompt}\n{INSTRUCTION}" if self.chain_of_thought else question.prompt

    def _end(self, shots: Sequence[Question], question: Question, posed: Question, asked: str) -> str:
        """What ends an answer: its line, or the assistant's turn."""
        if self.chat is None:
            return "\n"
        return self.chat.end(self._turns(shots), self._asked(question), posed.solved.removeprefix(asked))

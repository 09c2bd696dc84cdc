"""The chat template of a tokenizer: solved questions are turns of a user and an assistant, the scored one is the last.

Templates may put in the date of the day or a way of thinking; both are fixed here, so that a prompt is the same
whenever it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from circuitdb.errors import ModelError
from circuitdb.ingest.libraries import one_line
from circuitdb.ingest.models import LoadedModel

Turn = tuple[str, str]
# What templates ask for by these names; one that does not is not changed by them.
_DAY = "01 Jan 2025"
_FIXED: dict[str, Any] = {"date_string": _DAY, "enable_thinking": False}
_CLOCK = "{%- macro strftime_now(format) -%}" + _DAY + "{%- endmacro %}"


@dataclass(frozen=True)
class Chat:
    """A model's chat template as text. Made by `chat`."""

    model: LoadedModel
    template: str

    @property
    def digest(self) -> str:
        """SHA-256 of the template."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    def prompt(self, solved: Sequence[Turn], asked: str) -> str:
        """(question, answer) turns, then a question, up to where the assistant's answer begins. Raises ModelError."""
        text = self._rendered([*_messages(solved), {"role": "user", "content": asked}], answered=False)
        # Without its question a prompt would be scored all the same, and the circuit be one of something else.
        lost = next((question for question in (*(question for question, _ in solved), asked)
                     if question.strip() not in text), None)  # fmt: skip
        if lost is not None:
            raise ModelError(
                f"The chat template of {self.model.record.name} leaves out or changes the question "
                f"{shorten(lost, 60, placeholder='...')!r}; leave --chat out, or give its tokenizer another template."
            )
        return text

    def end(self, solved: Sequence[Turn], asked: str, answer: str) -> str:
        """What ends the turn of an assistant who gave this answer; nothing where the template gives answers changed."""
        before = self.prompt(solved, asked) + answer
        whole = self._rendered(_messages([*solved, (asked, answer)]), answered=True)
        return whole[len(before) :].rstrip() if whole.startswith(before) else ""

    def _rendered(self, messages: list[dict[str, str]], *, answered: bool) -> str:
        tokenizer = self.model.tokenizer
        if tokenizer is None:
            raise AssertionError("chat refuses a model without a tokenizer")
        try:
            return str(
                tokenizer.apply_chat_template(
                    messages,
                    tokenize=False,
                    chat_template=_CLOCK + self.template,
                    add_generation_prompt=not answered,
                    **_FIXED,
                )
            )
        except Exception as error:  # whatever the template raises
            raise ModelError(
                f"The chat template of {self.model.record.name} can't take these questions: {one_line(error)}"
            ) from error


def chat(model: LoadedModel) -> Chat:
    """The chat template of a model's tokenizer. Raises ModelError for a model that has none."""
    if model.tokenizer is None:
        raise ModelError(f"{model.record.name} has no tokenizer, so it has no chat template; leave --chat out.")
    try:
        template = model.tokenizer.get_chat_template()
    except ValueError as error:
        raise ModelError(
            f"The tokenizer of {model.record.name} has no chat template, as models that are not tuned to instructions "
            "have none; leave --chat out."
        ) from error
    return Chat(model, str(template))


def _messages(solved: Sequence[Turn]) -> list[dict[str, str]]:
    return [
        {"role": role, "content": text}
        for turn in solved
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]

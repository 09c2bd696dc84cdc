"""Token ids of a prompt and of the answer that should follow it.

Tokenizers disagree about the space before the answer: some make it a token of its own, some glue it to the answer.
The prompt therefore ends where the tokens of prompt and answer together have a boundary, so that the last position is
always the one that predicts the first token of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitdb.errors import ModelError, TaskError
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks.task import Question, SpeltTask, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class TokenisedQuestion:
    """A question after its header: `text` and `ids` of the prompt, ids of the answer, and with the end of its line."""

    question: Question
    text: str
    ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    line_ids: tuple[int, ...] = ()


def tokenise(
    model: LoadedModel, header: str, question: Question, *, special: bool = True, end: str = "\n"
) -> TokenisedQuestion:
    """Tokenise with the tokenizer's own special tokens, unless the text has them already.

    `end` is what follows an answer where the model is to stop.

    Raises ModelError if the model has no tokenizer or its tokenizer puts two BOS tokens in front, TaskError if no
    boundary lies before the answer or the tokenizer does not know a part of the text.
    """
    tokenizer = _tokenizer(model)
    whole = _encode(tokenizer, header + question.solved, special=special)
    if _has_unknown(tokenizer, f"{header}{question.solved}"):
        raise TaskError(
            question.told(
                f"{model.record.name}'s tokenizer has no token for a part of {_short(question.solved)} or of the shots "
                "before it: it would stand as unknown."
            )
        )
    if question.answer_id is not None:
        return _before_token(tokenizer, header, question, question.answer_id)
    for text in dict.fromkeys((f"{header}{question.prompt}{question.gap}", f"{header}{question.prompt}")):
        ids = _encode(tokenizer, text, special=special)
        if len(ids) < len(whole) and whole[: len(ids)] == ids:
            _check_bos(tokenizer, ids)
            line = _encode(tokenizer, f"{header}{question.solved}{end}", special=special)
            # Where the end of the line is no token of its own, the answer is all that can be told apart.
            known = not _has_unknown(tokenizer, f"{header}{question.solved}{end}")
            follows = line if known and line[: len(ids)] == ids else whole
            return TokenisedQuestion(question, text, ids, whole[len(ids) :], follows[len(ids) :])
    raise TaskError(
        question.told(
            f"{model.record.name}'s tokenizer has no token boundary before the answer in {_short(question.solved)}."
        )
    )


def spelt(model: LoadedModel, task: Task) -> Task:
    """The task with its answers as text, where it has them as ids of the model's tokenizer. Raises ModelError."""
    if not isinstance(task, SpeltTask):
        return task
    tokenizer = _tokenizer(model)

    def decode(token: int) -> str | None:
        if not 0 <= token < len(tokenizer):
            return None
        # Twice, since some tokenizers drop the space of the first token of a text.
        once, twice = str(tokenizer.decode([token])), str(tokenizer.decode([token, token]))
        return twice[len(once) :] if twice.startswith(once) else once

    return task.spelt(decode)


def starts_with_bos(model: LoadedModel, ids: tuple[int, ...]) -> bool:
    """Whether the prompt begins with the tokenizer's BOS token."""
    return model.tokenizer is not None and ids[:1] == (model.tokenizer.bos_token_id,)


def _has_unknown(tokenizer: PreTrainedTokenizerBase, text: str) -> bool:
    """Whether the tokenizer does not know a part of the text.

    What stands for it may be a token of another use, such as the end of a text, that the text has in its own right.
    """
    core = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    token = str(tokenizer.unk_token or getattr(core, "unk_token", None) or "")
    unknown = tokenizer.convert_tokens_to_ids(token) if token else None
    return bool(token) and list(tokenizer(text, add_special_tokens=False)["input_ids"]).count(unknown) > text.count(
        token
    )


def _tokenizer(model: LoadedModel) -> PreTrainedTokenizerBase:
    if model.tokenizer is None:
        raise ModelError(f"{model.record.name} has no tokenizer; a task needs one (token ids can be scored without).")
    return model.tokenizer


def _before_token(
    tokenizer: PreTrainedTokenizerBase, header: str, question: Question, answer: int
) -> TokenisedQuestion:
    """A question whose answer is that very token: its prompt ends where it does, however both would be split."""
    text = header + question.prompt
    ids = _encode(tokenizer, text)
    _check_bos(tokenizer, ids)
    line = _encode(tokenizer, f"{header}{question.solved}\n")
    known = line[: len(ids) + 1] == (*ids, answer) and not _has_unknown(tokenizer, f"{header}{question.solved}\n")
    follows = line[len(ids) :] if known else (answer,)
    return TokenisedQuestion(question, text, ids, (answer,), follows)


def _check_bos(tokenizer: PreTrainedTokenizerBase, ids: tuple[int, ...]) -> None:
    bos = tokenizer.bos_token_id
    if bos is not None and ids[:2] == (bos, bos):
        raise ModelError("The tokenizer puts two BOS tokens in front of a prompt; repair its settings first.")


def _short(text: str) -> str:
    """A text in quotes, its middle left out where it is long."""
    return repr(text if len(text) <= 80 else f"{text[:40]} ... {text[-30:]}")


def _encode(tokenizer: PreTrainedTokenizerBase, text: str, *, special: bool = True) -> tuple[int, ...]:
    """The text's ids with the special tokens before it, but none after it: there the answer is to follow."""
    whole = tuple(tokenizer(text, add_special_tokens=special)["input_ids"])
    bare = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[: start + len(bare)]
    return whole

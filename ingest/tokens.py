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
from circuitdb.ingest.tasks.task import Question

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


def tokenise(model: LoadedModel, header: str, question: Question) -> TokenisedQuestion:
    """Tokenise with the tokenizer's own special tokens.

    Raises ModelError if the model has no tokenizer or its tokenizer puts two BOS tokens in front, TaskError if no
    boundary lies before the answer or the tokenizer does not know a part of the text.
    """
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise ModelError(f"{model.record.name} has no tokenizer; a task needs one (token ids can be scored without).")
    whole = _encode(tokenizer, header + question.solved)
    bare = tokenizer(header + question.solved, add_special_tokens=False)["input_ids"]
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in bare:
        raise TaskError(
            f"The tokenizer of {model.record.name} has no token for a part of {question.solved!r} or of the shots "
            "before it: it would stand as unknown."
        )
    for text in (f"{header}{question.prompt}{question.gap}", f"{header}{question.prompt}"):
        ids = _encode(tokenizer, text)
        if len(ids) < len(whole) and whole[: len(ids)] == ids:
            bos = tokenizer.bos_token_id
            if bos is not None and ids[:2] == (bos, bos):
                raise ModelError("The tokenizer puts two BOS tokens in front of a prompt; repair its settings first.")
            line = _encode(tokenizer, f"{header}{question.solved}\n")
            # Where the end of the line is no token of its own, the answer is all that can be told apart.
            follows = line if line[: len(ids)] == ids else whole
            return TokenisedQuestion(question, text, ids, whole[len(ids) :], follows[len(ids) :])
    raise TaskError(
        f"The tokenizer of {model.record.name} has no token boundary before the answer in {question.solved!r}."
    )


def starts_with_bos(model: LoadedModel, ids: tuple[int, ...]) -> bool:
    """Whether the prompt begins with the tokenizer's BOS token."""
    return model.tokenizer is not None and ids[:1] == (model.tokenizer.bos_token_id,)


def _encode(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """The text's ids with the special tokens before it, but none after it: there the answer is to follow."""
    whole = tuple(tokenizer(text, add_special_tokens=True)["input_ids"])
    bare = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[: start + len(bare)]
    return whole

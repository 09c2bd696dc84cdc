"""How often the model is right on a circuit's questions, skipped ones included: greedy decoding, exact match."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from transformers import DynamicCache

from circuitdb.ingest import prefix
from circuitdb.ingest.memory import Length, Memory
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Accuracy


def predictions(model: LoadedModel, questions: Sequence[TokenisedQuestion]) -> list[str]:
    """What the model writes after each prompt, greedily, up to the end of its first line.

    At most one token more than the answer has is decoded, enough to see that a number goes on.
    """
    texts, memory = [""] * len(questions), Memory(model, 0)
    for length in sorted({len(q.ids) for q in questions}):
        members = [i for i, q in enumerate(questions) if len(q.ids) == length]
        n_tokens = 1 + max(len(questions[i].answer_ids) for i in members)
        start = 0
        while start < len(members):
            batch = members[start : start + memory.batch_size(Length(length + n_tokens), len(members) - start)]
            tokens = torch.tensor([questions[i].ids for i in batch], device=model.device)
            failure = None
            try:
                written = _decode(model, tokens, n_tokens).tolist()
            except (RuntimeError, MemoryError) as error:
                failure = memory.failure(error)
            if failure is not None:
                memory.shrink(len(batch), failure)
                continue
            for i, ids in zip(batch, written, strict=True):
                texts[i] = _text(model, ids)
            start += len(batch)
    return texts


def accuracy(task: Task, questions: Sequence[TokenisedQuestion], texts: Sequence[str]) -> tuple[Accuracy, list[bool]]:
    """Share of right answers with its binomial standard error, and which were right.

    Where all or none are right the formula's zero would claim certainty: the error is None.
    """
    right = [q.question.is_right(task.read_answer(text)) for q, text in zip(questions, texts, strict=True)]
    n, share = len(right), sum(right) / len(right)
    return Accuracy(share, math.sqrt(share * (1 - share) / n) if 0 < share < 1 else None, n), right


def _decode(model: LoadedModel, tokens: torch.Tensor, n_tokens: int) -> torch.Tensor:
    start = prefix.shared_length(tokens, tokens)
    cache = prefix.compute(model, tokens[0, :start]).cache(len(tokens)) or DynamicCache()
    fresh, written = tokens[:, start:], []
    with torch.no_grad():
        for _ in range(n_tokens):
            logits = model.bridge(fresh, past_key_values=cache, logits_to_keep=1)
            fresh = logits[:, -1:].argmax(-1)
            written.append(fresh)
    return torch.cat(written, dim=1)


def _text(model: LoadedModel, ids: list[int]) -> str:
    if model.tokenizer is None:
        raise AssertionError("tokenise already refused a model without a tokenizer")
    return str(model.tokenizer.decode(ids, skip_special_tokens=True)).split("\n")[0].strip()

"""Greedy decoding of many prompts, as many in a pass as fit, and the probability of given tokens after prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from circuitdb.ingest import prefix
from circuitdb.ingest.memory import Length, Memory
from circuitdb.ingest.models import LoadedModel

Ids = tuple[int, ...]


def write(
    model: LoadedModel,
    prompts: Sequence[Ids],
    n_tokens: int | Sequence[int],
    *,
    done: Callable[[str], bool] | None = None,
    asked: Sequence[Ids] | None = None,
) -> list[tuple[str, Ids, list[float]]]:
    """What the model writes after each prompt, greedily: (text, token ids, log-probabilities of the tokens asked for).

    Args:
        model: with its tokenizer.
        prompts: token ids.
        n_tokens: at most so many are written, of all prompts or of each.
        done: whether a text needs no more; decoding ends when all of a batch are done.
        asked: for each prompt, token ids whose log-probability right behind it is wanted.

    Text and ids end where the model ends the text, ids with the token that does, or with the model's context. Raises
    ModelError if not even one prompt fits in memory.
    """
    wanted = [n_tokens] * len(prompts) if isinstance(n_tokens, int) else n_tokens
    # The last token that is written is not read, so it may be one more than the context has.
    most = [min(n, model.n_context + 1 - len(prompt)) for n, prompt in zip(wanted, prompts, strict=True)]
    found: list[tuple[str, Ids, list[float]]] = [("", (), [])] * len(prompts)

    def work(batch: Sequence[int]) -> None:
        tokens = torch.tensor([prompts[i] for i in batch], device=model.device)
        written, first = _decode(model, tokens, max(most[i] for i in batch), done)
        for row, (i, ids) in enumerate(zip(batch, written, strict=True)):
            kept = _until_end(model, ids[: most[i]])
            seen = [] if asked is None else first[row, list(asked[i])].tolist()
            found[i] = (text_of(model, kept), kept, seen)

    kinds = [len(prompt) for prompt in prompts]
    _each_batch(model, kinds, lambda members: Length(kinds[members[0]] + max(most[i] for i in members)), work)
    return found


def log_probabilities(model: LoadedModel, texts: Sequence[Ids], n_last: Sequence[int]) -> list[float]:
    """Of each text the log-probability of its last `n_last` tokens, one at least, after those before them.

    Raises ModelError if not even one text fits in memory.
    """
    found = [0.0] * len(texts)

    def work(batch: Sequence[int]) -> None:
        tokens, n = torch.tensor([texts[i] for i in batch], device=model.device), n_last[batch[0]]
        with torch.no_grad():
            logits = model.bridge(tokens[:, :-1], logits_to_keep=n)[:, -n:]
        chosen = _log_softmax(logits).gather(-1, tokens[:, -n:, None])[..., 0].sum(-1)
        for i, value in zip(batch, chosen.tolist(), strict=True):
            found[i] = value

    kinds = [(len(text), n) for text, n in zip(texts, n_last, strict=True)]
    _each_batch(model, kinds, lambda members: Length(kinds[members[0]][0], 0, kinds[members[0]][1]), work)
    return found


def text_of(model: LoadedModel, ids: Sequence[int]) -> str:
    """What these tokens say, special ones left out."""
    if model.tokenizer is None:
        raise AssertionError("tokenise already refused a model without a tokenizer")
    return str(model.tokenizer.decode(list(ids), skip_special_tokens=True))


def first_line(text: str) -> str:
    """The text as far as the end of its first line."""
    return text.split("\n")[0]


def line_of(model: LoadedModel, ids: Ids) -> Ids:
    """The tokens as far as the one that ends their first line, all where none does."""
    ends = (n for n in range(1, len(ids) + 1) if "\n" in text_of(model, ids[:n]))
    return ids[: next(ends, len(ids))]


def _each_batch(
    model: LoadedModel,
    kinds: Sequence[object],
    length: Callable[[list[int]], Length],
    work: Callable[[Sequence[int]], None],
) -> None:
    """`work` on the places of all prompts, those of one kind together and as many at once as fit."""
    memory = Memory(model, 0)
    for kind in dict.fromkeys(kinds):
        members = [i for i, own in enumerate(kinds) if own == kind]
        start = 0
        while start < len(members):
            batch = members[start : start + memory.batch_size(length(members), len(members) - start)]
            failure = None
            try:
                work(batch)
            except (RuntimeError, MemoryError) as error:
                failure = memory.failure(error)
            if failure is not None:
                memory.shrink(len(batch), failure)
                continue
            start += len(batch)


def _decode(
    model: LoadedModel, tokens: Tensor, n_tokens: int, done: Callable[[str], bool] | None
) -> tuple[list[Ids], Tensor]:
    """(the tokens written after each prompt, the log-probabilities [batch, vocab] of the first)."""
    start = prefix.shared_length(tokens, tokens)
    cache = prefix.compute(model, tokens[0, :start]).cache(len(tokens)) or DynamicCache()
    fresh, first = tokens[:, start:], torch.empty(0)
    written: list[Tensor] = []
    with torch.no_grad():
        for _ in range(n_tokens):
            logits = model.bridge(fresh, past_key_values=cache, logits_to_keep=1)[:, -1]
            if not written:
                first = _log_softmax(logits).cpu()
            fresh = logits.argmax(-1, keepdim=True)
            written.append(fresh)
            if done is not None and all(_is_done(model, ids, done) for ids in torch.cat(written, dim=1).tolist()):
                break
    return [tuple(ids) for ids in torch.cat(written, dim=1).tolist()], first


def _is_done(model: LoadedModel, ids: list[int], done: Callable[[str], bool]) -> bool:
    kept = _until_end(model, tuple(ids))
    return _ends(model, kept) or done(text_of(model, kept))


def _until_end(model: LoadedModel, ids: Ids) -> Ids:
    """The tokens as far as the first that ends a text."""
    return next((ids[: n + 1] for n in range(len(ids)) if _ends(model, ids[n : n + 1])), ids)


def _ends(model: LoadedModel, ids: Ids) -> bool:
    end = None if model.tokenizer is None else model.tokenizer.eos_token_id
    return bool(ids) and ids[-1] == end


def _log_softmax(logits: Tensor) -> Tensor:
    """In float32 at least."""
    return (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1)

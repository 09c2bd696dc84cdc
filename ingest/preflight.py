"""Checks, on the user's own model and before any work, that its edges can be scored right.

1. Writers add up: the differences of all sources sum to the change of the final residual stream.
2. Readers add up: for every source, its edges' scores sum to its node score, the plain gradient at its output times its
   difference. A target whose gradient is missing or wrong shows here, unless another one's error makes up for it.
3. Copies of grouped keys and values, and cached keys and values of a prefix, leave the logits as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from circuitdb.errors import ModelError
from circuitdb.ingest import prefix
from circuitdb.ingest.alignment import aligned
from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.contract import contract
from circuitdb.ingest.gradients import TargetGradients
from circuitdb.ingest.grouped import ungrouped
from circuitdb.ingest.hooks import Hooks, hooks
from circuitdb.ingest.libraries import one_line
from circuitdb.ingest.memory import exhausted
from circuitdb.ingest.models import LoadedModel, accumulation_dtype, plain_modes
from circuitdb.ingest.passes import run
from circuitdb.ingest.sources import Changes, Sources

_TOLERANCE = {torch.float64: 1e-5, torch.float32: 2e-3}
_TOLERANCE_HALF = 0.1
_LENGTH = 8


def preflight(model: LoadedModel, anatomy: Anatomy) -> None:
    """Run all checks on two short prompts, once per model. Raises ModelError: the check that failed, by how much."""
    if "preflight" in model.checked:
        return
    with plain_modes(model), _trial(model):
        clean, corrupted = _prompts(model)
        plain = _first_pass(model, anatomy, clean)
        with ungrouped(anatomy):
            _check_outputs(model, clean, plain, clean.shape[1] // 2)
            written, change = _written(model, anatomy, clean, corrupted)
            _require(model, "what heads and MLPs write adds up to the residual stream", written.sum(0), change)
            _check_scores(model, anatomy, clean, corrupted)
    model.checked.add("preflight")


def preflight_on(model: LoadedModel, anatomy: Anatomy, clean: Tensor, corrupted: Tensor, n_shared: int) -> None:
    """The checks that depend on the prompts, on the user's own, [1, pos] each: their length may exceed a window.

    The caller holds `plain_modes` and `ungrouped`. Raises ModelError as `preflight` does.
    """
    with _trial(model):
        written, change = _written(model, anatomy, clean, corrupted)
        _require(model, "what heads and MLPs write adds up to the residual stream", written.sum(0), change)
        if n_shared:
            with torch.no_grad():
                plain = run(model, clean, prefix.NO_PREFIX)
            _check_outputs(model, clean, plain, n_shared)


@contextmanager
def _trial(model: LoadedModel) -> Iterator[None]:
    """Whatever a model of an unknown layout makes torch or TransformerLens raise in a trial, in a sentence."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        if exhausted(error):
            raise
        raise ModelError(
            f"{model.record.architecture} can't be scored: a trial pass failed with {type(error).__name__}: "
            f"{one_line(error)}"
        ) from error


def _first_pass(model: LoadedModel, anatomy: Anatomy, tokens: Tensor) -> Tensor:
    """The logits of a plain pass, in which it is seen what layers return."""
    handle = anatomy.layers[0].block.register_forward_hook(
        lambda _module, _args, output: setattr(model, "layers_give_tuples", isinstance(output, tuple))
    )
    try:
        with torch.no_grad():
            plain = run(model, tokens, prefix.NO_PREFIX)
    finally:
        handle.remove()
    if not bool(torch.isfinite(plain).all()):
        raise ModelError("The model's logits are not finite; in half precision, try float32.")
    return plain


def _prompts(model: LoadedModel) -> tuple[Tensor, Tensor]:
    """Two fixed prompts that begin alike and differ in their second half."""
    length = min(_LENGTH, model.n_context)
    clean = (torch.arange(length) * 7919 + 13) % model.n_vocab
    other = clean.clone()
    other[length // 2 :] = (other[length // 2 :] * 31 + 17) % model.n_vocab
    return clean[None].to(model.device), other[None].to(model.device)


def _check_outputs(model: LoadedModel, tokens: Tensor, plain: Tensor, n_cached: int) -> None:
    with torch.no_grad():
        copied = run(model, tokens, prefix.NO_PREFIX)
        cached = run(model, tokens, prefix.compute(model, tokens[0, :n_cached]))
    _require(model, "copies of grouped keys and values for each head leave the logits as they are", copied, plain)
    _require(model, "a pass with cached keys and values gives the logits of a plain one", cached, plain)


def _written(model: LoadedModel, anatomy: Anatomy, clean: Tensor, corrupted: Tensor) -> tuple[Tensor, Tensor]:
    """What each source writes in the corrupted run less in the clean one, and by how much the last stream changes."""
    streams: list[Tensor] = []
    runs = []
    for tokens in (corrupted, clean):
        with torch.no_grad(), hooks() as held:
            runs.append(Sources.watch(anatomy, held))
            held.see(anatomy.final_stream, lambda output: streams.append(output.detach()))
            logits = run(model, tokens, prefix.NO_PREFIX)
        if not bool(torch.isfinite(logits).all()):
            raise ModelError("The model's logits are not finite on these prompts; in half precision, try float32.")
    kind = accumulation_dtype(model.dtype)
    found = Changes(anatomy, runs[1], runs[0].aligned_to(runs[1]), kind).all()
    return found, (aligned(*streams) - streams[1]).reshape(found.shape[1:]).to(found)


def _check_scores(model: LoadedModel, anatomy: Anatomy, clean: Tensor, corrupted: Tensor) -> None:
    direct: dict[int, Tensor] = {}
    sources, _ = _written(model, anatomy, clean, corrupted)
    like = torch.empty(0, model.record.d_model, dtype=model.dtype, device=model.device)
    targets = TargetGradients(anatomy, clean.shape[1], 1, like)
    with torch.enable_grad(), hooks() as held:
        held.replace(anatomy.stream, lambda own: own.detach().requires_grad_(True))
        _watch_gradients(anatomy, held, direct)
        targets.watch(held, 0, (1.0,))
        logits = run(model, clean, prefix.NO_PREFIX)
        logits.gather(-1, logits.argmax(-1, keepdim=True)).sum().backward()
    by_edges = contract(anatomy, lambda rows: sources[:, rows], targets, [(0, clean.shape[1])])[0].sum(1)
    by_node = torch.empty_like(by_edges)
    for first, stop in _writers(anatomy):
        gradient = direct[first].reshape(1, *sources.shape[1:]).to(sources)
        by_node[first:stop] = (sources[first:stop] * gradient).sum((1, 2)).cpu().double()
    _require(model, "the scores of a node's edges add up to the node's own", by_edges, by_node)


def _writers(anatomy: Anatomy) -> list[tuple[int, int]]:
    """Ranges of sources that write at one place: the input, a layer's heads, its MLP, and so on."""
    starts = [0]
    for index in range(anatomy.shape.n_layers):
        first = 1 + index * (anatomy.shape.n_heads + 1)
        starts += [first, first + anatomy.shape.n_heads]
    return list(zip(starts, [*starts[1:], anatomy.shape.n_sources], strict=True))


def _watch_gradients(anatomy: Anatomy, held: Hooks, direct: dict[int, Tensor]) -> None:
    """Keep the plain gradient where sources write to the stream, under the first source's index."""

    def keep(index: int) -> Callable[[Tensor], None]:
        def look(gradient: Tensor) -> None:
            direct[index] = gradient

        return look

    points = [anatomy.stream]
    for layer in anatomy.layers:
        points += [layer.attention_out, layer.mlp_out]
    for point, (first, _stop) in zip(points, _writers(anatomy), strict=True):
        held.gradient(point, keep(first))


def _require(model: LoadedModel, what: str, found: Tensor, wanted: Tensor) -> None:
    tolerance = _TOLERANCE.get(model.dtype, _TOLERANCE_HALF)
    error = float((found - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
    if not error <= tolerance:
        raise ModelError(
            f"{model.record.architecture} can't be scored right: in a trial it does not hold that {what} "
            f"(off by {error:.1e} of the largest, {tolerance:g} allowed)."
        )

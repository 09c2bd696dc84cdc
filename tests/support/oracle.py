"""Edge scores by brute force on the plain Hugging Face model: the judge of the attribution engine.

Written from the definitions alone, for models so small that nothing need be saved:

1. Hooks see the residual stream where each block, each MLP and the final norm read it. Every target there (each head's
   q, k and v, the MLP, the logits) gets its own copy of the stream, which goes through the norm, if there is one, and
   for a head through its slice of the projection.
2. What the heads and the MLP write is noted on the way, behind the norm between them and the stream, if there is one.
3. The gradient at a copy gives `eap`; a copy to which something is added gives `exact` and `circuit`.

A model with grouped keys and values is replaced by a twin in which each query head has its own (`load`): a key or value
target is the shared one as that query head uses it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM

from circuitdb.graph import GraphShape
from padding import Padded, Prompts, comparable

# Logits of the last position [..., batch, vocab] to one number each [..., batch].
Metric = Callable[[Tensor], Tensor]
# Targets, and the sources so far [source, batch, pos, d_model], to what each copy gets [target, batch, pos, d_model].
Change = Callable[[slice, Tensor], Tensor]
Scores = npt.NDArray[np.float64]

# The default implementation of experts refuses float64.
_LOADING = {"dtype": torch.float64, "attn_implementation": "eager", "experts_implementation": "eager"}


class _Float64(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is Tensor.float:
            return args[0].double()
        return func(*map(_widened, args), **{name: _widened(value) for name, value in (kwargs or {}).items()})


def _widened(argument: Any) -> Any:
    return torch.float64 if argument is torch.float32 else argument


@contextmanager
def full_precision() -> Iterator[None]:
    """Make every conversion to float32 one to float64.

    Hugging Face computes norms, rotary angles and softmax in float32 even where all weights are float64.
    """
    with _Float64():
        yield


# --- where a Hugging Face class keeps its parts ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Anatomy:
    """Paths of the parts of a model, those of a block from the block; "" where there is no such part."""

    blocks: str = "model.layers"
    final_norm: str = "model.norm"
    attention: str = "self_attn"
    projections: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")  # one for each of q, k, v, or one for all
    head_first: bool = False  # a fused projection whose rows run head by head, q, k, v within
    out: str = "o_proj"
    attention_norm: str = "input_layernorm"
    attention_post_norm: str = ""
    mlp_norm: str = "post_attention_layernorm"
    mlp: str = "mlp"
    mlp_output: str = "mlp"


_LLAMA = _Anatomy()
_GEMMA = _Anatomy(
    attention_post_norm="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_output="post_feedforward_layernorm",
)
_ANATOMIES = {
    "gpt2": _Anatomy("transformer.h", "transformer.ln_f", "attn", ("c_attn",), out="c_proj", attention_norm="ln_1",
                     mlp_norm="ln_2"),
    "gpt_neox": _Anatomy("gpt_neox.layers", "gpt_neox.final_layer_norm", "attention", ("query_key_value",),
                         head_first=True, out="dense"),
    "gptj": _Anatomy("transformer.h", "transformer.ln_f", "attn", out="out_proj", attention_norm="ln_1",
                     mlp_norm="ln_1"),
    "opt": _Anatomy("model.decoder.layers", "model.decoder.final_layer_norm", out="out_proj",
                    attention_norm="self_attn_layer_norm", mlp_norm="final_layer_norm", mlp="fc1", mlp_output="fc2"),
    "phi": _Anatomy(final_norm="model.final_layernorm", out="dense", mlp_norm="input_layernorm"),
    "phi3": _Anatomy(projections=("qkv_proj",)),
    "gemma2": _GEMMA,
    "gemma3_text": _GEMMA,
    "olmo2": _Anatomy(attention_norm="", attention_post_norm="post_attention_layernorm", mlp_norm="",
                      mlp_output="post_feedforward_layernorm"),
}  # fmt: skip
_PARALLEL = ("gptj", "phi")


def _parallel(config: Any) -> bool:
    return config.model_type in _PARALLEL or getattr(config, "use_parallel_residual", False)


def graph_shape(model: Any) -> GraphShape:
    """The shape of a Hugging Face model's graph."""
    config = model.config
    return GraphShape(config.num_hidden_layers, config.num_attention_heads, _parallel(config))


def _part(module: nn.Module, path: str) -> Any:
    return attrgetter(path)(module) if path else nn.Identity()


# --- the model, ungrouped --------------------------------------------------------------------------------------------


def load(folder: Path, *, ungroup: bool = True) -> Any:
    """The float64 model in a folder, with a key and a value of its own for each query head unless not `ungroup`ed."""
    model = AutoModelForCausalLM.from_pretrained(folder, **_LOADING)
    model.eval().requires_grad_(False)
    n_heads = model.config.num_attention_heads
    groups = n_heads // getattr(model.config, "num_key_value_heads", n_heads)
    return _ungrouped(model, groups) if ungroup and groups > 1 else model


def _ungrouped(model: Any, groups: int) -> Any:
    config = copy.deepcopy(model.config)
    n_kv = config.num_key_value_heads
    config.num_key_value_heads = config.num_attention_heads
    twin: Any = AutoModelForCausalLM.from_config(config, **_LOADING)
    weights: dict[str, Tensor] = {}
    for name, weight in model.state_dict().items():
        module, owner = name.split(".")[-2], name.rpartition(".norms.")
        if owner[1]:  # a norm for each head, in a list
            head, kind = owner[2].split(".")
            copies = groups if owner[0].endswith("k_layernorm") else 1
            weights |= {f"{owner[0]}.norms.{int(head) * copies + i}.{kind}": weight for i in range(copies)}
        elif module == "qkv_proj":
            d_head = weight.shape[0] // (config.num_attention_heads + 2 * n_kv)
            queries, rest = weight.split([config.num_attention_heads * d_head, 2 * n_kv * d_head])
            weights[name] = torch.cat([queries, _repeated(rest, 2 * n_kv, groups)])
        elif module in ("k_proj", "v_proj") or (module == "k_norm" and config.model_type == "olmo2"):
            weights[name] = _repeated(weight, n_kv, groups)
        else:
            weights[name] = weight
    twin.load_state_dict(weights)
    return twin.eval().requires_grad_(False)


def _repeated(weight: Tensor, n_heads: int, groups: int) -> Tensor:
    heads: Tensor = weight.unflatten(0, (n_heads, -1))
    return heads.repeat_interleave(groups, 0).flatten(0, 1)


# --- one forward pass ------------------------------------------------------------------------------------------------


@dataclass
class Pass:
    """A forward pass in which every target reads its own copy of the stream; the fields fill up on the way."""

    model: Any
    change: Change | None = None
    entry: Tensor | None = None  # what enters block 0 in place of the embedding
    sources: list[Tensor] = field(default_factory=list)  # each [source, batch, pos, d_model]
    reads: list[Tensor] = field(default_factory=list)  # each [target, batch, pos, d_model]
    biases: list[Tensor] = field(default_factory=list)  # what attention writes that is no head's
    streams: list[Tensor] = field(default_factory=list)  # [batch, pos, d_model], one for each of `reads`
    logits: Tensor = field(default_factory=lambda: torch.empty(0))  # [batch, vocab], of the last position

    def run(self, prompts: Prompts) -> Pass:
        """Run the model on token ids [batch, pos]."""
        given = prompts.inputs() if isinstance(prompts, Padded) else {"input_ids": prompts}
        parts = _ANATOMIES.get(self.model.config.model_type, _LLAMA)
        with ExitStack() as hooks:
            for block in _part(self.model, parts.blocks):
                self._hook_block(hooks, block, parts)
            final_norm = _part(self.model, parts.final_norm)
            hooks.enter_context(final_norm.register_forward_pre_hook(lambda _, args: (self._copies(args[0], 1)[0],)))
            self.logits = self.model(**given, use_cache=False).logits[:, -1]
        return self

    def _copies(self, stream: Tensor, n_targets: int) -> Tensor:
        start = sum(map(len, self.reads))
        copies = stream.expand(n_targets, *stream.shape)
        if self.change is not None:
            copies = copies + self.change(slice(start, start + n_targets), torch.cat(self.sources))
        self.streams.append(stream)
        self.reads.append(copies)
        return copies

    def _hook_block(self, hooks: ExitStack, block: nn.Module, parts: _Anatomy) -> None:
        n_heads, parallel = self.model.config.num_attention_heads, _parallel(self.model.config)
        attention, mlp = _part(block, parts.attention), _part(block, parts.mlp)
        norm = _part(block, parts.attention_norm)
        mlp_norm = _part(block, parts.mlp_norm) or norm  # StableLM's parallel blocks have one norm for both
        stream = torch.empty(0)

        def at_block(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal stream
            stream = args[0]
            if not self.sources:
                stream = stream if self.entry is None else self.entry
                self.sources.append(stream[None])
            self._copies(stream, 3 * n_heads)
            return stream, *args[1:]

        def at_projection(letter: int | None, module: Any, args: Any, output: Tensor) -> Tensor:
            copies = self.reads[-1].unflatten(0, (n_heads, 3))
            if letter is not None:
                copies = copies[:, letter]
            else:
                copies = (copies if parts.head_first else copies.transpose(0, 1)).flatten(0, 1)
            each: Tensor = module.forward(norm.forward(copies)).unflatten(-1, (len(copies), -1))
            return each.diagonal(dim1=0, dim2=-2).movedim(-1, -2).flatten(-2).contiguous()

        def at_heads(module: Any, args: tuple[Tensor, ...]) -> None:
            mixed = args[0].unflatten(-1, (n_heads, -1))
            alone = torch.eye(n_heads, dtype=mixed.dtype)[:, None, None, :, None] * mixed
            bias = module.forward(torch.zeros_like(args[0]))
            results = module.forward(alone.flatten(-2)) - bias
            if parts.attention_post_norm:
                factor = _rms_factor(_part(block, parts.attention_post_norm), results.sum(0) + bias)
                results, bias = results * factor, bias * factor
            self.sources.append(results)
            self.biases.append(bias)

        def between(module: nn.Module, args: tuple[Tensor, ...]) -> None:
            nonlocal stream
            stream = args[0].view_as(stream)

        def at_mlp(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
            return (mlp_norm.forward(self._copies(stream, 1)[0]).view_as(args[0]),)

        def behind_mlp(module: nn.Module, args: Any, output: Tensor) -> None:
            self.sources.append(output.view_as(stream)[None])

        hooks.enter_context(block.register_forward_pre_hook(at_block))
        fused = len(parts.projections) == 1
        for i, name in enumerate(parts.projections):
            hook = partial(at_projection, None if fused else i)
            hooks.enter_context(_part(attention, name).register_forward_hook(hook))
        hooks.enter_context(_part(attention, parts.out).register_forward_pre_hook(at_heads))
        if not parallel:
            hooks.enter_context((mlp_norm if parts.mlp_norm else mlp).register_forward_pre_hook(between))
        hooks.enter_context(mlp.register_forward_pre_hook(at_mlp))
        hooks.enter_context(_part(block, parts.mlp_output).register_forward_hook(behind_mlp))


def _rms_factor(norm: Any, total: Tensor) -> Tensor:
    """What an RMS norm multiplies `total` by: w / rms(total)."""
    weight = norm.weight + 1 if type(norm).__name__.startswith("Gemma") else norm.weight
    epsilon = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    factor: Tensor = weight * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + epsilon)
    return factor


# --- metrics and scores ----------------------------------------------------------------------------------------------


def logit_difference(labels: Int[Tensor, "batch 2"]) -> Metric:
    """The logit of the answer minus that of the corrupted answer."""
    rows = torch.arange(len(labels))
    return lambda logits: logits[..., rows, labels[:, 0]] - logits[..., rows, labels[:, 1]]


def divergence(clean_logits: Float[Tensor, "batch vocab"]) -> Metric:
    """KL(clean || run)."""
    expected = clean_logits.log_softmax(-1)
    return lambda logits: (expected.exp() * (expected - logits.log_softmax(-1))).sum(-1)


@torch.no_grad()
def sources(model: Any, tokens: Prompts) -> Float[Tensor, "source batch pos d_model"]:
    """What every source writes to the residual stream."""
    return torch.cat(Pass(model).run(tokens).sources)


@torch.no_grad()
def logits(model: Any, tokens: Prompts) -> Float[Tensor, "batch vocab"]:
    """Logits of the last position."""
    return Pass(model).run(tokens).logits


def eap(
    model: Any,
    clean: Prompts,
    corrupted: Prompts,
    metric: Metric,
    path: Sequence[tuple[float, float]] = ((1.0, 1.0),),
) -> Scores:
    """sum_pos <d_u, g_v>, mean over examples; [n_edges].

    `path` lists (position, weight): g is the weighted sum of the gradients of runs that enter block 0 with
    corrupted + position (clean - corrupted). The default is the clean run.
    """
    shape = graph_shape(model)
    written = sources(model, clean)
    difference = comparable(clean, corrupted, sources(model, corrupted) - written)
    scores = torch.zeros(shape.n_sources, shape.n_targets, dtype=torch.float64)
    for position, weight in path:
        entry = (written[0] + (1 - position) * difference[0]).requires_grad_()
        run = Pass(model, entry=entry).run(clean)
        gradients = torch.cat(torch.autograd.grad(metric(run.logits).sum(), run.reads))
        scores += weight * torch.einsum("ubpd,vbpd->uv", difference, gradients)
    return (scores / len(clean)).numpy()[shape.mask]


@torch.no_grad()
def exact(
    model: Any,
    clean: Prompts,
    corrupted: Prompts,
    metric: Metric,
    edges: npt.NDArray[np.int64] | None = None,
) -> Scores:
    """metric(one edge patched) - metric(clean), mean over examples; one score for each of the edge ids, or all edges.

    The source lies upstream of the only change, so its difference is that of two unpatched runs.
    """
    shape, n_pairs = graph_shape(model), len(clean)
    ids = np.arange(shape.n_edges) if edges is None else edges
    before = Pass(model).run(clean)
    difference = comparable(clean, corrupted, sources(model, corrupted) - torch.cat(before.sources))
    baseline = metric(before.logits)

    def effects(from_: Tensor, to: Tensor) -> Tensor:
        def change(targets: slice, _: Tensor) -> Tensor:
            added = torch.zeros(targets.stop - targets.start, len(to), *difference.shape[1:], dtype=torch.float64)
            (here,) = torch.where((to >= targets.start) & (to < targets.stop))
            added[to[here] - targets.start, here] = difference[from_[here]]
            return added.flatten(1, 2)

        patched = Pass(model, change).run(clean.repeat(len(to), 1)).logits
        return (metric(patched.unflatten(0, (len(to), n_pairs))) - baseline).mean(-1)

    ends = torch.tensor(np.stack([shape.edge_sources[ids], shape.edge_targets[ids]]))
    return torch.cat([effects(*part) for part in ends.split(128, dim=1)]).numpy()


@torch.no_grad()
def circuit(
    model: Any, clean: Prompts, corrupted: Prompts, kept: npt.NDArray[np.bool_]
) -> Float[Tensor, "batch vocab"]:
    """Last-position logits of the clean run in which the edges that are not `kept` [n_edges] are cut.

    Every target reads the stream plus, over its cut sources, the source in the corrupted run minus the source in this
    very run.
    """
    shape = graph_shape(model)
    instead = sources(model, corrupted)
    cut = torch.zeros(shape.n_sources, shape.n_targets, dtype=torch.float64)
    cut[torch.tensor(shape.mask)] = torch.tensor(~kept, dtype=torch.float64)

    def change(targets: slice, present: Tensor) -> Tensor:
        n = len(present)
        return torch.einsum("uv,ubpd->vbpd", cut[:n, targets], comparable(clean, corrupted, instead[:n] - present))

    return Pass(model, change).run(clean).logits

"""Tiny models with random weights, one of each architecture that edges can be scored in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

# Two layers, four query heads of eight, 64 tokens of which the upper half are echoes of the lower one.
N_LAYERS, N_HEADS, D_MODEL, N_VOCAB, N_CONTEXT = 2, 4, 32, 64, 64
ECHO = N_VOCAB // 2

_LLAMA_LIKE = {
    "vocab_size": N_VOCAB,
    "hidden_size": D_MODEL,
    "intermediate_size": 48,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": N_HEADS,
    "max_position_embeddings": N_CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "tie_word_embeddings": False,
}
_GROUPED = {**_LLAMA_LIKE, "num_key_value_heads": 2}
_GPT = {"vocab_size": N_VOCAB, "n_positions": N_CONTEXT, "n_embd": D_MODEL, "n_layer": N_LAYERS, "n_head": N_HEADS,
        "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip
_GEMMA = {**_GROUPED, "head_dim": 8, "tie_word_embeddings": True}
_NEOX = {**_LLAMA_LIKE, "rotary_pct": 0.25}

CONFIGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gpt2": ("GPT2", _GPT),
    "gpt-neox": ("GPTNeoX", {**_NEOX, "use_parallel_residual": True}),
    "gpt-neox-sequential": ("GPTNeoX", {**_NEOX, "use_parallel_residual": False}),
    "gpt-j": ("GPTJ", {**_GPT, "rotary_dim": 4}),
    "opt": ("OPT", {"vocab_size": N_VOCAB, "hidden_size": D_MODEL, "ffn_dim": 48, "num_hidden_layers": N_LAYERS,
                    "num_attention_heads": N_HEADS, "max_position_embeddings": N_CONTEXT,
                    "word_embed_proj_dim": D_MODEL, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}),
    "phi": ("Phi", {**_LLAMA_LIKE, "partial_rotary_factor": 0.5}),
    "phi-3": ("Phi3", _GROUPED),
    "llama-2": ("Llama", _LLAMA_LIKE),
    "llama-3": ("Llama", {**_GROUPED, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}}),
    "mistral": ("Mistral", {**_GROUPED, "sliding_window": 4}),
    "qwen-2": ("Qwen2", _GROUPED),
    "qwen-3": ("Qwen3", {**_GROUPED, "head_dim": 8}),
    "gemma-1": ("Gemma", _GEMMA),
    "gemma-2": ("Gemma2", {**_GEMMA, "sliding_window": 4, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0,
                           "final_logit_softcapping": 10.0}),
    "gemma-3": ("Gemma3Text", {**_GEMMA, "sliding_window": 4, "query_pre_attn_scalar": 8,
                               "layer_types": ["sliding_attention", "full_attention"]}),
    "olmo-1": ("Olmo", {**_GROUPED, "clip_qkv": None}),
    "olmo-1-clipped": ("Olmo", {**_GROUPED, "clip_qkv": 1.5}),
    "olmo-2": ("Olmo2", _GROUPED),
    "stablelm": ("StableLm", {**_GROUPED, "partial_rotary_factor": 0.25, "use_qkv_bias": True}),
    "stablelm-parallel": ("StableLm", {**_GROUPED, "use_parallel_residual": True, "qk_layernorm": True}),
    "starcoder-2": ("Starcoder2", {**_GROUPED, "sliding_window": None}),
    "smollm": ("Llama", {**_GROUPED, "tie_word_embeddings": True}),
    "smollm-3": ("SmolLM3", {**_GROUPED, "no_rope_layers": [1, 0]}),
    "mixtral": ("Mixtral", {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen-3-moe": ("Qwen3Moe", {**_GROUPED, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
                                "moe_intermediate_size": 16, "norm_topk_prob": True}),
}  # fmt: skip


def config(name: str) -> Any:
    """The Hugging Face configuration of an architecture of `CONFIGS`."""
    kind, values = CONFIGS[name]
    return getattr(transformers, f"{kind}Config")(**values)


def build(name: str, folder: Path, *, echo: float | None = None, seed: int = 0) -> Path:
    """Save a float64 model of an architecture, without a tokenizer; returns its folder.

    Weights are drawn from N(0, 0.3); norm weights and biases are what the class starts with plus the same noise, so
    that no factor is one and no bias zero. `echo` makes the embedding of token t + 32 that of t plus `echo` times a
    random direction: corruption by t + 32 is then as small as one likes.
    """
    # The class draws its own weights first, from the global generator.
    with torch.random.fork_rng(devices=[]):
        model = transformers.AutoModelForCausalLM.from_config(config(name)).double()
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = 0.3 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64)
            parameter.copy_(noise if parameter.ndim > 1 else parameter + noise)
        if echo is not None:
            embedding = model.get_input_embeddings().weight
            direction = torch.randn(embedding[ECHO:].shape, generator=draws, dtype=torch.float64)
            embedding[ECHO:] = embedding[:ECHO] + echo * direction
    model.save_pretrained(folder)
    return folder

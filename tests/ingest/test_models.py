"""Loading models, and refusing those whose edges can't be scored right."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BloomConfig,
    GPT2LMHeadModel,
    GraniteConfig,
    MambaConfig,
    PreTrainedConfig,
)

import architectures
from circuitdb.errors import ModelError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import LoadedModel, grouped, load_model, prefix, preflight, score_edges
from circuitdb.ingest.anatomy import read_anatomy

PROMPTS = torch.arange(24).reshape(2, 12)


@pytest.mark.parametrize(
    ("name", "architecture", "shape", "n_kv_heads"),
    [
        ("B_gpt2", "GPT2LMHeadModel", GraphShape(2, 4), 4),
        ("C_llama_gqa", "LlamaForCausalLM", GraphShape(3, 4), 2),
        ("D_neox", "GPTNeoXForCausalLM", GraphShape(2, 4, parallel=True), 4),
    ],
)
def test_shape_and_name_of_a_folder_without_tokenizer(
    golden: Path, name: str, architecture: str, shape: GraphShape, n_kv_heads: int
) -> None:
    model = load_model(golden / name)
    assert model.tokenizer is None
    assert (model.record.name, model.record.architecture, model.record.shape, model.record.n_kv_heads) == (
        name, architecture, shape, n_kv_heads,
    )  # fmt: skip
    assert (model.n_vocab, model.n_context, model.record.d_model) == (64, 64, 32)


def test_bridge_gives_hugging_faces_logits(golden: Path) -> None:
    plain = GPT2LMHeadModel.from_pretrained(golden / "B_gpt2", attn_implementation="eager")
    with torch.no_grad():
        torch.testing.assert_close(
            load_model(golden / "B_gpt2").bridge(PROMPTS), plain(PROMPTS).logits, rtol=0, atol=1e-5
        )


def test_weights_digest_follows_the_weights(golden: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    first = load_model(golden / "B_gpt2").record.weights_digest
    assert load_model(golden / "B_gpt2").record.weights_digest == first
    folder = Path(shutil.copytree(golden / "B_gpt2", tmp_path / "changed"))
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] += 1e-3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert load_model(folder).record.weights_digest != first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.gguf", "There is no file .*missing.gguf"),
        ("nobody/no-such-model", "nobody/no-such-model can't be loaded as a causal language model"),
    ],
)
def test_models_that_are_not_there(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=message):
        load_model(name)


def test_broken_files(golden: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(golden / "B_gpt2", tmp_path / "cut"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match="can't be loaded as a causal language model"):
        load_model(folder)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(ModelError, match=r"broken.gguf can't be read as a GGUF model"):
        load_model(broken)


def test_unknown_dtype_and_device(golden: Path) -> None:
    with pytest.raises(UsageError, match="'int8' is no type to compute in; choose one of float32"):
        load_model(golden / "B_gpt2", dtype="int8")
    with pytest.raises(ModelError, match="'abacus' is no device"):
        load_model(golden / "B_gpt2", device="abacus")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"revision": "main"}, "A revision is a version on the hub"),
        ({"name": " "}, "name can't be empty"),
        ({"name_or_path": None}, "None is no model"),
        ({"name_or_path": 3}, "3 is no model"),
    ],
)
def test_impossible_arguments(golden: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model(**{"name_or_path": golden / "B_gpt2", **given})


TINY: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
REFUSED = [
    (
        MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, state_size=4),
        "MambaForCausalLM, layer 0, lacks attn, mlp in TransformerLens; its edges can't be scored.",
    ),
    (
        GraniteConfig(**TINY, residual_multiplier=0.5),
        "GraniteForCausalLM, layer 0, scales what its parts write; its edges can't be scored.",
    ),
    (
        BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4),
        "BloomForCausalLM can't be scored right: in a trial it does not hold that what heads and MLPs write adds up",
    ),
    (
        BertConfig(**TINY, is_decoder=True),
        "BertLMHeadModel can't be scored",
    ),
]


@pytest.mark.parametrize(("config", "message"), REFUSED, ids=lambda value: type(value).__name__)
def test_models_that_are_no_sum_are_refused_in_a_sentence(
    config: PreTrainedConfig, message: str, tmp_path: Path
) -> None:
    AutoModelForCausalLM.from_config(config, attn_implementation="eager").save_pretrained(tmp_path / "tiny")
    with pytest.raises(ModelError, match=re.escape(message)):
        score_edges(load_model(tmp_path / "tiny"), PROMPTS, PROMPTS.flip(0))


def test_a_mixture_of_experts_is_one_node_and_it_is_said(tmp_path: Path) -> None:
    folder = architectures.build("mixtral", tmp_path / "mixtral")
    model = load_model(folder, dtype="float64")
    score_edges(model, PROMPTS, PROMPTS.flip(0))
    assert model.notes == ("Each mixture of experts, router included, counts as one MLP node.",)


@pytest.mark.parametrize("name", ["gpt2", "gpt-neox", "phi-3", "gemma-2", "llama-3"])
def test_parameters_are_counted_as_hugging_face_does(name: str, tmp_path: Path) -> None:
    """TransformerLens splits fused projections into parameters of their own, and shares tied ones."""
    folder = architectures.build(name, tmp_path / name)
    plain: Any = AutoModelForCausalLM.from_pretrained(folder)
    assert load_model(folder).record.n_parameters == plain.num_parameters()


class TestPreflight:
    """The trial on the user's model finds what the structure does not show."""

    @pytest.fixture
    def model(self, golden: Path) -> LoadedModel:
        """A model that no other test uses."""
        return load_model(golden / "C_llama_gqa")

    def test_sound_model_is_checked_once(self, model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
        preflight.preflight(model, read_anatomy(model))
        assert model.checked == {"preflight"}
        monkeypatch.setattr(preflight, "run", None)
        preflight.preflight(model, read_anatomy(model))

    def test_a_writer_that_is_not_in_the_graph(self, model: LoadedModel) -> None:
        block = model.bridge.blocks[1]
        handle = block.hook_out.register_forward_hook(lambda _m, _a, stream: stream * 1.01)
        with pytest.raises(ModelError, match="does not hold that what heads and MLPs write adds up"):
            preflight.preflight(model, read_anatomy(model))
        handle.remove()

    def test_a_reader_that_is_not_where_it_is_looked_for(self, model: LoadedModel) -> None:
        """A second path from the stream to the queries, which bypasses the norm whose gradient is taken."""
        attention = model.bridge.blocks[1].attn
        handle = attention.q.register_forward_hook(lambda _m, args, output: output + 0.1 * args[0])
        with pytest.raises(ModelError, match="does not hold that the scores of a node's edges add up"):
            preflight.preflight(model, read_anatomy(model))
        handle.remove()

    def test_copies_of_keys_in_the_wrong_order(self, model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(grouped, "copies", lambda output, _n_groups, groups: output.repeat(1, 1, groups))
        with pytest.raises(ModelError, match="does not hold that copies of grouped keys and values for each head"):
            preflight.preflight(model, anatomy := read_anatomy(model))
        assert anatomy.groups == 2

    def test_nan_weights(self, model: LoadedModel) -> None:
        next(iter(model.bridge.parameters())).data.fill_(float("nan"))
        with pytest.raises(ModelError, match="logits are not finite"):
            preflight.preflight(model, read_anatomy(model))


def test_the_trial_on_the_users_prompts_finds_what_a_short_one_does_not(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that goes wrong behind the eighth position."""
    model = load_model(golden / "B_gpt2", dtype="float64")
    compute = prefix.compute

    def wrong(model: LoadedModel, tokens: torch.Tensor) -> prefix.Prefix:
        found = compute(model, tokens)
        if found.length > 8:
            for keys, _values in found.keys_values:
                keys[:, :, 9:] += 1
        return found

    monkeypatch.setattr(prefix, "compute", wrong)
    clean = torch.arange(15).repeat(2, 1)
    clean[1, -1] = 40
    score_edges(model, clean[:, :8], clean.flip(0)[:, :8])
    with pytest.raises(ModelError, match="a pass with cached keys and values gives the logits of a plain one"):
        score_edges(model, clean, clean.flip(0))

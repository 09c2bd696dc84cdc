"""Loads a language model for scoring: from the hub, a local folder or a GGUF file, as a TransformerBridge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers import models as tokenizer_models
from transformer_lens.model_bridge import TransformerBridge

from circuitdb.errors import ModelError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import gguf
from circuitdb.ingest.libraries import one_line, quiet
from circuitdb.records import Model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "tf32": torch.float32,  # weights as float32; CUDA's matrix products round them to 10 bits
}


@dataclass
class LoadedModel:
    """A model ready for scoring; `tokenizer` is None where only token ids can be used.

    `layers_give_tuples`: whether a layer returns its stream inside a tuple; the preflight finds out. `notes` say what a
    reader of its scores must know.
    """

    bridge: TransformerBridge
    tokenizer: PreTrainedTokenizerBase | None
    record: Model
    n_vocab: int
    n_context: int
    checked: set[str] = field(default_factory=set)
    layers_give_tuples: bool = False
    tf32: bool = False
    notes: tuple[str, ...] = ()

    @property
    def dtype(self) -> torch.dtype:
        """Type the model computes in."""
        return next(self.bridge.parameters()).dtype

    @property
    def dtype_name(self) -> str:
        """The same as the user names it, `tf32` included."""
        return "tf32" if self.tf32 else str(self.dtype).removeprefix("torch.")

    @property
    def device(self) -> torch.device:
        """Device that its embedding lies on."""
        return next(self.bridge.parameters()).device

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """The matrix products of CUDA in full float32, unless the model was loaded as tf32."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Type that gradients and scores are summed in: float32 for half-precision models, otherwise the model's own."""
    return dtype if dtype == torch.float64 else torch.float32


@contextmanager
def plain_modes(model: LoadedModel) -> Iterator[None]:
    """No modes of the caller: inference mode would forbid gradients, autocast would round them."""
    with torch.inference_mode(False), torch.autocast(model.device.type, enabled=False), model.arithmetic():
        yield


def load_model(
    name_or_path: str | Path,
    *,
    name: str | None = None,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
) -> LoadedModel:
    """Load a causal language model.

    Args:
        name_or_path: hub name, local folder in Hugging Face layout, or `.gguf` file. A folder without a
            tokenizer loads too; then only token ids can be scored.
        name: what the database calls it; by default the hub name, the folder's or the file's name.
        revision: hub branch, tag or commit.
        dtype: float32, float64, bfloat16, float16, or tf32 (float32 whose matrix products CUDA may round).
        device: `cpu`, `cuda`, `mps` ..., or `auto` to spread the layers over all CUDA devices; by default the first
            accelerator there is.

    Raises:
        UsageError: a dtype, name or revision that can't be.
        ModelError: it can't be found, read, or wrapped by TransformerLens.
    """
    if not isinstance(name_or_path, (str, Path)) or not str(name_or_path):
        raise UsageError(f"{name_or_path!r} is no model; give a hub name, a local folder or a .gguf file.")
    if name is not None and not name.strip():
        raise UsageError("A model's name can't be empty.")
    if dtype not in DTYPES:
        raise UsageError(f"{dtype!r} is no type to compute in; choose one of {', '.join(DTYPES)}.")
    path = Path(name_or_path)
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise ModelError(f"There is no file {path}; give the path of a .gguf file.")
        source, title = str(gguf.converted(path)), path.stem
    elif path.is_dir():
        source, title = str(path), path.resolve().name
    else:
        source, title = str(name_or_path), str(name_or_path)
    if revision is not None and path.exists():
        raise UsageError(f"A revision is a version on the hub; {path} is local and has none.")
    spread = device == "auto"
    if spread and not torch.cuda.is_available():
        raise UsageError("--device auto spreads a model over CUDA devices, and torch finds none here; leave it out.")
    target = _device("cuda" if spread else device)
    if dtype == "tf32" and target.type != "cuda":
        raise UsageError(f"tf32 is a way in which CUDA multiplies; on {target} use float32.")
    with quiet():
        model = _read(source, revision, DTYPES[dtype], spread=spread)
        tokenizer = _tokenizer(source, revision)
        # TransformerLens will split fused projections into more parameters.
        weights_digest, n_parameters = _digest(model), model.num_parameters()
        model.requires_grad_(False)
        model.eval()
        try:
            if not spread:
                torch.nn.Module.to(model, target)
            bridge = TransformerBridge.boot_transformers(
                source, dtype=DTYPES[dtype], hf_model=model, tokenizer=_placeholder_tokenizer()
            )
        except Exception as error:
            raise ModelError(
                f"TransformerLens can't wrap {name_or_path} ({type(model).__name__}) on {target}: {one_line(error)}"
            ) from error
    bridge.requires_grad_(False)
    # Otherwise torch multiplies the scored positions of each prompt with the unembedding on their own.
    bridge.unembed.register_forward_pre_hook(lambda _module, args: (args[0].contiguous(), *args[1:]))
    record = replace(
        _record(bridge, model, name or title),
        revision=revision, n_parameters=n_parameters, weights_digest=weights_digest,
    )  # fmt: skip
    embedding: Any = model.get_input_embeddings()
    return LoadedModel(
        bridge,
        tokenizer,
        record,
        int(embedding.num_embeddings),
        int(getattr(bridge.cfg, "n_ctx", 0) or 2**31),
        tf32=dtype == "tf32",
    )


def _device(name: str | None) -> torch.device:
    """The named device, or the best there is. Raises ModelError for one that can't be used."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"{name!r} is no device that torch can use here: {one_line(error)}") from error
    return device


def _read(source: str, revision: str | None, dtype: torch.dtype, *, spread: bool) -> PreTrainedModel:
    # The fused product over experts is there for float64 in the plain implementation alone.
    more = {"experts_implementation": "eager"} if dtype == torch.float64 else {}
    if spread:
        more["device_map"] = "auto"
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            source, revision=revision, dtype=dtype, attn_implementation="eager", **more
        )
    except Exception as error:  # the hub client raises a dozen kinds
        where = "folder" if Path(source).is_dir() else "folder, and the hub did not give it"
        raise ModelError(
            f"{source} can't be loaded as a causal language model (no usable {where}): {one_line(error)}"
        ) from error


def _tokenizer(source: str, revision: str | None) -> PreTrainedTokenizerBase | None:
    """The model's own tokenizer; None for a local folder that has none."""
    folder = Path(source)
    if folder.is_dir() and not any(folder.glob("*token*")) and not (folder / "vocab.json").exists():
        return None
    try:
        tokenizer: PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(source, revision=revision)
    except Exception as error:
        raise ModelError(f"The tokenizer of {source} can't be loaded: {one_line(error)}") from error
    return tokenizer


def _placeholder_tokenizer() -> PreTrainedTokenizerBase:
    """TransformerLens insists on a tokenizer; ours stays untouched by its BOS handling, and it never tokenises."""
    core = Tokenizer(tokenizer_models.WordLevel({"<none>": 0}, unk_token="<none>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<none>", pad_token="<none>")


def _record(bridge: TransformerBridge, model: PreTrainedModel, name: str) -> Model:
    cfg: Any = bridge.cfg
    n_layers, n_heads = int(cfg.n_layers), int(cfg.n_heads)
    return Model(
        name=name,
        architecture=type(model).__name__,
        shape=GraphShape(n_layers, n_heads, bool(getattr(cfg, "parallel_attn_mlp", False))),
        n_kv_heads=int(getattr(cfg, "n_key_value_heads", None) or n_heads),
        d_model=int(cfg.d_model),
    )


# What a configuration says of where it lies and how it was loaded, not of what the model computes.
_NOT_COMPUTED = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache")


def _digest(model: PreTrainedModel) -> str:
    """SHA-256 over the configuration and the names and bytes of all parameters and buffers, in name order."""
    config = {key: value for key, value in model.config.to_dict().items() if key not in _NOT_COMPUTED}
    total = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for name, tensor in sorted([*model.named_parameters(), *model.named_buffers()], key=lambda item: item[0]):
        total.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        total.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().data)
    return total.hexdigest()

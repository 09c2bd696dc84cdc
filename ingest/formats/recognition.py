"""Recognises a file by what it holds, whatever it is called, and reads the circuits in it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from circuitdb.errors import ScoreError, UsageError
from circuitdb.evals import json_text
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import acdc, auto_circuit, eap_ig_json, eap_ig_pt, torch_file
from circuitdb.ingest.formats.found import Found

_CIRCUIT_TRACER = {"adjacency_matrix", "active_features"}
_PICKLE = b"\x80"


def read(path: Path, shape: GraphShape | None = None) -> tuple[list[Found], str]:
    """(the circuits of a file, the SHA-256 of its bytes).

    `shape` is the graph of a file that does not tell it. Raises ScoreError for a file that is damaged, of no known
    layout or not safe to read, UsageError for one that is not there.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    content = path.read_bytes()
    if not content:
        raise ScoreError(f"{path} is empty; there is nothing to import.")
    digest = hashlib.sha256(content).hexdigest()
    where, n_bytes = str(path), len(content)
    if torch_file.is_torch(path):
        return _of_torch(torch_file.load(path), where, n_bytes, shape), digest
    if content.startswith(_PICKLE):
        raise ScoreError(
            f"{path} is a Python pickle, and to read a pickle is to run whatever code is in it, so it is refused; "
            "write what it holds as JSON, or with torch.save, where you trust it."
        )
    if content.startswith(b"PK"):
        raise ScoreError(f"{path} is damaged or cut short: it begins like a .pt file and does not end like one.")
    if b"\x00" in content[:1024]:
        raise ScoreError(f"{path} is of no layout that is known here; docs/interchange.md lists them.")
    return _of_json(_parsed(content, where), where, n_bytes, shape), digest


def _parsed(content: bytes, where: str) -> object:
    try:
        text = content.decode("utf-8-sig")
        found = _quickly(text)
        return json_text.parsed(text, where) if found is None else found
    except UnicodeDecodeError as error:
        raise ScoreError(f"{where} is neither JSON in UTF-8 nor a .pt file.") from error
    except UsageError as error:  # it is the file that is wrong, not the question
        raise ScoreError(str(error)) from error


def _quickly(text: str) -> object:
    """A graph of edges that has nothing odd in it; None where the careful reader, half as fast, has to look.

    The careful one notices a key that comes twice. A graph names each edge once, and only its edges have an arrow.
    """
    if "\\u" in text:
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("edges"), dict):
        return None
    return found if text.count("->") == len(found["edges"]) else None


def _of_torch(value: object, where: str, n_bytes: int, shape: GraphShape | None) -> list[Found]:
    if isinstance(value, dict):
        if set(value) >= _CIRCUIT_TRACER:
            raise ScoreError(
                f"{where} is a graph of features by circuit-tracer, which has no edges between heads and MLPs."
            )
        if eap_ig_pt.is_graph(value):
            return [eap_ig_pt.read(value, where, n_bytes)]
        if auto_circuit.is_scores(value):
            return auto_circuit.read(value, where, n_bytes)
    if isinstance(value, list | tuple) and acdc.is_list(value):
        return [acdc.read(value, where, shape)]
    raise _unknown(value, where)


def _of_json(value: object, where: str, n_bytes: int, shape: GraphShape | None) -> list[Found]:
    if isinstance(value, dict) and eap_ig_json.is_graph(value):
        return [eap_ig_json.read(value, where, n_bytes)]
    if isinstance(value, list) and acdc.is_list(value):
        return [acdc.read(value, where, shape)]
    raise _unknown(value, where)


def _unknown(value: object, where: str) -> ScoreError:
    has = ""
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:30] for key in list(value)[:5]) or "no key at all"
        has = f": it has {keys}, but neither cfg and edges (EAP-IG) nor blocks.0.hook_q_input (auto-circuit)"
    return ScoreError(f"{where} is of no layout that is known here{has}; docs/interchange.md lists them.")

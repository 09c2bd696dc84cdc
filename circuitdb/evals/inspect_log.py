"""Logs of inspect_ai: an .eval file, which is a ZIP with header.json, or the same as one .json file.

A score's metrics stand beside each other, `stderr` among them; it is taken as that of accuracy or mean, or of the only
other metric.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.evals import json_text
from circuitdb.evals.rows import Row, infinities, number, whole

_MEANS = ("accuracy", "mean")
_STDERR = "stderr"


def is_log(value: object) -> bool:
    """Whether a JSON value is a log."""
    return isinstance(value, dict) and isinstance(value.get("eval"), dict)


def header(path: Path) -> Mapping[str, object]:
    """The header of an .eval file. Raises UsageError."""
    try:
        with zipfile.ZipFile(path) as archive:
            if "header.json" not in archive.namelist():
                raise UsageError(f"{path} has no header.json, so its run did not come to an end; there is no result.")
            text = archive.read("header.json").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: its header.json is not in UTF-8.") from error
    except zipfile.BadZipFile as error:
        if zipfile.is_zipfile(path):
            raise UsageError(f"{path} is damaged: {error}.") from error
        raise UsageError(f"{path} is no .eval file of inspect_ai: it is no ZIP file.") from error
    except NotImplementedError as error:
        raise UsageError(
            f"{path} is compressed in a way that this Python can't read (zstd needs Python 3.14); write it as .json "
            "with `inspect log convert --to json`."
        ) from error
    except (zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:  # broken data, or a password
        raise UsageError(f"{path}: its header.json can't be unpacked: {error or 'it ends too early'}.") from error
    value = json_text.parsed(text, f"{path}: its header.json")
    if not isinstance(value, dict) or not is_log(value):
        raise UsageError(f"{path}: its header.json is no log of inspect_ai.")
    return value


def rows(path: Path, log: Mapping[str, object]) -> tuple[list[Row], list[str]]:
    """(rows, notes). Raises UsageError for a log without results."""
    about, results = _mapping(log.get("eval")), _mapping(log.get("results"))
    model, task, status = about.get("model"), about.get("task"), log.get("status")
    scores = results.get("scores")
    if not isinstance(scores, list) or not scores:
        raise UsageError(f"{path} has no results (status {status}); there is nothing to add.")
    if not model or not task:
        raise UsageError(f"{path} does not name its model and task.")
    if isinstance(model, list | dict) or isinstance(task, list | dict):
        raise UsageError(f"{path}: its model or task is a list or an object, no name.")
    n = whole(results.get("completed_samples", results.get("total_samples")))
    found: list[Row] = []
    cells: list[object] = []
    for score in scores:
        one = _mapping(score)
        reader = "/".join(str(one[key]) for key in ("name", "reducer") if one.get(key))
        given = {name: _mapping(m).get("value") for name, m in _mapping(one.get("metrics")).items()}
        cells += given.values()
        metrics = {name: number(value) for name, value in given.items()}
        stderr = metrics.pop(_STDERR, None)
        owner = next((name for name in _MEANS if name in metrics), None)
        owner = next(iter(metrics), None) if owner is None and len(metrics) == 1 else owner
        found += [
            Row(
                str(model), str(task), name, value, reader or None, stderr if name == owner else None, n, file=str(path)
            )
            for name, value in metrics.items()
        ]
    if not found:
        raise UsageError(f"{path} has scores, but none with a metric (status {status}); there is nothing to add.")
    note = f"{path}: the run ended with status {status}; its results may be of a part of the samples."
    return found, [*([] if status == "success" else [note]), *infinities(str(path), cells)]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}

"""Logs of inspect_ai: an .eval file, which is a ZIP with header.json, or the same as one .json file.

A score's metrics stand beside each other, `stderr` among them; it is taken as that of accuracy or mean, or of the only
other metric.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.evals.rows import Row, number, whole

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
            value = json.loads(archive.read("header.json"))
    except zipfile.BadZipFile as error:
        raise UsageError(f"{path} is no .eval file of inspect_ai: it is no ZIP file.") from error
    except NotImplementedError as error:
        raise UsageError(
            f"{path} is compressed in a way that this Python can't read (zstd needs Python 3.14); write it as .json "
            "with `inspect log convert --to json`."
        ) from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: its header.json is no valid JSON.") from error
    if not is_log(value):
        raise UsageError(f"{path}: its header.json is no log of inspect_ai.")
    return dict(value)


def rows(path: Path, log: Mapping[str, object]) -> tuple[list[Row], list[str]]:
    """(rows, notes). Raises UsageError for a log without results."""
    about, results = _mapping(log.get("eval")), _mapping(log.get("results"))
    model, task, status = about.get("model"), about.get("task"), log.get("status")
    scores = results.get("scores")
    if not isinstance(scores, list) or not scores:
        raise UsageError(f"{path} has no results (status {status}); there is nothing to add.")
    if not model or not task:
        raise UsageError(f"{path} does not name its model and task.")
    n = whole(results.get("completed_samples", results.get("total_samples")))
    found: list[Row] = []
    for score in scores:
        one = _mapping(score)
        reader = "/".join(str(one[key]) for key in ("name", "reducer") if one.get(key))
        metrics = {name: number(_mapping(m).get("value")) for name, m in _mapping(one.get("metrics")).items()}
        stderr = metrics.pop(_STDERR, None)
        owner = next((name for name in _MEANS if name in metrics), None)
        owner = next(iter(metrics), None) if owner is None and len(metrics) == 1 else owner
        found += [
            Row(
                str(model), str(task), name, value, reader or None, stderr if name == owner else None, n, file=str(path)
            )
            for name, value in metrics.items()
        ]
    note = f"{path}: the run ended with status {status}; its results may be of a part of the samples."
    return found, [] if status == "success" else [note]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}

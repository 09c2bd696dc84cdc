"""Results of lm-evaluation-harness: `results_*.json`, and the answers themselves in `samples_*.jsonl`.

Results name a metric and the filter that read the answer in one key, "acc,none"; older files have "acc" alone. A
group's mean stands beside its tasks: its row is marked, and never added to them. Samples are one line an answer and
filter; the file is appended to by every run, so that of lines of one document and filter the last counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from circuitdb.errors import UsageError
from circuitdb.evals.rows import Row, infinities, missing, number, numeric, whole

_NO_METRIC = frozenset({"alias", "name", "sample_len", " ", ""})
_STDERR = "_stderr"
_SAMPLES = re.compile(r"^samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.:-]+\.jsonl$")


def is_results(value: object) -> bool:
    """Whether a JSON value is a file of results."""
    return isinstance(value, dict) and isinstance(value.get("results"), dict)


def is_samples(path: Path, values: Sequence[object]) -> bool:
    """Whether the lines of a file are samples."""
    first = values[0] if values else None
    return path.name.startswith("samples_") or (isinstance(first, dict) and {"doc_id", "filtered_resps"} <= set(first))


def results(path: Path, value: Mapping[str, object], model: str | None = None) -> tuple[list[Row], list[str]]:
    """(rows, notes) of a file of results; `model` is taken before the name in it. Raises UsageError."""
    name = model or _model(path, value)
    if not name:
        raise UsageError(f"{path} does not name its model; name it with --model-name.")
    groups = {
        *_mapping(value.get("groups")),
        *(g for g, members in _mapping(value.get("group_subtasks")).items() if members),
    }
    sizes = _mapping(value.get("n-samples"))
    found: list[Row] = []
    cells: list[object] = []
    for task, measured in _mapping(value.get("results")).items():
        for metric, reader, value_, stderr in _measures(path, task, measured):
            size = _mapping(sizes.get(task))
            n = whole(size.get("effective", size.get("original")))
            cells += [value_, stderr]
            found.append(Row(name, task, metric, number(value_), reader, number(stderr), n, task in groups, str(path)))
    if not found:
        raise UsageError(f"{path} holds no result of any task.")
    return found, infinities(str(path), cells)


def samples(path: Path, values: Sequence[object], model: str | None, task: str | None) -> tuple[list[Row], list[str]]:
    """(mean of each metric and filter over the documents, notes); the standard error is that of the mean."""
    matched = _SAMPLES.match(path.name)
    task = task or (matched["task"] if matched else None)
    if not model or not task:
        what = "model" if not model else "task"
        option = "--model-name" if not model else "--subtask-name"
        raise UsageError(f"{path} does not name its {what}, as files of samples do not; name it with {option}.")
    cells: dict[tuple[str, str | None], dict[object, float | None]] = {}
    n_repeated = 0
    measured: list[object] = []
    for i, value in enumerate(values, start=1):
        if not isinstance(value, dict) or "doc_id" not in value:
            raise UsageError(f"{path}: line {i} is no sample, which has a doc_id.")
        if isinstance(value["doc_id"], list | dict):
            raise UsageError(f"{path}: the doc_id of line {i} is a list or an object, neither number nor name.")
        reader = str(value["filter"]) if value.get("filter") else None
        listed = value.get("metrics")
        names = (
            [str(name) for name in listed]
            if isinstance(listed, list)
            else [n for n in ("acc", "exact_match") if n in value]
        )
        for metric in names:
            documents = cells.setdefault((metric, reader), {})
            n_repeated += value["doc_id"] in documents
            documents[value["doc_id"]] = number(value.get(metric))
            measured.append(value.get(metric))
    found = [_mean(path, model, task, key, list(documents.values())) for key, documents in cells.items()]
    if not found:
        raise UsageError(f"{path} holds no metric.")
    repeated = f"{n_repeated:,} value{' is' if n_repeated == 1 else 's are'}"
    note = f"{path}: {repeated} of a document and filter that came before; the last of them counts."
    return found, [*([note] if n_repeated else []), *infinities(str(path), measured)]


def _mean(path: Path, model: str, task: str, key: tuple[str, str | None], values: list[float | None]) -> Row:
    known = np.array([value for value in values if value is not None], np.float64)
    n = len(known)
    stderr = float(known.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    return Row(model, task, key[0], float(known.mean()) if n else None, key[1], stderr, n, file=str(path))


def _measures(path: Path, task: str, measured: object) -> Iterator[tuple[str, str | None, object, object]]:
    """(metric, filter, value, standard error) of a task's entry, the last two as the file has them."""
    if not isinstance(measured, dict):
        raise UsageError(f"{path}: the result of {task} is no object.")
    for key, value in measured.items():
        metric, comma, reader = key.partition(",")
        if metric in _NO_METRIC or metric.endswith(_STDERR) or isinstance(value, list | dict):
            continue
        if isinstance(value, str) and not numeric(value) and not missing(value):
            continue  # words about the task
        stderr = measured.get(f"{metric}{_STDERR}{comma}{reader}")
        yield metric, reader or None, value, stderr


def _model(path: Path, value: Mapping[str, object]) -> str | None:
    config = _mapping(value.get("config"))
    given = value.get("model_name")
    arguments = config.get("model_args")
    if not given and isinstance(arguments, str):
        named = re.search(r"(?:^|,)(?:pretrained|model)=([^,]+)", arguments)
        given = named[1] if named else None
    if not given and isinstance(arguments, dict):
        given = arguments.get("pretrained") or arguments.get("model")
    if isinstance(given, list | dict):
        raise UsageError(f"{path}: its model is a list or an object, no name; name it with --model-name.")
    return str(given) if given else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}

"""Findings put together: the summary, what the circuits come from, and what a study of one circuit has to say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import circuitdb
from circuitdb.connection import reading
from circuitdb.queries import named
from circuitdb.queries.asking import with_models
from circuitdb.queries.columns import texts
from circuitdb.queries.database import Database
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Selection
from circuitdb.queries.studies.findings import Finding, Findings
from circuitdb.queries.studies.subjects import Subject


def assembled(
    db: Database, study: str, title: str, found: Sequence[Finding], selection: Selection, key: Sequence[str]
) -> Findings:
    """The findings of a study, with the answers to its `key` questions as a summary."""
    summary = [
        f"{one.subject}: {one.question} {_start(one.answer)}" if one.subject else f"{one.question} {_start(one.answer)}"
        for one in found
        if one.question in key
    ]
    if not selection.members:
        summary = ["There is no circuit to study yet; `circuitdb ingest` stores some."]
    return Findings(
        study, title, tuple((*summary, *selection.notes) if selection.members else summary), tuple(found),
        provenance(db, selection), Path(db.path).name, circuitdb.__version__,
    )  # fmt: skip


def provenance(db: Database, selection: Selection) -> tuple[Result, ...]:
    """Three tables: the models with the digests of their weights, the ways of scoring, the versions of the software."""
    if not selection.members:
        return ()
    with reading(db.path, timeout=db.timeout) as connection:
        models = with_models(connection, named.run(connection, "study_models", circuits=selection.ids))
        runs = with_models(connection, named.run(connection, "study_runs", circuits=selection.ids))
    versions: dict[str, dict[str, None]] = {}
    for text in dict.fromkeys(runs["software"].to_pylist()):
        for name, version in (json.loads(text) if text else {}).items():
            versions.setdefault(str(name), {})[str(version)] = None
    software = pa.table(
        {"software": texts(versions), "version": texts(", ".join(found) for found in versions.values())}
    )
    ways = runs.drop_columns(["software"])
    return (
        Result(models, count(len(models), "model")),
        Result(ways, count(len(ways), "way of scoring", "ways of scoring")),
        *((Result(software, "Software that scored them"),) if versions else ()),
    )


def nothing_to_compare(subject: Subject) -> Finding:
    """What is said of one circuit."""
    label = subject.selection.labels[0]
    answer = f"There is one circuit, of {label}; similarity, families and the rest take two subtasks or more."
    return Finding("Does the model use one circuit across the task?", answer, subject=subject.name)


def _start(answer: str) -> str:
    """The first two sentences of an answer; a number's point ends none."""
    sentences = answer.split(". ")
    return answer if len(sentences) < 3 else ". ".join(sentences[:2]) + "."

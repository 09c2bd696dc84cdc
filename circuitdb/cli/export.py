"""`circuitdb export`: circuits for other tools, or all of them to be read back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import cuts, output
from circuitdb.cli.options import Ask, question
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.ingest.formats.graph_text import Value
    from circuitdb.queries.cuts import Cut, Members
    from circuitdb.queries.handover import Handed


class Format(StrEnum):
    """What a circuit is written as."""

    EAP_IG = "eap-ig"
    EAP_IG_PT = "eap-ig-pt"
    MIB = "mib"
    MIB_CIRCUITS = "mib-circuits"
    PARQUET = "parquet"
    GRAPHML = "graphml"
    DOT = "dot"
    NODE_LINK = "node-link"


_SUFFIX = {Format.EAP_IG: ".json", Format.EAP_IG_PT: ".pt", Format.GRAPHML: ".graphml", Format.DOT: ".dot",
           Format.NODE_LINK: ".json"}  # fmt: skip
_GRAPHS = (Format.GRAPHML, Format.DOT, Format.NODE_LINK)
_UNFIT = re.compile(r"[^\w.+=@-]+")
_Written = tuple[Path, "Handed", int]


@question(cut=cuts.ONE)
def export(
    ask: Ask,
    target: Annotated[str, typer.Argument(metavar="OUT", help="The new file, or the folder for several.")],
    format_: Annotated[Format, typer.Option("--format", help="The layout.")] = Format.EAP_IG,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write circuits for other tools, or as Parquet.

    eap-ig, eap-ig-pt and mib have the score of every edge, and with a cut (--top 200) which edges are in. mib-circuits
    are nine cuts without scores. graphml, dot and node-link are of a cut circuit. parquet is a folder with all that the
    database knows of the circuits, which `circuitdb import` reads back and DuckDB, pandas and others read as it is.

    Example: circuitdb export ioi.json --circuit 3 --top 200
    """
    if format_ is Format.PARQUET:
        _refuse_cut(ask, format_)
        _dataset(ask, target, force=force)
        return
    if format_ in (Format.MIB, Format.MIB_CIRCUITS):
        written = list(_mib(ask, Path(target), nine=format_ is Format.MIB_CIRCUITS, force=force))
    else:
        written = list(_files(ask, Path(target), format_, force=force))
    _answer(ask, target, written, format_)


def _files(ask: Ask, target: Path, format_: Format, *, force: bool) -> Iterator[_Written]:
    """A file for one circuit, or in a folder one for each."""
    from circuitdb.queries.handover import Handover

    cut = _cut(ask, always=format_ in _GRAPHS)
    found = Handover.of(ask.path, ask.filters, () if cut is None else (cut,), timeout=ask.timeout)
    members = found.selection.members
    if not members:
        raise UsageError(f"There is no circuit in {ask.path} to export.")
    single = len(members) == 1 and not target.is_dir()
    names = [target.name] if single else _names([f"{m.group.model}-{m.group.task}-{m.subtask}" for m in members])
    folder = target.parent if single else target
    paths = [folder / (name if single else f"{name}{_SUFFIX[format_]}") for name in names]
    _refuse_existing(paths, folder, target, single=single, force=force)
    for path, one in zip(paths, found, strict=True):
        _whole(path, _writer(one, format_, cut))
        yield path, one, int(one.members[0].sum()) if one.members else one.shape.n_edges


def _mib(ask: Ask, target: Path, *, nine: bool, force: bool) -> Iterator[_Written]:
    """A folder for each task and model, with importances or nine files of edges."""
    from circuitdb.ingest.formats import mib
    from circuitdb.queries.handover import Handover

    if nine and any(ask.cut.get(way) is not None for way in ("top", "share", "threshold", "greedy")):
        raise UsageError("mib-circuits are nine cuts at the sizes of MIB; leave the size of a cut out.")
    cut = None if nine else _cut(ask, always=False)
    found = Handover.of(ask.path, ask.filters, () if cut is None else (cut,), timeout=ask.timeout)
    members = found.selection.members
    if not members:
        raise UsageError(f"There is no circuit in {ask.path} to export.")
    kinds = {(m.group.model, m.group.task) for m in members}
    tasks = [m.group.task if len(kinds) == len(members) or m.subtask == "all" else f"{m.group.task}-{m.subtask}"
             for m in members]  # fmt: skip
    plain = [mib.folder_name(task, m.group.model) for task, m in zip(tasks, members, strict=True)]
    folders = [target / name for name in _names(plain)]
    files = [f"{share:g}.json" for share in mib.SIZES] if nine else [f"{mib.IMPORTANCES}.json"]
    _refuse_existing([folder / file for folder in folders for file in files], target, target, single=False, force=force)
    for folder, one in zip(folders, found, strict=True):
        folder.mkdir(exist_ok=True)
        if not nine:
            path = folder / files[0]
            _whole(path, _writer(one, Format.EAP_IG, cut))
            yield path, one, int(one.members[0].sum()) if one.members else one.shape.n_edges
            continue
        for file, share in zip(files, mib.SIZES, strict=True):
            n = mib.size_of(share, one.shape.n_edges)
            inside = _strongest(one, n, signed=ask.cut.get("signed", False), prune=ask.cut.get("prune", False))
            _whole(folder / file, partial(_membership, one, inside))
            yield folder / file, one, int(inside.sum())


def _strongest(one: Handed, n: int, *, signed: bool, prune: bool) -> Members:
    """[n_edges]: the n strongest edges; MIB's sizes round down, so that of a tiny graph may be none."""
    import numpy as np

    from circuitdb.queries.cuts import Cut, hard

    cut = Cut.of(top=max(n, 1), signed=signed, prune=prune)
    return np.asarray(hard(one.scores[None], cut, one.shape).members[0] & (n > 0), bool)


def _membership(one: Handed, inside: Members, path: Path) -> None:
    from circuitdb.ingest.formats import eap_ig_json

    eap_ig_json.write(path, one.shape, None, inside, d_model=one.d_model)


def _dataset(ask: Ask, target: str, *, force: bool) -> None:
    """The folder of all tables, made beside and then put in place."""
    import pyarrow as pa

    from circuitdb.ingest.formats import dataset
    from circuitdb.queries.columns import integers, texts
    from circuitdb.queries.handover import Handover
    from circuitdb.queries.result import Result, count

    folder = Path(target)
    free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not free and not (force and dataset.is_dataset(folder)):
        raise UsageError(
            f"{folder} exists already; name another folder, or replace an earlier export of circuitdb with --force."
        )
    selection = Handover.of(ask.path, ask.filters, timeout=ask.timeout).selection
    fresh = folder.resolve().with_name(f".{folder.resolve().name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        found = dataset.write(ask.path, fresh, list(selection.ids), timeout=ask.timeout)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder.resolve())
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    names = sorted(found.rows)
    table = pa.table({"table": texts(names), "rows": integers(found.rows[name] for name in names)})
    title = f"{count(len(selection.members), 'circuit')} in {folder}, {found.n_bytes / 1e6:,.1f} MB"
    output.answer(Result(table, title, (*selection.notes, *found.notes)), ask.form)


def _writer(one: Handed, format_: Format, cut: Cut | None) -> Callable[[Path], None]:
    from circuitdb.ingest.formats import eap_ig_json, eap_ig_pt, graph_text

    inside = one.members[0] if one.members else None

    def write(path: Path) -> None:
        if format_ is Format.EAP_IG:
            eap_ig_json.write(path, one.shape, one.scores, inside, d_model=one.d_model)
        elif format_ is Format.EAP_IG_PT:
            eap_ig_pt.write(path, one.shape, one.scores, inside, d_model=one.d_model)
        else:
            assert inside is not None
            made = graph_text.CircuitGraph.of(one.shape, one.scores, inside, _about(one, cut))
            text = {Format.GRAPHML: graph_text.graphml, Format.DOT: graph_text.dot}.get(format_, graph_text.node_link)
            path.write_text(text(made), encoding="utf-8")

    return write


def _about(one: Handed, cut: Cut | None) -> dict[str, Value]:
    """What a graph says of where it is from."""
    group = one.group
    return {
        "circuit_id": one.circuit_id, "model": group.model, "task": group.task, "subtask": one.subtask,
        "method": group.method, "steps": group.steps, "metric": group.metric, "ablation": group.ablation,
        "origin": group.origin, "cut": None if cut is None else cut.describe(one.shape.n_edges),
    }  # fmt: skip


def _cut(ask: Ask, *, always: bool) -> Cut | None:
    """The cut that was asked for; without one none, or the default one. Raises UsageError for --prune without a cut."""
    from circuitdb.queries.cuts import Cut

    if always or any(ask.cut.get(way) is not None for way in ("top", "share", "threshold", "greedy")):
        return Cut.of(**ask.cut)
    for name in ("signed", "prune"):
        if ask.cut.get(name):
            raise UsageError(f"--{name} says how a circuit is cut; say how far, too, such as --top 200.")
    return None


def _refuse_cut(ask: Ask, format_: Format) -> None:
    given = [name for name, value in ask.cut.items() if value]
    if given:
        raise UsageError(f"{format_} has whole circuits; leave --{given[0]} out.")


def _names(wanted: list[str]) -> list[str]:
    """Names of files for these, each another one, without what a file system minds."""
    found: list[str] = []
    for name in (_UNFIT.sub("-", name).strip("-.")[:120] or "circuit" for name in wanted):
        fresh, n = name, 1
        while fresh.lower() in (other.lower() for other in found):
            n += 1
            fresh = f"{name}-{n}"
        found.append(fresh)
    return found


def _refuse_existing(paths: list[Path], folder: Path, target: Path, *, single: bool, force: bool) -> None:
    """Raise UsageError, before any work is done, if a file could not be written; else make the folder."""
    if not single and target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; several circuits need a folder.")
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not force:
        raise UsageError(f"{there} exists already; name another one, or replace it with --force.")
    if not (folder.resolve() if single else folder.resolve().parent).is_dir():
        raise UsageError(f"The folder of {target} does not exist; make it first.")
    folder.mkdir(exist_ok=True)


def _whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file under another name and move it into place, so that nobody ever sees half of it."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        write(fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _answer(ask: Ask, target: str, written: list[_Written], format_: Format) -> None:
    import numpy as np
    import pyarrow as pa

    from circuitdb.queries.columns import integers, texts
    from circuitdb.queries.result import Result, count

    table = pa.table(
        {
            "file": texts(str(path) for path, _, _ in written),
            "circuit_id": integers((one.circuit_id for _, one, _ in written), bits=32),
            "subtask": texts(one.subtask for _, one, _ in written),
            "n_edges": integers(n for _, _, n in written),
        }
    )
    lacking = {one.circuit_id for _, one, _ in written if np.isnan(one.scores).any()}
    notes = []
    if lacking and format_ in (Format.EAP_IG, Format.EAP_IG_PT, Format.MIB):
        how = "are left out of the file" if format_ is not Format.EAP_IG_PT else "are NaN, which EAP-IG ranks first"
        notes.append(f"{count(len(lacking), 'circuit')} have edges without a score; these {how}.")
    if format_ not in _GRAPHS and any(one.d_model is None for _, one, _ in written):
        notes.append(
            "How wide the model is was not known: d_model is 1 in the files; EAP-IG needs it for neurons alone."
        )
    output.answer(Result(table, f"{count(len(written), 'file')} written to {target}", tuple(notes)), ask.form)

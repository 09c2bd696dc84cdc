"""Questions about evaluations, as methods of the database: our own, those that were added, what their names mean."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack, cast

import duckdb

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.evals import attached, writer
from circuitdb.evals.columns import Columns
from circuitdb.evals.files import read as read_files
from circuitdb.evals.writer import Mapping
from circuitdb.queries import correlation, metrics, named, similarity
from circuitdb.queries.asked import Asked, parted
from circuitdb.queries.asking import with_models
from circuitdb.queries.comparison import require_correctable
from circuitdb.queries.correlation import Correlation
from circuitdb.queries.filters import Where, wanted
from circuitdb.queries.matrix import Subjects
from circuitdb.queries.measuring import Measuring
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import select


class _Writing(TypedDict):
    mapping: Sequence[Mapping]
    replace: bool
    timeout: float


class Evaluations(Measuring):
    """How well models do, by our own accuracies and by evaluations from elsewhere."""

    def evaluations(self, **where: Unpack[Where]) -> Result:
        """How well the models do on the subtasks: our own accuracies (0..1) and imported results, one row each.

        Filters choose circuits, as everywhere, and these the evaluations of their models and subtasks; without filters
        all are given, also of subtasks that have no circuit.

        >>> for row in db.evaluations(subtask=["1+1", "2+2"]).rows():
        ...     print(row["source"], row["subtask"], row["metric"], row["value"])
        circuitdb 1+1 accuracy 0.9
        board 1+1 acc 0.7
        circuitdb 2+2 accuracy 0.8
        board 2+2 acc 0.6
        """
        asked = wanted(where)
        everything = not asked
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, cast("Where", asked))
            held = attached.read(connection)
            table = named.run(connection, "evaluations", held, circuits=chosen.ids, everything=everything)
            table = with_models(connection, table)
            unmatched = named.run(connection, "evaluation_map", held, source=None).to_pylist()
        lost = sorted({row["source"] for row in unmatched if row["internal"] is None})
        notes = chosen.notes if chosen.members else ()
        if lost:
            told = f"Some names in {enumeration(lost)} match nothing of this database"
            notes = (*notes, f"{told}; `circuitdb evals map NAME` lists them, and takes what they stand for.")
        return Result(table, count(len(table), "evaluation"), (*notes, *held.notes))

    def evaluation_map(self, name: str | None = None) -> Result:
        """What the names in added evaluations are taken for, one row a name, and what of ours they have nothing of.

        `internal` is NULL for a name that matches nothing, `external` for a model or subtask of the database that no
        row is of; `reason` says why. `how` is given (by the user), same, or alike (but for case and spaces, or for what
        is before the last slash of a model's name).

        Raises UsageError for evaluations that the database does not have.

        >>> for row in db.evaluation_map("board").rows():
        ...     print(row["external"], "->", row["internal"])
        toy -> toy
        1+1 -> addition/1+1
        2+2 -> addition/2+2
        None -> addition/1+2
        None -> addition/2+1
        three -> None
        """
        with reading(self.path, timeout=self.timeout) as connection:
            return _map(connection, name)

    def add_evaluations(
        self,
        files: Sequence[str | os.PathLike[str]],
        name: str,
        *,
        mapping: Sequence[Mapping] = (),
        columns: Columns | None = None,
        table: str | None = None,
        attach: bool = False,
        replace: bool = False,
    ) -> Result:
        """Copy evaluations from files into the database, and report what of both sides was matched: `evaluation_map`.

        With `attach` nothing is copied: the files stay where they are and are read whenever evaluations are asked for.
        A note says where one has changed since; StoreError is raised, then, where one is gone.

        Files are CSV, JSON, Parquet, Arrow, DuckDB or SQLite (of several tables there `table`), results and samples of
        lm-evaluation-harness, logs of inspect_ai. `columns` says which columns hold the names, or what holds for all
        rows; `mapping` what a name stands for. Group rows of lm-eval are kept apart from their members, N/A and NaN
        become NULL. Where all files are tables, `evals.NAME` has them as they are.

        Raises UsageError for a file that can't be read, that contradicts itself, or for a name that is taken.

        >>> db.add_evaluations(["board.json"], "copy").title.partition(";")[0]
        'copy: 3 values from 1 file (json)'
        >>> _ = db.add_evaluations(["board.json"], "there", attach=True)
        >>> db.sql("SELECT subtask, acc FROM evals.there ORDER BY acc LIMIT 1")
        1 row
        subtask  acc
        three    0.1
        """
        paths = [Path(file) for file in files]
        told = columns or Columns()
        # Before they are read: what is changed while they are is then a change.
        states = [attached.state_of(path) for path in paths if path.is_file()] if attach else []
        imported = read_files(paths, told, table)
        how: _Writing = {"mapping": mapping, "replace": replace, "timeout": self.timeout}
        if attach:
            writer.attach(self.path, name, imported, paths, states, told, table, **how)
        else:
            writer.add(self.path, name, imported, paths, **how)
        found = self.evaluation_map(name)
        kind = f"{imported.format}, attached" if attach else imported.format
        title = f"{name}: {count(len(imported.rows), 'value')} from {count(len(paths), 'file')} ({kind})"
        return Result(found.table, f"{title}; {found.title}", (*imported.notes, *found.notes))

    def map_evaluations(self, name: str, mapping: Sequence[Mapping]) -> Result:
        """Say what names in added evaluations stand for, and see the map: `evaluation_map`. Raises UsageError.

        >>> from circuitdb.evals.writer import Mapping
        >>> found = db.map_evaluations("board", [Mapping("subtask", "three", "1+2")])
        >>> [row["internal"] for row in found.rows() if row["how"] == "given"]
        ['addition/1+2']
        """
        writer.map_names(self.path, name, mapping, timeout=self.timeout)
        return self.evaluation_map(name)

    def remove_evaluations(self, name: str) -> None:
        """Take added evaluations away, with their map. Raises UsageError where there are none of that name.

        >>> db.remove_evaluations("board")
        >>> "board" in [row["source"] for row in db.evaluations().rows()]
        False
        """
        writer.remove(self.path, name, timeout=self.timeout)

    def metrics(self) -> Result:
        """The metrics that there are values of, as SOURCE.METRIC: our own accuracies, and those of added evaluations.

        >>> db.metrics()
        2 metrics
        name                n_values
        board.acc                  3
        circuitdb.accuracy         4
        """
        with reading(self.path, timeout=self.timeout) as connection:
            held = attached.read(connection)
            table = named.run(connection, "metric_names", held)
        return Result(table, count(len(table), "metric"), held.notes)

    def correlate(
        self,
        with_: str = "circuitdb.accuracy",
        *,
        over: str = "subtasks",
        corrected: bool = False,
        filter: str | None = None,  # noqa: A002
        on: str = "signed",
        **asked: Unpack[Asked],
    ) -> Correlation:
        """The rank correlation of stability with a metric, SOURCE.METRIC: our own, or one of added evaluations.

        Over `subtasks`, one row a group (a model, a task and one way of scoring), its points are the circuits: the mean
        similarity to those of other subtasks against the metric. Over `models`, one row a task, its points are the
        models: their stability against the metric on the whole task, or its mean over their subtasks. `low` and `high`
        bound rho with 95% (Bonett and Wright), `p_value` is by permutation; circuits without a value are left out, and
        named in the notes. With `corrected`, mean similarities and stabilities are divided by their ceilings, since
        those of circuits that are measured worse are lower for that alone. `filter` says which reading of the answers,
        where there are several; `kind` and the edges say what similarity is, as in `similarity`.

        Raises UsageError for a metric that the database does not have, where several values leave a choice, where a
        model, or a subtask of a group, would be several points: choose the way of scoring; and where `kind` has no
        correction.

        >>> (row,) = db.correlate("circuitdb.accuracy").rows()
        >>> row["n"], round(row["rho"], 3), round(row["p_value"], 3)
        (4, 0.8, 0.333)
        >>> db.correlate("circuitdb.accuracy", corrected=True).title.partition(" (")[0]
        "Spearman's rho of corrected mean similarity to the others"
        """
        if over not in ("subtasks", "models"):
            raise UsageError(f"over={over!r} is neither 'subtasks' nor 'models'.")
        where, how = parted(asked)
        require_correctable(how, corrected)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            correlation.require_one_each(chosen, over)
            groups = chosen.groups()
            found = [self._look(connection, [part], how, on, "pairs") for part in groups.values()]
            values = metrics.read(connection, with_, chosen.ids, filter)
        compared = [
            (group, part, similarity.assembled(Subjects.of(part, on), self._measure(one, how, on, "pairs"), how))
            for (group, part), one in zip(groups.items(), found, strict=True)
        ]
        make = correlation.of_subtasks if over == "subtasks" else correlation.of_models
        points = make(compared, values, corrected=corrected)
        notes = (*chosen.notes, *values.notes)
        return correlation.correlation(
            points, compared, over=over, metric=with_, on=on, how=how, corrected=corrected, notes=notes
        )


def _map(connection: duckdb.DuckDBPyConnection, name: str | None) -> Result:
    """The map of the evaluations of a name, or of all: see `Database.evaluation_map`."""
    sources = named.run(connection, "evaluation_sources")["source"].to_pylist()
    if name is not None and name not in sources:
        there = enumeration(sources) or "none; `circuitdb evals add` adds some"
        raise UsageError(f"There are no evaluations {name}; the database has {there}.")
    held = attached.read(connection, None if name is None else [name])
    table = named.run(connection, "evaluation_map", held, source=name)
    rows = table.to_pylist()
    matched = Counter(row["kind"] for row in rows if row["external"] is not None and row["internal"] is not None)
    given = Counter(row["kind"] for row in rows if row["external"] is not None)
    ours = [row for row in rows if row["external"] is None]
    parts = [f"{matched[kind]} of {count(given[kind], kind)} matched" for kind in ("model", "subtask")]
    title = f"{', '.join(parts)}; {count(len(ours), 'name')} of the database without a row"
    return Result(table, title, (*_notes(rows), *held.notes))


def _notes(rows: list[dict[str, object]]) -> list[str]:
    notes = []
    lost: dict[tuple[object, object], list[str]] = {}
    for row in rows:
        if row["internal"] is None:
            lost.setdefault((row["source"], row["kind"]), []).append(str(row["external"]))
    for (source, kind), names in lost.items():
        told = f"{count(len(names), str(kind))} of {source} matched nothing: {enumeration(names)}"
        notes.append(f"{told}. To say what one stands for: `circuitdb evals map {source} --{kind} '{names[0]}=OURS'`.")
    return notes

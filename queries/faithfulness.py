"""How faithful cut circuits are to their model: curves over their size, the areas under them, and across conditions.

f = (m_circuit - m_ablated) / (m_clean - m_ablated) at a share p of all edges. Over the sizes p_1 < ... < p_k that were
run, by the trapezoid rule as the MIB benchmark (Mueller et al. 2025) defines them:

    CPR = sum_i (p_{i+1} - p_i) (f_i + f_{i+1}) / 2                circuit performance ratio, higher is better
    CMD = sum_i (p_{i+1} - p_i) (|1 - f_i| + |1 - f_{i+1}|) / 2    circuit-model distance, 0 is best

On its grid (.001 to 1) a circuit that does all the model does at every size has CPR 0.999 and CMD 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.result import Answer, Result, count, square
from circuitdb.queries.selection import Selection
from circuitdb.records import SHARES

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Faithfulness(Answer):
    """The runs of cut circuits: `.arrow()` has one row a run, `.wide()` one a curve, `.across(share)` a matrix.

    Attributes:
        table: columns as in faithfulness.sql, with the circuits' labels in front.
        labels: of the circuits, in order, by id.
        title: what it is, in a line.
        notes: warnings and explanations, one sentence each.
    """

    table: pa.Table
    labels: dict[int, str]
    title: str
    notes: tuple[str, ...]

    def arrow(self) -> pa.Table:
        """One row a run."""
        return self.table

    def result(self) -> Result:
        """The runs, one row each."""
        return Result(self.table, self.title, self.notes)

    def wide(self) -> Result:
        """One row a curve: a circuit, the data it was run on and the way its edges were chosen; CPR, CMD, f by size.

        CPR and CMD are areas over the ten sizes of the benchmark; they are NULL where a curve lacks one of these, or a
        faithfulness there: an area over other sizes is another number.
        """
        shares = np.array(sorted(set(self.table["share"].to_pylist())))
        curves: dict[tuple[str, str, str], Values] = {}
        run: dict[tuple[str, str, str], npt.NDArray[np.bool_]] = {}
        for row in self.table.to_pylist():
            key, place = (row["label"], row["data"], row["selection"]), np.searchsorted(shares, row["share"])
            curve = curves.setdefault(key, np.full(len(shares), np.nan))
            run.setdefault(key, np.zeros(len(shares), dtype=bool))[place] = True
            if row["faithfulness"] is not None:
                curve[place] = row["faithfulness"]
        on_grid = np.isin(shares, SHARES)
        found = [
            areas(shares[on_grid], curve[on_grid]) if run[key][on_grid].sum() == len(SHARES) else _NO_AREAS
            for key, curve in curves.items()
        ]
        label, data, selection = zip(*curves, strict=True) if curves else ((), (), ())
        columns: dict[str, pa.Array] = {"label": texts(label), "data": texts(data), "selection": texts(selection)}
        if label == data:
            del columns["data"]
        columns |= {"cpr": numbers(np.array([a.cpr for a in found])), "cmd": numbers(np.array([a.cmd for a in found]))}
        stacked = np.array(list(curves.values())).reshape(len(curves), len(shares))
        columns |= {f"{share:.12g}": numbers(stacked[:, i]) for i, share in enumerate(shares)}
        notes = list(self.notes)
        n_partial = sum(int(run[key][on_grid].sum()) < len(SHARES) for key in curves)
        if n_partial:
            notes.append(
                f"CPR and CMD are areas over the ten sizes of the MIB benchmark; {n_partial} of {len(curves)} curves "
                "lack some of them."
            )
        if any(accuracy is not None for accuracy in self.table["accuracy"].to_pylist()):
            notes.append("The right answers that circuits wrote were counted too: --long shows their share.")
        return Result(pa.table(columns), self.title, tuple(notes))

    def across(self, share: float) -> Result:
        """Faithfulness at one size as a matrix: the circuit of the row run on the examples of the column's.

        Raises UsageError, naming those that were run, for another size, and where a way of choosing must be named.
        """
        known = sorted(set(self.table["share"].to_pylist()))
        if share not in known:
            raise UsageError(
                f"No circuit was run at {share:g} of its edges; there are {', '.join(f'{s:g}' for s in known)}."
                if known
                else "No circuit was run yet; `circuitdb faithfulness --load MODEL` does it."
            )
        rows = [row for row in self.table.to_pylist() if row["share"] == share]
        if len({row["selection"] for row in rows}) > 1:
            raise UsageError("Circuits were cut in two ways here; choose --selection top-absolute or top-signed.")
        place = {circuit_id: i for i, circuit_id in enumerate(self.labels)}
        values = np.full((len(place), len(place)), np.nan)
        for row in rows:
            if row["faithfulness"] is not None:
                values[place[row["circuit_id"]], place[row["data_circuit_id"]]] = row["faithfulness"]
        title = f"{self.title}: at {share:g} of the edges, circuit of the row on examples of the column"
        return Result(square(list(self.labels.values()), values), title, self.notes)


@dataclass(frozen=True)
class Areas:
    """CPR and CMD of one curve; NaN for fewer than two sizes, or one without a faithfulness."""

    cpr: float
    cmd: float


_NO_AREAS = Areas(float("nan"), float("nan"))


def areas(shares: Values, faithfulness: Values) -> Areas:
    """Areas under a curve of ascending shares, by the trapezoid rule, from its smallest to its largest share."""
    if len(shares) < 2:
        return _NO_AREAS
    distance = np.abs(1 - faithfulness)
    return Areas(float(np.trapezoid(faithfulness, shares)), float(np.trapezoid(distance, shares)))


def faithfulness(chosen: Selection, table: pa.Table, selection: str | None) -> Faithfulness:
    """Label the rows of faithfulness.sql."""
    labels = dict(zip(chosen.ids, chosen.labels, strict=True))
    named = pa.table(
        {
            "label": texts(labels[i] for i in table["circuit_id"].to_pylist()),
            "data": texts(labels[i] for i in table["data_circuit_id"].to_pylist()),
            **{name: table[name] for name in table.column_names},
        }
    )
    run = set(table["circuit_id"].to_pylist())
    how = f", edges chosen {selection}" if selection else ""
    notes = list(chosen.notes)
    if labels and len(run) < len(labels):
        notes.append(
            f"Not run yet: {len(labels) - len(run)} of {count(len(labels), 'circuit')}; "
            "`circuitdb faithfulness --load MODEL` does it."
        )
    n_ties = sum(bool(n) for n in table["n_tied"].to_pylist())
    if n_ties:
        notes.append(f"Of edges with equal scores those of lower id are kept; that decides in {count(n_ties, 'cut')}.")
    return Faithfulness(named, labels, f"Faithfulness of {count(len(run), 'circuit')}{how}", tuple(notes))

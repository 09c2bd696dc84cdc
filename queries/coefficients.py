"""The ways to say how alike two score vectors are: one function, `coefficient`, and a `kind`.

- spearman: Pearson's r of mid-ranks (Spearman 1904); what the paper uses.
- pearson: of the scores themselves.
- kendall: tau-b (Kendall 1945), by SciPy's n log n count, a pair at a time.
- cosine: of the scores, not centred.
- overlap: shared / in either (Jaccard 1901) of the `top` edges of the largest absolute score; ties go to the lower edge
  id, and an edge of score zero is never in.
- kappa: the same shared edges corrected for chance, (shared - e) / ((n_a + n_b) / 2 - e) with e = n_a n_b / N, what two
  random sets of these sizes share (the mean of the hypergeometric distribution); Cohen's kappa (1960) of membership.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from circuitdb.cuts import strongest
from circuitdb.errors import UsageError
from circuitdb.queries.pairing import Compare, Matrix, Pairs, Scores, paired
from circuitdb.queries.ranks import centred_ranks, correlated, midranks

KINDS = ("spearman", "pearson", "kendall", "cosine", "overlap", "kappa")
# Of these the reliability of a whole follows from that of its parts, and noise divides them by a known factor.
CORRECTABLE = ("spearman", "pearson", "cosine")
BY_SIZE = ("cosine", "overlap", "kappa")  # undefined without a score other than zero, not for equal scores
NAMES = {
    "spearman": "Spearman's rho",
    "pearson": "Pearson's r",
    "kendall": "Kendall's tau-b",
    "cosine": "cosine",
    "overlap": "overlap (Jaccard)",
    "kappa": "overlap corrected for chance (kappa)",
}


def coefficient(
    kind: str, matrix: Scores, other: Scores | None = None, *, top: int = 200, joint_zeros: bool = True
) -> Pairs:
    """How alike the rows of [row, edge] are, with each other or with those of `other` [other row, edge].

    -1..1 (overlap 0..1); 1 for a row with itself; NaN where it is undefined: a constant row, or for cosine, overlap and
    kappa one without a score other than zero. Scores of NaN are left out pair by pair, and with `joint_zeros=False`
    those that are zero in both.

    Raises UsageError for an unknown kind.
    """
    if kind not in KINDS:
        raise UsageError(f"There is no similarity of kind {kind!r}; kinds are {', '.join(KINDS)}.")
    functions: dict[str, Compare] = {
        **{name: partial(_cosine, kind=name) for name in CORRECTABLE},
        "kendall": _kendall,
        "overlap": partial(_overlap, top=top, score=_jaccard),
        "kappa": partial(_overlap, top=top, score=_kappa),
    }
    return paired(matrix, other, functions[kind], joint_zeros=joint_zeros)


def vectors(kind: str, matrix: Scores) -> Matrix:
    """The rows of [row, edge] as what spearman, pearson or cosine is the cosine of; zeros where a row has none.

    Raises UsageError for another kind.
    """
    if kind not in CORRECTABLE:
        raise UsageError(f"This is known for {', '.join(CORRECTABLE)}, which are cosines, and not for {NAMES[kind]}.")
    if kind == "spearman":
        return centred_ranks(matrix)
    values = np.array(matrix, np.float64)
    if kind == "pearson" and values.shape[1]:
        constant = values.min(axis=1) == values.max(axis=1)
        values -= values.mean(axis=1, keepdims=True)
        values[constant] = 0
    return values


def _cosine(a: Scores, b: Scores, *, kind: str) -> Matrix:
    first = vectors(kind, a)
    return correlated(first, first if a is b else vectors(kind, b))


def _kendall(a: Scores, b: Scores) -> Matrix:
    from scipy.stats import kendalltau  # half a second to import

    first, second = midranks(a), midranks(b)
    found = np.full((len(a), len(b)), np.nan)
    for i, j in np.ndindex(found.shape):
        if a is b and j < i:
            found[i, j] = found[j, i]
        elif a.shape[1] > 1 and np.ptp(first[i]) and np.ptp(second[j]):
            found[i, j] = kendalltau(first[i], second[j]).statistic
    clipped: Matrix = np.clip(found, -1.0, 1.0)
    return clipped


def _overlap(a: Scores, b: Scores, *, top: int, score: Callable[[Matrix, Matrix, Matrix, int], Matrix]) -> Matrix:
    from scipy.sparse import csr_array  # a fifth of a second to import

    def memberships(matrix: Scores) -> csr_array:
        chosen = [members(row, top) for row in matrix]
        stops = np.cumsum([0, *map(len, chosen)])
        columns = np.concatenate([np.empty(0, np.int64), *chosen])
        return csr_array((np.ones(len(columns), np.int64), columns, stops), shape=matrix.shape)

    first = memberships(a)
    second = first if a is b else memberships(b)
    shared = np.asarray((first @ second.T).toarray(), np.float64)
    sizes_a, sizes_b = (np.diff(part.indptr).astype(np.float64) for part in (first, second))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Matrix = score(shared, sizes_a[:, None], sizes_b[None, :], a.shape[1])
    found[sizes_a == 0, :] = found[:, sizes_b == 0] = np.nan
    return found


def members(scores: Scores, top: int) -> npt.NDArray[np.int64]:
    """The `top` edges of [edge] by absolute score, ascending; ties go to the lower edge, and zero is never in."""
    strength = np.abs(scores)
    return np.flatnonzero(strongest(strength, min(top, int(np.count_nonzero(strength)))).kept)


def _jaccard(shared: Matrix, a: Matrix, b: Matrix, n_edges: int) -> Matrix:
    return shared / (a + b - shared)


def _kappa(shared: Matrix, a: Matrix, b: Matrix, n_edges: int) -> Matrix:
    expected = a * b / n_edges if n_edges else a * b
    return np.where((a + b) / 2 == expected, np.nan, (shared - expected) / ((a + b) / 2 - expected))

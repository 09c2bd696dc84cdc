"""What the screen of containment asks and shows: sizes to cut at, what contains what as a tree; free of Textual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from circuitdb.queries.containment import Containment
from circuitdb.queries.cuts import DEFAULT_TOP, Cut
from circuitdb.queries.database import Database
from circuitdb.queries.order import Order, order

WAYS = ("top", "greedy", "threshold")
_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # of each power of ten
_STRENGTHS = tuple(step * 10.0**power for power in range(-7, 3) for step in (1.0, 2.0, 5.0))
_USUAL = 0.001  # strength


@dataclass(frozen=True)
class How:
    """How circuits are cut, but for the size: the keywords of `Cut` that the screen can change."""

    way: str = WAYS[0]
    signed: bool = False
    prune: bool = False

    def cut(self, size: float) -> Cut:
        """The cut at a size: edges, or for the way `threshold` a strength."""
        if self.way == "threshold":
            return Cut.of(threshold=size, signed=self.signed, prune=self.prune)
        if self.way == "greedy":
            return Cut.of(greedy=int(size), signed=self.signed, prune=self.prune)
        return Cut.of(top=int(size), signed=self.signed, prune=self.prune)

    def sizes(self, n_edges: int) -> tuple[float, ...]:
        """The sizes that are offered for circuits of so many edges, ascending."""
        if self.way == "threshold":
            return _STRENGTHS
        found = [step * 10**power for power in range(10) for step in _STEPS if (step * 10**power).is_integer()]
        return (*(size for size in found if size < n_edges), float(max(n_edges, 1)))

    def usual(self, n_edges: int) -> int:
        """The place of the size that is shown first: 200 edges, of a small graph about a fifth."""
        wanted = _USUAL if self.way == "threshold" else min(DEFAULT_TOP, n_edges / 5)
        return max((i for i, size in enumerate(self.sizes(n_edges)) if size <= wanted), default=0)

    def following(self) -> How:
        """The next way."""
        return replace(self, way=WAYS[(WAYS.index(self.way) + 1) % len(WAYS)])


@dataclass(frozen=True, eq=False)
class Nest:
    """The containment at some sizes, all cut in one way."""

    how: How
    found: dict[float, Containment]


def ask(db: Database, *, circuits: Sequence[int], how: How, sizes: Sequence[float]) -> Nest:
    """Ask for the containment at several sizes.

    Raises UsageError for circuits of different shapes, StoreError where the file can't be read.
    """
    found = db.containments([how.cut(size) for size in sizes], circuits=circuits)
    order(found[0])  # what SciPy takes long to import is in this thread then
    return Nest(how, dict(zip(sizes, found, strict=True)))


@dataclass(frozen=True)
class Part:
    """A class of circuits in the tree: `share` and `expected` of it are in the class above; None at the top.

    `again` marks one whose own parts stand where it was first: a class may be in several.
    """

    number: int
    share: float | None
    expected: float | None
    parts: tuple[Part, ...] = ()
    again: bool = False


def forest(found: Order) -> tuple[Part, ...]:
    """The classes that are in no other, each with what it contains, and so on down along the covers.

    Those that contain something come first.
    """
    rows = found.arrow().to_pylist()[: len(found.covers)]
    inner: dict[int, list[tuple[int, float, float]]] = {}
    for (a, b), row in zip(found.covers, rows, strict=True):
        inner.setdefault(b, []).append((a, row["share"], row["expected_share"]))
    met: set[int] = set()

    def part(number: int, share: float | None, expected: float | None) -> Part:
        again = number in met and number in inner
        met.add(number)
        below = () if again else tuple(part(*one) for one in inner.get(number, ()))
        return Part(number, share, expected, below, again)

    within = {a for a, _ in found.covers}
    outermost = (number for number in range(len(found.classes)) if number not in within)
    return tuple(part(number, None, None) for number in sorted(outermost, key=lambda number: number not in inner))

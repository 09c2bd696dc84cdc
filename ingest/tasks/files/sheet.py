"""A file of questions as rows and columns, whatever its format, and what must hold before the cells are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from circuitdb.errors import UsageError


@dataclass(frozen=True)
class Line:
    """One row: its number, as a spreadsheet or an editor counts, and a value for each column; None is an empty cell.

    `also_right` are answers that count as right beside the one in its column, `choices` all answers to choose from.
    """

    number: int
    values: tuple[object, ...]
    also_right: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """The rows of a file.

    `typed`: values have types of their own, as in JSON, and text is never taken for a number. `token_ids`: answers are
    ids of the model's tokenizer. `own_gap`: an answer begins with the space that stands before it, or with none.
    `ignored` names the columns that are not read, `name` is what the file itself calls the task.
    """

    file: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    typed: bool = False
    token_ids: bool = False
    own_gap: bool = False
    ignored: tuple[str, ...] = ()
    name: str | None = None

    def error(self, number: int, message: str) -> UsageError:
        """What is wrong with a row, in a sentence."""
        return UsageError(f"{self.file}, row {number}: {message}")


def sheet(file: str, header: Sequence[str], lines: Sequence[Line], *, typed: bool, first: int = 1) -> Sheet:
    """A sheet whose names of columns are stripped and differ; `first` is the row that they stand in.

    A column without a name is left out: pandas writes its index so. Raises UsageError.
    """
    names = [name.strip() for name in header]
    folded = [name.casefold() for name in names if name]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise UsageError(f"{file}, row {first}: several columns are called {name}; give each a name of its own.")
    if not lines:
        raise UsageError(f"{file}, row {first}: no rows follow; give at least two questions.")
    kept = [i for i, name in enumerate(names) if name]
    rows = tuple(Line(line.number, tuple(line.values[i] for i in kept)) for line in lines)
    return Sheet(file, tuple(names[i] for i in kept), rows, typed=typed)

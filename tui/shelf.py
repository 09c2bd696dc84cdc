"""What of the user's SQL is kept between runs: a bounded history, and statements under names; free of Textual.

Both are in the user's data folder: the history as JSON, a named statement as NAME.sql, which
`circuitdb sql - < NAME.sql` takes as well. A file is always whole: it is written beside and moved into place.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

from circuitdb.errors import StoreError, UsageError

KEPT = 500  # statements of the history
_LONGEST = 100_000  # letters of one: a longer one is not kept
_NAME = re.compile(r"\w[\w .+-]{0,79}")


class Shelf:
    """The history and the named statements in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: the user's own for circuitdb if not given; made when something is kept."""
        self.folder = user_data_path("circuitdb", appauthor=False) if folder is None else folder

    @property
    def history(self) -> list[str]:
        """Statements that were run, the newest last; none where the file is not there or is not ours."""
        try:
            found = json.loads((self.folder / "history.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []

    def remember(self, statement: str) -> None:
        """Put a statement at the end of the history, and nowhere else in it. Raises StoreError."""
        text = statement.strip()
        if not text or len(text) > _LONGEST:
            return
        # Read anew: another browser may have added some meanwhile.
        kept = [*(old for old in self.history if old != text), text][-KEPT:]
        self._write("history.json", json.dumps(kept, ensure_ascii=True, indent=0))

    @property
    def names(self) -> list[str]:
        """Names of the statements that were saved, in alphabetical order."""
        with suppress(OSError):
            return sorted(path.stem for path in (self.folder / "sql").iterdir() if path.suffix == ".sql")
        return []

    def read(self, name: str) -> str:
        """A saved statement. Raises StoreError where it can't be read."""
        try:
            return (self.folder / "sql" / f"{name}.sql").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise StoreError(f"The statement {name} can't be read from {self.folder / 'sql'}: {error}.") from error

    def save(self, name: str, statement: str) -> None:
        """Save a statement, in the place of one of that name. Raises UsageError for a name no file can have."""
        if not _NAME.fullmatch(name) or name.endswith((" ", ".")):
            raise UsageError(f"{name!r} is no name for a statement; take letters, digits, blanks and - _ . + alone.")
        self._write(f"sql/{name}.sql", statement.rstrip() + "\n")

    def _write(self, name: str, text: str) -> None:
        target = self.folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(fresh, target)
            except BaseException:
                Path(fresh).unlink(missing_ok=True)
                raise
        except (OSError, ValueError) as error:
            raise StoreError(f"{target} can't be written: {getattr(error, 'strerror', None) or error}.") from error

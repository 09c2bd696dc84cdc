"""Every error that circuitdb raises on purpose.

- `CircuitdbError`: one sentence that says what, where and what to do
  - `UsageError`: the question is wrong: an unknown name, an impossible option
  - `StoreError`: the database file
    - `MissingDatabase`: there is no such file
    - `LockedDatabase`: another process holds it
    - `SchemaMismatch`: written by another version, or no circuitdb database at all
  - `ScoreError`: scores that cannot be stored or compared
  - `ModelError`: a model that cannot be loaded or cannot be scored right
  - `TaskError`: a task whose examples cannot be made or paired

One is no error: the warning `SchemaUpgraded`.
"""


class CircuitdbError(Exception):
    """Root of the tree; its text is one sentence meant for the person at the terminal."""

    exit_code = 1


class UsageError(CircuitdbError):
    """The caller asked for something that does not exist or cannot be."""

    exit_code = 2


class StoreError(CircuitdbError):
    """The database file cannot be used as asked."""


class MissingDatabase(StoreError):
    """There is no database at the given path."""


class LockedDatabase(StoreError):
    """Another process holds the database file and did not let go in time."""


class SchemaMismatch(StoreError):
    """The file is no circuitdb database, or its schema is of another version."""


class ScoreError(CircuitdbError):
    """Scores of the wrong shape, type or graph."""


class ModelError(CircuitdbError):
    """The model cannot be loaded, or its edges cannot be scored right."""


class TaskError(CircuitdbError):
    """The task's examples cannot be generated, tokenised or paired."""


class SchemaUpgraded(UserWarning):
    """A file of an older schema was brought to this version's; its text tells where the old file is kept."""

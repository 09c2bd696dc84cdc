"""From a sheet to the questions of each subtask, every cell checked; each error names its row.

1. Columns: which are the question, its partner and its answers, and which are parameters.
2. Cells: none is empty, answers are text of one line, and the two prompts of a row differ.
3. Subtasks: one spelling each, one value for each parameter.
4. Questions that repeat an earlier one of their subtask are left out; with another answer they contradict it.
5. What can't be paired is said at once: a single row, or one answer for all where partners must be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from circuitdb.ingest.tasks.files import eap_ig
from circuitdb.ingest.tasks.files.parameters import Parameter, parameters
from circuitdb.ingest.tasks.files.sheet import Line, Sheet
from circuitdb.ingest.tasks.task import Question

_CLEAN = ("clean", "prompt")
_CORRUPTED, _ANSWER, _OTHER, _SUBTASK = "corrupted", "answer", "corrupted_answer", "subtask"
_SHOWN = 5


@dataclass(frozen=True)
class Part:
    """A subtask: its name, its parameters, and its questions in the order of the file."""

    subtask: str
    parameters: dict[str, Parameter]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class _Columns:
    """Where the columns are; None where the file has none of that kind."""

    clean: int
    answer: int
    corrupted: int | None
    other: int | None
    subtask: int | None
    parameters: tuple[str, ...]


def parts(found: Sheet, name: str) -> tuple[list[Part], list[str]]:
    """(the subtasks in the order of their first rows, what must be said of the file).

    `name` is that of the subtask where the file names none. Raises UsageError.
    """
    if eap_ig.KEY in (column.casefold() for column in found.columns):
        found = eap_ig.sheet_of(found)
    columns = _columns(found)
    _check_full(found)
    subtasks = _subtasks(found, columns.subtask, name)
    asked = [_question(found, line, columns) for line in found.lines]
    known = parameters(found, columns.parameters, subtasks)
    notes = [f"{found.file}: not read: {', '.join(found.ignored)}."] if found.ignored else []
    kept: dict[str, dict[str, Question]] = {subtask: {} for subtask in subtasks}
    repeated: list[int] = []
    for question, subtask in zip(asked, subtasks, strict=True):
        earlier = kept[subtask].setdefault(question.prompt, question)
        if earlier is question:
            continue
        if (earlier.answer, earlier.answer_id) != (question.answer, question.answer_id):
            raise found.error(
                question.row, f"it asks what row {earlier.row} asks and has another answer; one of them is wrong."
            )
        repeated.append(question.row)
    if repeated:
        notes.append(f"{found.file}: left out, since they repeat a question of their subtask: {_rows(repeated)}.")
    left = [question for questions in kept.values() for question in questions.values()]
    _check_pairable(found, left)
    return [Part(subtask, known[subtask], tuple(questions.values())) for subtask, questions in kept.items()], notes


def _columns(found: Sheet) -> _Columns:
    places = {column.casefold(): i for i, column in enumerate(found.columns)}
    clean = [places[column] for column in _CLEAN if column in places]
    if len(clean) > 1:
        raise found.error(1, "there are columns clean and prompt, which mean the same; keep one.")
    for column, missing in (("clean or prompt", not clean), (_ANSWER, _ANSWER not in places)):
        if missing:
            raise found.error(1, f"there is no column {column}; the columns are {', '.join(found.columns)}.")
    if _OTHER in places and _CORRUPTED not in places:
        raise found.error(1, f"there is a column {_OTHER} and none called {_CORRUPTED}, which it is the answer of.")
    taken = {*_CLEAN, _CORRUPTED, _ANSWER, _OTHER, _SUBTASK}
    return _Columns(
        clean[0],
        places[_ANSWER],
        places.get(_CORRUPTED),
        places.get(_OTHER),
        places.get(_SUBTASK),
        tuple(column for column in found.columns if column.casefold() not in taken),
    )


def _check_full(found: Sheet) -> None:
    for line in found.lines:
        for column, value in zip(found.columns, line.values, strict=True):
            if value is None:
                raise found.error(line.number, f"{column} is empty.")


def _subtasks(found: Sheet, place: int | None, name: str) -> list[str]:
    """The subtask of every line. Raises UsageError for names that differ in case or spaces alone."""
    if place is None:
        return [name] * len(found.lines)
    spellings: dict[str, tuple[str, int]] = {}
    subtasks = []
    for line in found.lines:
        subtask = _text(found, line, place)
        spelling, number = spellings.setdefault(" ".join(subtask.split()).casefold(), (subtask, line.number))
        if spelling != subtask:
            raise found.error(
                line.number,
                f"the subtask {subtask!r} is written {spelling!r} in row {number}; write both the same way.",
            )
        subtasks.append(subtask.strip())
    return subtasks


def _question(found: Sheet, line: Line, columns: _Columns) -> Question:
    asked = _asked(found, line, columns.clean, columns.answer)
    clean = replace(asked, also_right=line.also_right, choices=line.choices)
    if columns.corrupted is None:
        return clean
    partner = _asked(found, line, columns.corrupted, columns.other)
    if columns.other is None:
        partner = replace(partner, gap=clean.gap)
    if partner.prompt == clean.prompt:
        raise found.error(line.number, "its clean and its corrupted prompt are the same, so nothing could be scored.")
    return replace(clean, corrupted=partner)


def _asked(found: Sheet, line: Line, place: int, answered: int | None) -> Question:
    """A prompt with its answer, and what stands between them; without an answer, as before one."""
    prompt, answer_id = _text(found, line, place), None
    answer = ""
    if answered is not None and found.token_ids:
        answer_id = int(str(line.values[answered]))
    elif answered is not None:
        answer = _text(found, line, answered)
        if "\n" in answer.strip() or "\r" in answer.strip():
            raise found.error(line.number, f"{found.columns[answered]} has a line break; an answer is of one line.")
    prompt, gap = (prompt, "") if found.token_ids else _gap(prompt, answer, own=found.own_gap)
    return Question(prompt, answer.strip(), gap, answer_id=answer_id, file=found.file, row=line.number)


def _gap(prompt: str, answer: str, *, own: bool) -> tuple[str, str]:
    """(the prompt, what stands between it and the answer): a space that one of them has, or else by the format."""
    if prompt.endswith(" "):
        return prompt[:-1], " "
    if prompt[-1:].isspace():
        return prompt, ""
    return prompt, " " if not own or answer.startswith(" ") else ""


def _text(found: Sheet, line: Line, place: int) -> str:
    """A cell as text, exactly. Raises UsageError for what is none, such as a number whose digits may have changed."""
    value = line.values[place]
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise found.error(line.number, f"{found.columns[place]} is {value!r} and no text; write it as text.")


def _check_pairable(found: Sheet, asked: Sequence[Question]) -> None:
    if len(asked) == 1:
        raise found.error(asked[0].row, "it is the only question; give at least two.")
    if any(question.corrupted is not None for question in asked):
        return
    answers = {question.answer for question in asked}
    if len(answers) == 1:
        raise found.error(
            asked[0].row,
            f"its answer {asked[0].answer!r} is the answer of every row, and a partner needs another; add rows "
            f"with other answers, or a column {_CORRUPTED} with a partner for each.",
        )


def _rows(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = len(numbers) - _SHOWN
    return f"row{'s' * (len(numbers) > 1)} {shown}{f' and {more:,} more' if more > 0 else ''}"

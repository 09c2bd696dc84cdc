"""Names from file names: `gemma-add-{digits_a}{digits_b}.json` is a pattern, and {digits_a} what it finds there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from circuitdb.errors import UsageError
from circuitdb.records import Parameters

TEXTS = ("model", "task", "subtask", "method", "metric", "ablation", "revision")
NUMBERS = ("steps", "seed", "shots")
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Names:
    """What a file name says: `told` of the circuit itself, `parameters` of its subtask."""

    told: dict[str, str | int] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)


class Pattern:
    """A pattern for the end of a path, as many parts of it as the pattern has.

    A field stands for one character or more without a slash, as few as possible. Of fields with nothing between them
    each stands for one digit, the last for all that are left. One that is called like a property of a circuit (model,
    task, subtask, method, metric, ablation, revision, steps, seed, shots) says that one, any other is a parameter of
    the subtask: a whole number if it looks like one, else a text.
    """

    def __init__(self, text: str) -> None:
        """Raises UsageError for a pattern without a field, with a nameless one, or with one twice."""
        names = _FIELD.findall(text)
        if not names:
            raise UsageError(f"The pattern {text!r} has no field, such as {{digits_a}}, so it says nothing of a file.")
        odd = next((name for name in names if not name.isidentifier() or names.count(name) > 1), None)
        if odd is not None:
            reason = "comes twice" if odd.isidentifier() else "is no name of letters, digits and _"
            raise UsageError(f"In the pattern {text!r} the field {{{odd}}} {reason}.")
        self.text = text
        self._depth = text.count("/") + 1
        pieces = _FIELD.split(text)
        made = ""
        for i, piece in enumerate(pieces):
            if i % 2 == 0:
                made += re.escape(piece)
                continue
            before_another = i + 2 < len(pieces) and not pieces[i + 1]
            behind_another = i > 1 and not pieces[i - 1]
            one = r"\d" if before_another else r"\d+" if behind_another else r"[^/]+?"
            made += f"(?P<{piece}>{one})"
        self._regex = re.compile(made)

    def names(self, path: PurePath) -> Names:
        """What the name of a file says. Raises UsageError for a name that is not like the pattern."""
        tail = "/".join(path.parts[-self._depth :])
        found = self._regex.fullmatch(tail)
        if found is None:
            raise UsageError(f"The name {tail} is not like the pattern {self.text}.")
        told: dict[str, str | int] = {}
        parameters: dict[str, int | float | str | bool] = {}
        for name, value in found.groupdict().items():
            if name in TEXTS:
                told[name] = value
            elif name in NUMBERS:
                if not _is_whole(value):
                    raise UsageError(f"The {name} in {tail} is {value!r}, which is no whole number.")
                told[name] = int(value)
            else:
                parameters[name] = int(value) if _is_whole(value) else value
        return Names(told, parameters)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9

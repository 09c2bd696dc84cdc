"""What a partition is made by: a task's options, each of which reads its text and says what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from circuitdb.errors import UsageError


@dataclass(frozen=True)
class Numbers:
    """Whole numbers from `least` to `most`; without a `default` the partition is not split by them."""

    name: str
    meaning: str
    least: int
    most: int
    default: str | None = None

    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        return f"{self.least} to {self.most}; a list such as {self._such_as}"

    def chosen(self, options: Mapping[str, str]) -> tuple[int, ...]:
        """The numbers, sorted, each once; none where there are neither options nor a default. Raises UsageError."""
        text = options.get(self.name, self.default)
        return () if text is None else self._read(text)

    def together(self, texts: Sequence[str]) -> str:
        """One list of several."""
        return ",".join(texts)

    def check(self, values: Sequence[int]) -> None:
        """Raise UsageError if any of these is not allowed, or if there is none where the partition needs one."""
        if not all(self.least <= value <= self.most for value in values) or not (values or self.default is None):
            raise UsageError(f"{self.name} is a list of numbers from {self.least} to {self.most}, not {list(values)}.")

    @property
    def _such_as(self) -> str:
        return f"{self.least}-{self.least + 2} or {self.least},{self.least + 2}"

    def _read(self, text: str) -> tuple[int, ...]:
        found: set[int] = set()
        for part in text.split(","):
            ends = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
            first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
            if not self.least <= first <= last <= self.most:
                raise UsageError(
                    f"--partition {self.name}={text} is no list of numbers from {self.least} to {self.most}; write "
                    f"{self._such_as}."
                )
            found.update(range(first, last + 1))
        return tuple(sorted(found))


@dataclass(frozen=True)
class Words:
    """Some of the `choices`, in their order; all of them by default. `between` stands between them."""

    name: str
    meaning: str
    choices: tuple[str, ...]
    between: str = ","

    @property
    def default(self) -> str:
        """All of them."""
        return self.between.join(self.choices)

    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        return f"one or more of {self.between.join(self.choices)}"

    def chosen(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """The chosen ones, each once. Raises UsageError."""
        text = options.get(self.name, self.default)
        given = [word.strip() for word in text.split(self.between)]
        for word in given:
            if word not in self.choices:
                raise UsageError(f"--partition {self.name}={text}: there is no {word!r}; write {self.allowed}.")
        return tuple(choice for choice in self.choices if choice in given)

    def together(self, texts: Sequence[str]) -> str:
        """One list of several."""
        return self.between.join(texts)

    def check(self, values: Sequence[str]) -> None:
        """Raise UsageError if any of these is not allowed, or if there is none."""
        if not values or not set(values) <= set(self.choices):
            raise UsageError(f"{self.name} is {self.allowed}, not {list(values)}.")


Option: TypeAlias = Numbers | Words

"""A screen about the chosen circuits: it asks one question of them, and shows the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from circuitdb.tui.frame import Frame

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

T = TypeVar("T")
_PATIENCE_S = 0.05  # a selection that keys change quickly is asked about when they rest


class View(Frame, Generic[T]):
    """Asks again when what it `depends_on` has changed and it is seen; `T` is what its question is answered with.

    Attributes:
        answer: the last answer, None before the first; the content shows it.
        failure: the sentence of the last question if it failed, else None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer: T | None = None
        self.failure: str | None = None
        self._asked_about: Hashable = None

    @abstractmethod
    def question(self) -> Callable[[Database], T] | None:
        """What to ask of the database for the present selection; None if there is nothing to ask.

        The function runs in a thread: it must hold what it needs of the selection, and touch no widget.
        """

    @abstractmethod
    def show(self, answer: T) -> None:
        """Draw the answer."""

    def depends_on(self) -> Hashable:
        """What the answer depends on: the question is asked again when this has changed."""
        return self.selection.circuits

    def lacking(self) -> str:
        """What to do where there is nothing to ask."""
        return "Press 1 for the library, and there space on what you want to look at."

    def renew(self) -> None:
        """Ask again if need be."""
        if self.is_current and self.browser.problem is None and self.depends_on() != self._asked_about:
            self.reload()
        super().renew()

    def reload(self) -> None:
        """Ask again."""
        self._asked_about = self.depends_on()
        self.failure = None
        question = self.question()
        if question is None:
            self.workers.cancel_group(self, "view")
            self.answer = None
        else:
            self.ask(question, self._answered, group="view", otherwise=self._failed, delay=_PATIENCE_S)
        self.settle()

    def remark(self) -> tuple[str, str] | None:
        """That it waits, that there is nothing to ask, or that it failed."""
        if self.failure is not None:
            return "This can't be shown", self.failure
        if self.answer is not None:
            return None
        if self.question() is None:
            return "Nothing is chosen", self.lacking()
        return "Reading ...", ""

    def _answered(self, answer: T) -> None:
        self.answer = answer
        self.settle()
        self.show(answer)

    def _failed(self, failure: str) -> None:
        self.failure = failure
        self.settle()

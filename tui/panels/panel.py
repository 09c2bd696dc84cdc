"""What a part of a screen must have."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from textual.containers import Container

if TYPE_CHECKING:
    from circuitdb.queries.softcircuit import SoftCircuit
    from circuitdb.tui.frame import Frame


class Panel(Container):
    """Shows one side of a circuit."""

    DEFAULT_CSS = "Panel { height: 1fr; }"

    circuit: SoftCircuit | None = None

    def take(self, circuit: SoftCircuit) -> None:
        """Show this circuit, unless it is shown already."""
        if circuit is not self.circuit:
            self.circuit = circuit
            self.draw(circuit)

    @abstractmethod
    def draw(self, circuit: SoftCircuit) -> None:
        """Show it."""

    @abstractmethod
    def text(self) -> str:
        """What is shown, as text to copy."""

    def focus_first(self) -> None:
        """Put the focus into it, or nowhere if it takes none."""
        for widget in self.query("*"):
            if widget.focusable:
                widget.focus()
                return
        self.screen.set_focus(None)

    @property
    def frame(self) -> Frame:
        """The screen that it stands on."""
        return cast("Frame", self.screen)

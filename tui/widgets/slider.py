"""A number set by keys, by the mouse or by the wheel."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class Slider(Widget, can_focus=True):
    """One line: name, value, and a bar from `low` to `high`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,minus", "step(-1)", "Less", show=False, tooltip="Lower the value"),
        Binding("right,plus", "step(1)", "More", show=False, tooltip="Raise the value"),
        Binding("pagedown,shift+left", "step(-10)", "Much less", show=False, tooltip="Lower the value by ten steps"),
        Binding("pageup,shift+right", "step(10)", "Much more", show=False, tooltip="Raise the value by ten steps"),
        Binding("home", "edge(0)", "Least", show=False, tooltip="The lowest value"),
        Binding("end", "edge(1)", "Most", show=False, tooltip="The highest value"),
    ]
    DEFAULT_CSS = """
    Slider { height: 1; width: 1fr; color: $text; background: $surface; }
    Slider:focus { background: $boost; text-style: bold; }
    """

    value: reactive[float] = reactive(0.0, init=False)

    class Changed(Message):
        """It has another value."""

        def __init__(self, slider: Slider, value: float) -> None:
            super().__init__()
            self.slider, self.value = slider, value

        @property
        def control(self) -> Slider:
            """The slider."""
            return self.slider

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, Slider.Changed) and message.slider is self.slider

    def __init__(
        self,
        label: str,
        low: float,
        high: float,
        step: float,
        value: float | None = None,
        *,
        digits: int = 2,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """`digits`: behind the point; 0 for whole numbers."""
        super().__init__(id=id)
        self.label, self.low, self.high, self.step_size, self.digits = label, low, high, step, digits
        self.set_reactive(Slider.value, self.validate_value(low if value is None else value))

    def span(self, low: float, high: float, step: float) -> None:
        """Give it other ends and another step; the value moves in between."""
        self.low, self.high, self.step_size = low, high, step
        self.value = self.validate_value(self.value)
        self.refresh()

    def validate_value(self, value: float) -> float:
        """Between the ends."""
        return min(self.high, max(self.low, value))

    def watch_value(self, value: float) -> None:
        """Tell it."""
        self.post_message(self.Changed(self, value))

    def render(self) -> Content:
        """Name, value, bar."""
        start = self._start()
        room = max(0, self.size.width - len(start) - 1)
        full = round(room * self._share())
        return Content.assemble(start, "━" * full, "●" if room else "", ("─" * (room - full), "dim"))

    def action_step(self, steps: int) -> None:
        """Move by steps, on their grid."""
        # Rounded to the grid, so that ten times 0.1 is 1.0 and not a hair less.
        self.value = self.validate_value(
            round((self.value - self.low) / self.step_size + steps) * self.step_size + self.low
        )

    def action_edge(self, which: int) -> None:
        """Go to an end."""
        self.value = self.high if which else self.low

    def on_click(self, event: events.Click) -> None:
        """Go to where the mouse is."""
        start = len(self._start())
        room = max(1, self.size.width - start - 1)
        share = min(1.0, max(0.0, (event.x - start) / room))
        self.value = round(share * (self.high - self.low) / self.step_size) * self.step_size + self.low

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel raises it."""
        event.stop()
        self.action_step(1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel lowers it."""
        event.stop()
        self.action_step(-1)

    def _start(self) -> str:
        # As wide as the widest value, so that the bar stays where it is.
        width = max(len(f"{end:.{self.digits}f}") for end in (self.low, self.high))
        return f"{self.label} {self.value:>{width}.{self.digits}f} "

    def _share(self) -> float:
        return (self.value - self.low) / (self.high - self.low) if self.high > self.low else 0.0

"""What the command palette (ctrl+p) offers beside Textual's own: every screen and every key of the present one."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from circuitdb.tui.frame import Frame


class Commands(Provider):
    """The actions of the screen that the palette was called from."""

    async def discover(self) -> Hits:
        """All of them."""
        for name, run in self._offered():
            yield DiscoveryHit(name, run)

    async def search(self, query: str) -> Hits:
        """Those that fit what is typed."""
        matcher = self.matcher(query)
        for name, run in self._offered():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run)

    def _offered(self) -> Iterator[tuple[str, partial[Coroutine[object, object, bool]]]]:
        told = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            name = active.tooltip or binding.description
            if name and name not in told and isinstance(active.node, (Frame, type(self.app))):
                told.add(name)
                yield name, partial(self.app.run_action, binding.action, cast("Frame", active.node))

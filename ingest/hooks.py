"""Forward hooks on hook points (modules whose output is the tensor), all taken off together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module


class Hooks:
    """The hooks of one pass."""

    def __init__(self) -> None:
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def replace(self, point: Module, by: Callable[[Tensor], Tensor]) -> None:
        """Put `by(output)` in the place of the hook point's output."""
        self._handles.append(point.register_forward_hook(lambda _module, _args, output: by(output)))

    def see(self, point: Module, look: Callable[[Tensor], None]) -> None:
        """Show the hook point's output to `look`."""

        def hook(_module: Module, _args: object, output: Tensor) -> None:
            look(output)

        self._handles.append(point.register_forward_hook(hook))

    def gradient(self, point: Module, look: Callable[[Tensor], None]) -> None:
        """Show the gradient at the hook point's output, through this one reader alone, to `look`."""

        def branch(output: Tensor) -> Tensor:
            own = output.view_as(output)  # a tensor of its own, so that no other reader's gradient is added to it
            if own.requires_grad:
                own.register_hook(look)
            return own

        self.replace(point, branch)

    def remove(self) -> None:
        """Take every hook off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


@contextmanager
def hooks() -> Iterator[Hooks]:
    """Hooks that come off on leaving, whatever happens."""
    held = Hooks()
    try:
        yield held
    finally:
        held.remove()

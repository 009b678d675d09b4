"""The same operator in PyTorch: its forward pass, and the gradients that autograd makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .outsider import Array, Outsider, Sizes
from .peer import torch


class Rival:
    """PyTorch's tensors for one operator; those that learn ask for a gradient."""

    def __init__(self, outsider: Outsider, sizes: Sizes, tensors: Mapping[str, Array]) -> None:
        self._outsider = outsider
        self._attributes = outsider.attributes(sizes)
        self._inputs = {name: self._tensor(name, values) for name, values in tensors.items()}
        self._recorded: Sequence[Any] = ()

    def forward(self) -> tuple[Any, ...]:
        """Return the outputs, computed without keeping anything for gradients."""
        with torch.no_grad():
            return self._outputs()

    def record(self) -> None:
        """Run forward once more and keep what gradients need."""
        self._recorded = self._outputs()

    def gradient(self, heads: Sequence[Array]) -> dict[str, Any]:
        """Return the gradients of what learns, None for one that is zero everywhere, after a forward pass."""
        pairs = [
            (output, torch.from_numpy(head))
            for output, head in zip(self._recorded, heads, strict=True)
            if output.requires_grad
        ]
        wanted = [self._inputs[name] for name in self._outsider.learned]
        if not pairs or not wanted:
            return dict.fromkeys(self._outsider.learned)
        outputs, given = zip(*pairs, strict=True)
        found = torch.autograd.grad(outputs, wanted, given, retain_graph=True, allow_unused=True)
        return dict(zip(self._outsider.learned, found, strict=True))

    def _outputs(self) -> tuple[Any, ...]:
        outputs = self._outsider.peer(*self._inputs.values(), **self._attributes)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _tensor(self, name: str, values: Array) -> Any:
        kind = self._outsider.kind(name)
        tensor = torch.from_numpy(values.copy())
        return tensor.long() if kind.whole else tensor.requires_grad_(kind.learns)

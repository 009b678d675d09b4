"""Kernels attached to convolution and its gradients: boxes and regions to plain array computations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..kernel import Array, KernelCall, Run, in_turn
from ..workspace import Workspace
from . import convolution
from .group_shares import Geometry, GroupShare
from .patches import Windows

Compute = Callable[[Array, Array, Array, Windows, Workspace], Run]


@dataclass(frozen=True, slots=True)
class ConvolutionOutput(Geometry):
    """`output[n, f, *o] = Sum(c, *t: data[n, c, *row] * weight[f, c, *t])`."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call."""
        return self.output_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        parts = ((part.data, part.weight, part.output, part.windows) for part in self.parts(call))
        return in_turn(_runs(convolution.forward, parts, call.workspace))


@dataclass(frozen=True, slots=True)
class ConvolutionDataGradient(Geometry):
    """`output[n, c, *row] = Sum(f, *t: grad_0[n, f, *o] * weight[f, c, *t])`, `o` and `t` meeting there."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call; the gradient of channels that are in none is zero."""
        return self.data_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        out, parts = call.outputs[0], self.parts(call)
        shares = ((part.output, part.weight, part.data, part.windows) for part in parts)
        runs = _runs(convolution.data_gradient, shares, call.workspace)
        covered = sum(part.data.shape[1] for part in parts) == out.shape[1]
        return in_turn(runs if covered else [lambda: out.fill(0), *runs])


@dataclass(frozen=True, slots=True)
class ConvolutionWeightGradient(Geometry):
    """`output[f, c, *t] = Sum(n, *o: grad_0[n, f, *o] * data[n, c, *row])`."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call."""
        return self.weight_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        parts = ((part.data, part.output, part.weight, part.windows) for part in self.parts(call))
        return in_turn(_runs(convolution.weight_gradient, parts, call.workspace))


def _runs(
    compute: Compute, shares: Iterable[tuple[Array, Array, Array, Windows]], workspace: Workspace
) -> list[Run]:
    """Return one function for each group; they run one after another, so all use the same scratch."""
    runs = []
    for first, second, target, windows in shares:
        workspace.rewind()
        runs.append(compute(first, second, target, windows, workspace))
    return runs

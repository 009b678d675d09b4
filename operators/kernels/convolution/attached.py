"""Kernels attached to convolution and its gradients: boxes and regions to plain array computations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..kernel import NUMPY_PRODUCT, KernelCall, Run, in_turn
from .group_shares import Geometry, GroupShare
from .library_form import Pass


@dataclass(frozen=True, slots=True)
class ConvolutionOutput(Geometry):
    """`output[n, f, *o] = Sum(c, *t: data[n, c, *row] * weight[f, c, *t])`."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call."""
        return self.output_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        return in_turn(_runs(Pass.FORWARD, self.parts(call), call))


@dataclass(frozen=True, slots=True)
class ConvolutionDataGradient(Geometry):
    """`output[n, c, *row] = Sum(f, *t: grad_0[n, f, *o] * weight[f, c, *t])`, `o` and `t` meeting there."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call; the gradient of channels that are in none is zero."""
        return self.data_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        out, parts = call.outputs[0], self.parts(call)
        runs = _runs(Pass.DATA_GRADIENT, parts, call)
        covered = sum(part.data.shape[1] for part in parts) == out.shape[1]
        return in_turn(runs if covered else [lambda: out.fill(0), *runs])


@dataclass(frozen=True, slots=True)
class ConvolutionWeightGradient(Geometry):
    """`output[f, c, *t] = Sum(n, *o: grad_0[n, f, *o] * data[n, c, *row])`."""

    def parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return the groups' shares of the call."""
        return self.weight_parts(call)

    def __call__(self, call: KernelCall) -> Run:
        return in_turn(_runs(Pass.WEIGHT_GRADIENT, self.parts(call), call))


def _runs(computes: Pass, parts: Sequence[GroupShare], call: KernelCall) -> list[Run]:
    """Return one function for each group; they run one after another, so all use the same scratch."""
    runs = []
    for part in parts:
        call.workspace.rewind()
        runs.append(_run(computes, part, call))
    return runs


def _run(computes: Pass, part: GroupShare, call: KernelCall) -> Run:
    """Return the function that computes one group's share, by oneDNN if it is there and takes it."""
    from . import by_onednn, convolution  # plans need no kernels

    run = by_onednn.convolution(computes, part, call.workspace, call.calls.append)
    if run is not None:
        return run
    call.calls.append(NUMPY_PRODUCT)
    windows, workspace = part.windows, call.workspace
    match computes:
        case Pass.FORWARD:
            return convolution.forward(part.data, part.weight, part.output, windows, workspace)
        case Pass.DATA_GRADIENT:
            return convolution.data_gradient(part.output, part.weight, part.data, windows, workspace)
        case Pass.WEIGHT_GRADIENT:
            return convolution.weight_gradient(part.data, part.output, part.weight, windows, workspace)

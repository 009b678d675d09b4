"""The contract between an operator and the code that computes it.

A kernel computes a *box* of an operator's iteration space: one interval for every index variable,
output variables and reduction variables. It gets exactly the input regions that the analysis derived for
that box, so an input's element `[0, 0]` is the tensor's element `[region[0].lower, region[1].lower]`. It is
prepared once per plan. The function that preparation returns runs in every iteration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Interval, Region
from ...errors import OperatorError
from .c_run import CRun, joined_calls
from .workspace import Array, Workspace

__all__ = [
    "NUMPY_PRODUCT",
    "Array",
    "Kernel",
    "KernelCall",
    "Run",
    "check_kernel",
    "in_turn",
    "prepared",
    "view_of",
]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One box to compute, and the arrays to read and to fill.

    Inputs and outputs are strided views. An output may share memory with an input only if that input is read
    at the output's own index alone (`bound.in_place`).
    """

    bound: Bound
    """The operator and its analysis."""

    box: Mapping[str, Interval]
    """The interval of every index variable."""

    inputs: Mapping[str, Array]
    """`inputs[name]` holds the elements of `regions[name]`. Tensors that are never read are absent."""

    regions: Mapping[str, Region]
    """The part of each input tensor that the box reads."""

    outputs: tuple[Array, ...]
    """`outputs[k]` receives the elements of output `k`; the partial result for part of a reduction."""

    workspace: Workspace = field(default_factory=Workspace)
    """Where all temporary memory comes from. Its contents are undefined at the start of every run."""

    calls: list[str] = field(default_factory=list)
    """The code of libraries that the prepared kernel calls, which the kernel adds while it is prepared."""


Run = Callable[[], None]
"""The function that a prepared kernel runs in every iteration."""

Kernel = Callable[[KernelCall], Run]

NUMPY_PRODUCT = "NumPy matmul"
"""The name of products of matrices by NumPy's BLAS library, among the `calls` of a KernelCall."""


def in_turn(runs: Sequence[Run]) -> Run:
    """Return one function that runs all, one after the other."""
    if len(runs) == 1:
        return runs[0]

    def run() -> None:
        for each in runs:
            each()

    calls = joined_calls(runs)
    return run if calls is None else CRun(run, calls)


def check_kernel(operator: str, kernel: object) -> None:
    """Raise OperatorError unless the kernel can be called with a KernelCall as its only argument."""
    wanted = "a function of one KernelCall that returns the function to run"
    if not callable(kernel):
        raise OperatorError(f"the kernel of '{operator}' is {kernel!r}, not {wanted}")
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(kernel, "__name__", "kernel")
        raise OperatorError(
            f"the kernel of '{operator}', {name}{signature}, is not {wanted}; "
            f"a function of arrays can be audited, tofu.audit({operator}, {name}), but not attached"
        ) from None


def prepared(kernel: Kernel, call: KernelCall) -> Run:
    """Prepare a user's kernel and return its run. Raises OperatorError if it does not return a function."""
    run = kernel(call)
    if not callable(run):
        raise OperatorError(
            f"the kernel of '{call.bound.description.name}' returns {type(run).__name__}, "
            "not the function that fills call.outputs whenever it runs"
        )
    return run


def view_of(array: Array, place: Iterable[slice]) -> Array:
    """Return the part of an array that slices select, always as a view.

    Without the ellipsis an array that has no dimensions would give a copy of its element.
    """
    index: tuple[Any, ...] = (Ellipsis, *place)
    view: Array = array[index]
    return view

"""From an attached convolution kernel and views of a device's memory to calls of the vendor's library.

Views are cut to the rows and places that meet (`kernels/convolution/library_form.py`). Elements of the result
that the cut leaves out are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from ...kernels import convolution as kernels
from ...kernels.convolution.group_shares import GroupShare
from ...kernels.convolution.library_form import Pass, library_form
from ...kernels.kernel import KernelCall
from ...stages.bound_operator import BoundOperator
from ..launch.commands import Command, Convolution
from ..launch.view import DeviceView
from ..launch.workspace import DeviceWorkspace
from ..transfers.transfers import fetch, fill

TYPES = frozenset(("float16", "bfloat16", "float32"))
"""Element types whose convolutions the library computes, strided views included."""

DIMENSIONS = (1, 2, 3)
"""How many spatial ones there may be."""

Attached = kernels.ConvolutionOutput | kernels.ConvolutionDataGradient | kernels.ConvolutionWeightGradient

SCRATCH_ALIGNMENT = 256
"""The alignment of the library's scratch, in bytes, as that of memory CUDA allocates."""

Need = Callable[[Convolution], int]
"""The scratch in bytes that the library asks for to run a command."""


def supported(call: KernelCall) -> bool:
    """Return whether the vendor's library computes this call; where not, the description's own kernel does.

    That the attached kernel is a convolution's, all tensors have one and the same of `TYPES`, and none is
    reversed or repeated along an axis.
    """
    views = [cast(DeviceView, array) for array in (*call.inputs.values(), *call.outputs)]
    types = {view.type for view in views}
    if len(types) != 1 or not types <= TYPES or any(view.ndim - 2 not in DIMENSIONS for view in views):
        return False
    return _attached(call) is not None and all(step > 0 for view in views for _, step in _steps(view))


def commands(call: KernelCall, workspace: DeviceWorkspace, need: Need) -> tuple[Command, ...]:
    """Return what computes a call that is `supported`, in order; nothing if the output is empty.

    Weights with gaps are copied to scratch, or from there: the library takes dense ones only.
    """
    out = cast(DeviceView, call.outputs[0])
    if not out.size:
        return ()
    found = _found(call)
    covered = sum(target(command).size for command in found)
    issued = [] if covered == out.size else list(fill(out, 0))
    for command in found:
        issued += _with_dense_weight(command, workspace)
    needs = {command: need(command) for command in issued if isinstance(command, Convolution)}
    scratch = _scratch(max(needs.values(), default=0), workspace)
    return tuple(
        replace(command, workspace=scratch, workspace_bytes=needs[command])
        if isinstance(command, Convolution) and needs[command]
        else command
        for command in issued
    )


def _scratch(nbytes: int, workspace: DeviceWorkspace) -> int:
    """Return the address of scratch for the library, one for all groups, since they run one after another."""
    if not nbytes:
        return 0
    return -(-workspace.take(nbytes + SCRATCH_ALIGNMENT - 1) // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


def _with_dense_weight(command: Convolution, workspace: DeviceWorkspace) -> tuple[Command, ...]:
    weight = command.weight
    if _packed(weight):
        return (command,)
    dense = DeviceView.dense(workspace.take(weight.nbytes), weight.shape, weight.type)
    packed = replace(command, weight=dense)
    if command.computes is Pass.WEIGHT_GRADIENT:
        return packed, *fetch([(dense, weight)])
    return *fetch([(weight, dense)]), packed


def target(command: Convolution) -> DeviceView:
    """Return the view that a command writes."""
    match command.computes:
        case Pass.FORWARD:
            return command.output
        case Pass.DATA_GRADIENT:
            return command.data
        case Pass.WEIGHT_GRADIENT:
            return command.weight


def _attached(call: KernelCall) -> tuple[Pass, Attached] | None:
    """Return the attached convolution kernel, if there is one, and which tensor it computes."""
    match call.bound.kernel if isinstance(call.bound, BoundOperator) else None:
        case kernels.ConvolutionOutput() as kernel:
            return Pass.FORWARD, kernel
        case kernels.ConvolutionDataGradient() as kernel:
            return Pass.DATA_GRADIENT, kernel
        case kernels.ConvolutionWeightGradient() as kernel:
            return Pass.WEIGHT_GRADIENT, kernel
        case _:
            return None


def _found(call: KernelCall) -> list[Convolution]:
    """Return the commands without their scratch, one for each group in which there is something to sum."""
    attached = _attached(call)
    if attached is None:
        return []
    computes, kernel = attached
    return [each for part in kernel.parts(call) if (each := _command(computes, part)) is not None]


def _steps(view: DeviceView) -> list[tuple[int, int]]:
    """Return lengths and strides of the axes along which there is more than one element, by their strides."""
    pairs = zip(view.shape, view.strides, strict=True)
    return sorted(((length, step) for length, step in pairs if length > 1), key=lambda pair: pair[1])


def _packed(view: DeviceView) -> bool:
    """Return whether the elements, in whatever order of axes, lie without gaps."""
    expected = view.itemsize
    for length, step in _steps(view):
        if step != expected:
            return False
        expected *= length
    return True


def _command(computes: Pass, part: GroupShare) -> Convolution | None:
    """Return the command without its scratch; None if every sum is empty."""
    form = library_form(part)
    if form is None:
        return None
    data, weight, output = (cast(DeviceView, view) for view in (form.data, form.weight, form.output))
    return Convolution(computes, data, weight, output, form.geometry)

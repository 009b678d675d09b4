"""The struct that a function is given: where the tensors of a call lie, and which box of them to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Interval, Region
from ...errors import DataError, OperatorError
from ..kernels.kernel import Array, KernelCall
from .datatypes import DataType
from .kernel import CudaKernel
from .parameters import ParameterStruct

Struct = npt.NDArray[np.void]
"""The one argument of a kernel's function: an array with one element."""


def pack(kernel: CudaKernel, call: KernelCall, faults: int = 0) -> Struct:
    """Return the struct for the call, an array of one element to hand to the launch by value.

    Arrays are NumPy's or anything with `__cuda_array_interface__`. `faults` is the address of
    `parameters.faults` 32-bit integers, zeroed before: the kernel sets those whose index, computed from data,
    is not a whole number or leaves its tensor, and the one for results that are not finite. Raises DataError
    for an array of another type or with strides that are not whole elements, OperatorError for one that does
    not hold what the box reads.
    """
    parameters = kernel.parameters
    _check_regions(parameters, call)
    struct = packed(parameters, call.inputs, call.regions, call.outputs, call.box)
    for tensor, axis in parameters.extents:
        struct[f"extent_{tensor}_{axis}"] = call.bound.shapes[tensor][axis]
    if parameters.faults:
        if not faults:
            raise DataError(
                f"{parameters.operator} reports indices that leave their tensor or results that are not "
                f"finite, but no memory for its flags is given; give the address of {parameters.faults} flags"
            )
        struct["faults"] = faults
    return struct


def packed(
    parameters: ParameterStruct,
    inputs: Mapping[str, Array],
    regions: Mapping[str, Region],
    outputs: Sequence[Array],
    box: Mapping[str, Interval],
) -> Struct:
    """Return the struct for arrays and a box, without extents and flags."""
    struct = np.zeros(1, parameters.dtype)
    for name, entry in parameters.inputs:
        array, region, member = inputs[name], regions[name], struct[f"in_{name}"]
        member["data"] = _address(name, array, entry)
        if region:
            member["lower"] = [lower for lower, _ in region]
            member["length"] = [upper - lower for lower, upper in region]
            member["stride"] = strides(name, array)
    for number, (entry, array) in enumerate(zip(parameters.outputs, outputs, strict=True)):
        member = struct[f"out_{number}"]
        member["data"] = _address(f"output {number}", array, entry)
        if array.ndim:
            member["stride"] = strides(f"output {number}", array)
    for name in parameters.variables:
        struct[f"box_{name}"] = box[name]
    return struct


def _check_regions(parameters: ParameterStruct, call: KernelCall) -> None:
    """Raise OperatorError if a box reads elements that its input does not hold."""
    box = np.array([[call.box[name] for name in call.bound.variables]], np.int64).reshape(1, -1, 2)
    needed = call.bound.input_regions(box)
    for name, _ in parameters.inputs:
        wanted, held = needed[name][0].tolist(), call.regions[name]
        for axis, ((lower, upper), (first, last)) in enumerate(zip(wanted, held, strict=True)):
            if lower < upper and (lower < first or upper > last):
                raise OperatorError(
                    f"{parameters.operator}: the box reads [{lower}, {upper}) of dimension {axis} of {name}, "
                    f"but its input holds [{first}, {last}); pass the region of the analysis to the kernel"
                )
        if call.inputs[name].shape != tuple(last - first for first, last in held):
            raise DataError(
                f"{parameters.operator}: the input for {name} has shape {call.inputs[name].shape}, "
                f"its region is {held}; pass an array that holds exactly this region"
            )


def _address(name: str, array: Array, entry: DataType) -> int:
    if array.dtype != entry.numpy:
        raise DataError(
            f"{name} holds {array.dtype}, the kernel was generated for {entry.name} ({entry.numpy}); convert "
            "the array, or generate a kernel for its type"
        )
    interface: Any = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])


def strides(name: str, array: Array) -> list[int]:
    """Return strides in elements. Raises DataError if one is not whole."""
    if any(stride % array.itemsize for stride in array.strides):
        raise DataError(
            f"{name} has strides of {array.strides} bytes, which are not whole elements of {array.itemsize}; "
            "copy it first"
        )
    return [stride // array.itemsize for stride in array.strides]

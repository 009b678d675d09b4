"""Compute a box of an operator by functions in C++ that are written from its description.

All that a call needs but its addresses is found once for its box and the layout of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import c_void_p, cast
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Interval
from ...errors import OperatorError
from ..derive.steps.box_at_zero import at_zero
from ..derive.steps.layout import CallLayout, address_of, layout_of, template_call
from ..emit.entry_functions import output_groups
from ..emit.integer_range import fits_64_bits
from ..emit.loops import LayoutClass, LoopSource, loop_source
from ..emit.packing import Struct, packed
from ..emit.parameters import ParameterStruct, make_parameters
from ..kernels.c_run import CallForm, CCall, CRun, Words
from ..kernels.kernel import KernelCall, Run, in_turn
from .asked import is_asked
from .built_libraries import function_in, loaded
from .compiler import required
from .joined_variables import JoinedCall, joined
from .taken_calls import across_memory, layout_class, takes

GENERATED = "generated C"
"""The name of these kernels, among the `calls` of a KernelCall."""

WORD = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class BuiltKernel:
    """The functions for a box and a layout, and their struct without addresses."""

    functions: tuple[Callable[[c_void_p], object], ...]
    """The functions, in the order in which they run. Each takes the address of the struct."""

    struct: Struct
    """The struct on templates."""

    places: tuple[tuple[int, int], ...]
    """For each address in the struct, its place in words, and the number of the array in the layout."""

    def bind(self, call: KernelCall) -> Run:
        """Return the function that runs the functions on a call's arrays."""
        arrays = [*call.inputs.values(), *call.outputs]
        struct = self.struct.view(WORD).copy()
        for place, number in self.places:
            struct[place] = address_of(arrays[number])
        return in_turn([_run(function, struct, arrays) for function in self.functions])


def _run(function: Any, struct: Words, kept: object) -> Run:
    """Return a call of a function with a struct; `kept` lives as long as it."""
    words = np.concatenate(([cast(function, c_void_p).value or 0], struct))
    address = c_void_p(address_of(words[1:]))

    def run(held: object = (words, kept)) -> None:
        function(address)

    return CRun(run, (CCall(CallForm.STRUCT, words, kept, function.__name__),))


def generated(call: KernelCall) -> Run | None:
    """Return the function that computes a call; None if kernels in C are not asked for or do not take it.

    Raises ExecutionError if the kernel cannot be built.
    """
    if not is_asked():
        return None
    box = tuple([call.box[name] for name in call.bound.variables])
    kernel = _built(call.bound, *at_zero(call.bound, box, layout_of(call)))
    if kernel is None:
        return None
    call.calls.append(GENERATED)
    return kernel.bind(call)


@lru_cache(maxsize=4096)
def _built(bound: Bound, box: tuple[Interval, ...], layout: CallLayout) -> BuiltKernel | None:
    """Return the kernel of calls of this layout; None if NumPy is to compute them."""
    call = template_call(bound, dict(zip(bound.variables, box, strict=True)), layout, layout.templates())
    if not takes(call) or not fits_64_bits(call):
        return None
    small = joined(call)
    across = across_memory(small)
    if across is None:
        return None
    parameters = make_parameters(
        small.description,
        {name: array.dtype.name for name, array in small.inputs.items()},
        [array.dtype.name for array in small.outputs],
    )
    several = len(output_groups(small.description)) > 1
    if parameters.faults or (several and _shares_memory(call)):
        return None
    source = _source(parameters, layout_class(parameters, small, across))
    return None if source is None else _kernel(source, parameters, small, call)


@lru_cache(maxsize=4096)
def _source(parameters: ParameterStruct, layout: LayoutClass) -> LoopSource | None:
    """Return the source of a kernel; None for a function that has no spelling in C."""
    try:
        return loop_source(parameters, layout)
    except OperatorError:
        return None


def _shares_memory(call: KernelCall) -> bool:
    """Tell whether an output lies over an input, which another output may be computed from later."""
    pairs = product(call.inputs.values(), call.outputs)
    return any(np.may_share_memory(read, written) for read, written in pairs)


def _kernel(
    source: LoopSource, parameters: ParameterStruct, small: JoinedCall, call: KernelCall
) -> BuiltKernel:
    """Return the kernel of a source, built if it is not on the disk."""
    struct = packed(parameters, small.inputs, small.regions, small.outputs, small.box)
    for tensor, axis in parameters.extents:
        struct[f"extent_{tensor}_{axis}"] = call.bound.shapes[tensor][axis]
    library: Any = loaded(source.text, required())
    functions = []
    for name in source.functions:
        function = function_in(library, name)
        function.restype = None
        functions.append(function)
    members = [*(f"in_{name}" for name in call.inputs), *(f"out_{n}" for n in range(len(call.outputs)))]
    fields: Mapping[str, Any] = parameters.dtype.fields or {}
    places = tuple(
        (fields[member][1] // WORD.itemsize, number)
        for number, member in enumerate(members)
        if member in fields
    )
    return BuiltKernel(tuple(functions), struct, places)

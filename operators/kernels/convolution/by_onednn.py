"""Convolutions and their gradients by oneDNN.

The library computes in forms of its own, with 8 or 16 channels innermost. So a run copies images and filters
to such forms in scratch, computes, and copies the result back, for a block of images at a time. Blocks keep
the copies small, and in cache. Only direct algorithms are used: an output depends on nothing but what its
description reads.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_void_p
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from ..kernel import Array, Run, in_turn
from ..onednn.forms import ITEM_BYTES, Form, described, form_of, undecided
from ..onednn.handle import Handle
from ..onednn.library import Library, Unimplemented, loaded, numbers
from ..onednn.primitive import (
    DATA_GRADIENT,
    OUTPUT_GRADIENT,
    RESULT,
    SOURCE,
    WEIGHT,
    WEIGHT_GRADIENT,
    MemoryObject,
    Primitive,
    execution,
    largest_scratch,
    memory,
    primitive,
)
from ..workspace import Workspace
from .group_shares import GroupShare
from .library_form import LibraryForm, Pass, WindowGeometry, library_form

TRAINING, DIRECT = 64, 1
BLOCK_BYTES = 2 << 20
"""Images and results of a block have about this size, or that of one image."""

DIMENSIONS = (1, 2, 3)
"""How many spatial ones there may be."""

MOST_TAPS = 16
"""Gradients of filters with more taps in a dimension are not the library's. With AVX-512, oneDNN 2023.2
computes wrong ones of 18 taps over 10 rows that are padded on both sides, and writes past their memory.
"""

ROLES = {
    Pass.FORWARD: (SOURCE, WEIGHT, RESULT),
    Pass.DATA_GRADIENT: (DATA_GRADIENT, WEIGHT, OUTPUT_GRADIENT),
    Pass.WEIGHT_GRADIENT: (SOURCE, WEIGHT_GRADIENT, OUTPUT_GRADIENT),
}
"""The roles of data, weight and output in each pass."""

WRITTEN = frozenset((RESULT, DATA_GRADIENT, WEIGHT_GRADIENT))
"""The roles of arrays that a pass writes."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Problem:
    """The key of a primitive and of the copies around it: all that they depend on."""

    computes: Pass
    """The tensor that is computed."""

    data: Form
    """The form of the images of a block."""

    weight: Form
    """The form of the filters."""

    output: Form
    """The form of the results of a block."""

    geometry: WindowGeometry
    """Where windows lie."""


@dataclass(frozen=True, slots=True, eq=False)
class _Operand:
    """An array of a problem, and its copy in the form that the primitive wants."""

    role: int
    """Its role in the primitive."""

    outside: Handle
    """The description of the array."""

    inside: c_void_p
    """The description of the copy."""

    nbytes: int
    """The size of the copy; 0 if there is none."""

    reorder: Primitive | None
    """Makes the copy, or the array from it if the pass writes it; None if the primitive takes the array."""

    @property
    def written(self) -> bool:
        """Tell whether the pass writes the array."""
        return self.role in WRITTEN


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A primitive and its three operands: data, weight and output."""

    library: Library
    compute: Primitive
    operands: tuple[_Operand, _Operand, _Operand]

    @property
    def scratch_bytes(self) -> int:
        """Return the scratch that is enough for each step."""
        return largest_scratch((self.compute, *(operand.reorder for operand in self.operands)))


def convolution(computes: Pass, part: GroupShare, workspace: Workspace, note: Note) -> Run | None:
    """Return the run that computes a pass of one group's share, or None if the library does not take it.

    It takes float32 in rising order, in one to three spatial dimensions, if it has fast code for the shapes,
    and for gradients of filters that are not too large.
    `note` gets the name of that code.
    """
    library, form = loaded(), library_form(part)
    if library is None or form is None or form.data.ndim - 2 not in DIMENSIONS:
        return None
    if computes is Pass.WEIGHT_GRADIENT and max(part.windows.taps) > MOST_TAPS:
        return None
    count = _together(form)
    problem = _problem(computes, form, count)
    if problem is None:
        return None
    summed = computes is Pass.WEIGHT_GRADIENT and count < len(form.data)
    prepared = _prepared(library, problem, summed)
    if prepared is None:
        return None
    note(f"oneDNN {prepared.compute.implementation}")
    run = _bound(prepared, form, count, summed, workspace)
    whole = LibraryForm(part.data, part.weight, part.output, form.geometry).target(computes)
    if whole.size == form.target(computes).size:
        return run
    return in_turn([partial(whole.fill, 0), run])


def _together(form: LibraryForm) -> int:
    """Return the images of a block: a divisor of their number, so that all blocks are equal."""
    images = len(form.data)
    most = max(1, BLOCK_BYTES * images // ((form.data.size + form.output.size) * ITEM_BYTES))
    return max(count for count in range(1, min(images, most) + 1) if images % count == 0)


def _problem(computes: Pass, form: LibraryForm, count: int) -> _Problem | None:
    data, weight, output = map(form_of, (form.data[:count], form.weight, form.output[:count]))
    if data is None or weight is None or output is None:
        return None
    return _Problem(computes, data, weight, output, form.geometry)


@lru_cache(maxsize=4096)
def _prepared(library: Library, problem: _Problem, summed: bool) -> _Prepared | None:
    """Return the primitive and its operands; None if the library has no fast code.

    The gradient of weights is `summed` over blocks in copies, so there is a copy in any case.
    """
    data, weight, output = ROLES[problem.computes]
    try:
        with library.one_thread():
            compute = _primitive(library, problem)
            operands = (
                _operand(library, compute, data, problem.data),
                _operand(library, compute, weight, problem.weight, always=summed),
                _operand(library, compute, output, problem.output),
            )
    except Unimplemented:
        return None
    return _Prepared(library, compute, operands)


def _primitive(library: Library, problem: _Problem) -> Primitive:
    """Return the primitive, in the forms that the library chooses. Raises Unimplemented."""
    geometry = problem.geometry
    data, weight, output = (
        undecided(library, form.shape) for form in (problem.data, problem.weight, problem.output)
    )
    gaps = tuple(distance - 1 for distance in geometry.dilate)
    windows = tuple(map(numbers, (geometry.stride, gaps, geometry.before, geometry.after)))
    forward = (library.engine, TRAINING, DIRECT, data, weight, None, output, *windows, library.attributes)
    name = "dnnl_convolution_forward_primitive_desc_create"
    if problem.computes is Pass.FORWARD:
        return primitive(library, name, *forward)
    hint = library.make(name, "dnnl_primitive_desc_destroy", *forward)
    arrays: tuple[Handle | None, ...] = (data, weight, output)
    name = "dnnl_convolution_backward_data_primitive_desc_create"
    if problem.computes is Pass.WEIGHT_GRADIENT:
        arrays = (data, weight, None, output)
        name = "dnnl_convolution_backward_weights_primitive_desc_create"
    return primitive(library, name, library.engine, DIRECT, *arrays, *windows, hint, library.attributes)


def _operand(
    library: Library, compute: Primitive, role: int, form: Form, *, always: bool = False
) -> _Operand:
    outside, inside = described(library, form), compute.form(role)
    if not always and library.functions.dnnl_memory_desc_equal(outside, inside):
        return _Operand(role, outside, inside, 0, None)
    first, second = (inside, outside) if role in WRITTEN else (outside, inside)
    pair = (first, library.engine, second, library.engine)
    reorder = primitive(library, "dnnl_reorder_primitive_desc_create", *pair, library.attributes)
    return _Operand(role, outside, inside, compute.nbytes(role), reorder)


def _bound(prepared: _Prepared, form: LibraryForm, count: int, summed: bool, workspace: Workspace) -> Run:
    """Return the run on arrays, block by block. Filters are copied once, and so is their gradient."""
    weight = prepared.operands[1]
    rooms = [workspace.array((operand.nbytes,), np.uint8) for operand in prepared.operands]
    term = workspace.array((weight.nbytes if summed else 0,), np.uint8)
    scratch = workspace.array((prepared.scratch_bytes,), np.uint8)
    total = rooms[1].view(np.float32)
    add = partial(np.add, total, term.view(np.float32), total) if summed else None
    starts = range(0, len(form.data), count)
    runs: list[Run] = []
    for start in starts:
        block = slice(start, start + count)
        loads: list[Run] = []
        stores: list[Run] = []
        objects = {}
        for operand, array, room in zip(
            prepared.operands, (form.data[block], form.weight, form.output[block]), rooms, strict=True
        ):
            objects[operand.role], copy = _placed(prepared, operand, array, room, scratch)
            once = starts[-1] if operand.written else 0
            if copy is not None and (operand is not weight or start == once):
                (stores if operand.written else loads).append(copy)
        later = summed and start
        if later:
            objects[weight.role] = memory(prepared.library, weight.inside, term)
        compute = execution(prepared.compute, objects, scratch)
        runs += [*loads, compute, *([add] if add is not None and later else []), *stores]
    return in_turn(runs)


def _placed(
    prepared: _Prepared, operand: _Operand, array: Array, room: Array, scratch: Array
) -> tuple[MemoryObject, Run | None]:
    """Return what the primitive takes for an array, and the run that copies."""
    outside = memory(prepared.library, operand.outside, array)
    if operand.reorder is None:
        return outside, None
    inside = memory(prepared.library, operand.inside, room)
    first, second = (inside, outside) if operand.written else (outside, inside)
    return inside, execution(operand.reorder, {SOURCE: first, RESULT: second}, scratch)

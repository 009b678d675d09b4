"""Primitives, and their execution on arrays and scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof, byref, c_char_p, c_void_p, cast
from dataclasses import dataclass

import numpy as np

from ....errors import ExecutionError
from ..c_run import CallForm, CCall, CRun
from ..kernel import Array, Run
from ..workspace import ALIGNMENT_BYTES
from .handle import Handle
from .library import Argument, Library, Unimplemented, check

SOURCE, RESULT, WEIGHT, SCRATCHPAD = 1, 17, 33, 80
DATA_GRADIENT, OUTPUT_GRADIENT, WEIGHT_GRADIENT = 129, 145, 161
"""Roles of arguments."""

IMPLEMENTATION = 8
QUERIES = {
    SOURCE: 129,
    DATA_GRADIENT: 130,
    WEIGHT: 131,
    WEIGHT_GRADIENT: 132,
    RESULT: 133,
    OUTPUT_GRADIENT: 134,
    SCRATCHPAD: 136,
}
"""The query for the description of each argument."""

EXECUTE = "dnnl_primitive_execute"
NAMED = f"oneDNN's function {EXECUTE}"

REFERENCE = "ref"
"""Parts of names of implementations that are loops for checks begin so."""


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A computation for arrays of certain forms."""

    library: Library
    """The library that made it."""

    handle: Handle
    """The primitive."""

    description: Handle
    """Its description, which owns the descriptions of its arguments."""

    implementation: str
    """The name of the code that computes it, as `brg:avx512_core`."""

    scratch_bytes: int
    """The scratch that an execution takes."""

    def form(self, role: int) -> c_void_p:
        """Return the description of an argument, which lives as long as the primitive."""
        query = self.library.functions.dnnl_primitive_desc_query_md
        return c_void_p(query(self.description, QUERIES[role], 0))

    def nbytes(self, role: int) -> int:
        """Return the bytes that an argument takes in the form that the primitive wants."""
        return int(self.library.functions.dnnl_memory_desc_get_size(self.form(role)))


def primitive(library: Library, create: str, *arguments: object, begins: str = "") -> Primitive:
    """Make a primitive of what `create` describes, by the first code whose name begins so.

    Raises Unimplemented if there is none, or only the reference. To be called with one thread.
    """
    description = library.make(create, "dnnl_primitive_desc_destroy", *arguments)
    while not (name := _implementation(library, description)).startswith(begins) or is_reference(name):
        if library.functions.dnnl_primitive_desc_next_impl(description):
            raise Unimplemented(name)
    handle = library.make("dnnl_primitive_create", "dnnl_primitive_destroy", description)
    form = c_void_p(library.functions.dnnl_primitive_desc_query_md(description, QUERIES[SCRATCHPAD], 0))
    nbytes = int(library.functions.dnnl_memory_desc_get_size(form))
    return Primitive(library, handle, description, name, nbytes)


def is_reference(implementation: str) -> bool:
    """Tell whether an implementation is a loop for checks, a thousand times slower than others."""
    return any(part.startswith(REFERENCE) for part in implementation.split(":"))


def _implementation(library: Library, description: Handle) -> str:
    name = c_char_p()
    query = library.functions.dnnl_primitive_desc_query
    check("dnnl_primitive_desc_query", query(description, IMPLEMENTATION, 0, byref(name)))
    return (name.value or b"").decode()


@dataclass(frozen=True, slots=True, eq=False)
class MemoryObject:
    """An array as the library sees it."""

    handle: Handle
    """The memory object."""

    array: Array
    """The array, which lives as long as the object."""


def memory(library: Library, form: Handle | c_void_p, array: Array) -> MemoryObject:
    """Return the memory of an array, of which `form` says how it lies."""
    address = c_void_p(array.ctypes.data)
    made = library.make("dnnl_memory_create", "dnnl_memory_destroy", form, library.engine, address)
    return MemoryObject(made, array)


def execution(made: Primitive, arguments: Mapping[int, MemoryObject], scratch: Array) -> Run:
    """Return the function that runs a primitive on arrays, given by their roles.

    Raises ExecutionError if the scratch is too small or does not start on a cache line, since the library
    would write elsewhere.
    """
    library = made.library
    need, address = made.scratch_bytes, scratch.ctypes.data
    if scratch.nbytes < need or (need and address % ALIGNMENT_BYTES):
        raise ExecutionError(
            f"oneDNN's {made.implementation} needs {need} bytes of scratch that start on a cache line, "
            f"but gets {scratch.nbytes} bytes at {address:#x}"
        )
    objects = {**arguments, SCRATCHPAD: memory(library, made.form(SCRATCHPAD), scratch)}
    given = (Argument * len(objects))(
        *(Argument(role, each.handle.address) for role, each in objects.items())
    )
    execute, threads = library.functions.dnnl_primitive_execute, library.short
    handle, stream, count = made.handle, library.stream, len(objects)

    def run(kept: object = (made, objects)) -> None:
        before = threads.omp_get_max_threads()
        if before != 1:
            threads.omp_set_num_threads(1)
        status = execute(handle, stream, count, given)
        if before != 1:
            threads.omp_set_num_threads(before)
        if status:
            check(EXECUTE, status)

    words = (
        cast(execute, c_void_p).value,
        handle.address,
        stream.address,
        count,
        addressof(given),
        cast(threads.omp_get_max_threads, c_void_p).value,
        cast(threads.omp_set_num_threads, c_void_p).value,
    )
    kept, given_words = (made, objects, given), np.array([word or 0 for word in words], np.int64)
    return CRun(run, (CCall(CallForm.ONE_THREAD, given_words, kept, NAMED),))


def largest_scratch(primitives: Sequence[Primitive | None]) -> int:
    """Return the scratch that is enough for each of several primitives that run in turn."""
    return max((each.scratch_bytes for each in primitives if each is not None), default=0)

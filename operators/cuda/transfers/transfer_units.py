"""The translation units of kernels that move data, and the structs that they are launched with.

Neither shapes nor addresses are baked in: copies share one unit, so do fills; a reduction has one for each
element type and reducer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from ....tdl import ast
from ....tdl.printer import format_expression
from ....tdl.reducers import combination
from ...emit.datatypes import DataType, data_type
from ...emit.entry_functions import BLOCK_THREADS, instances
from ...emit.kernel import behind_prelude
from ...emit.parameters import INSTANCE, Field, ParameterStruct, struct_dtype, struct_text
from ...emit.reducers import reducer_name
from ...emit.statements import reducer_text
from .copy_boxes import AXES

PIECES = 8
"""The most cells of a launch."""

SOURCES = 48
"""The most sources of a reduction's launch, of all cells together: the struct stays below 4 KiB."""

COPIED_WORDS, REDUCED_WORDS = 4, 2
"""Words of a thread, all read before any is written; of those that are reduced several terms at once."""

_INTEGER, _POINTER, _SHORT = np.dtype("<i8"), np.dtype("<u8"), np.dtype("<u4")
_AXIS = np.dtype([("length", _INTEGER), ("multiplier", _SHORT), ("shift", _SHORT)])
_STRIDES = ("strides", _INTEGER, (AXES,))
_CELL = np.dtype(
    [
        ("target", _POINTER),
        ("first_block", _INTEGER),
        ("count", _INTEGER),
        ("rank", "<i4"),
        ("width", "<i4"),
        ("axes", _AXIS, (AXES,)),
        _STRIDES,
    ]
)
_SOURCE = np.dtype([("data", _POINTER), _STRIDES])
_CELLS = Field("cells", "Cell", np.dtype((_CELL, (PIECES,))))


@dataclass(frozen=True)
class Unit:
    """One kernel that moves data, in both widths of index arithmetic, in a separate namespace."""

    name: str
    """The name that distinguishes its functions and its namespace."""

    fields: tuple[Field, ...]
    """The members of the struct that it takes."""

    body: str
    """The C++ statements of its functions."""

    types: tuple[DataType, ...] = ()
    """The element types whose headers it needs."""

    declarations: tuple[str, ...] = ()
    """Lines of C++ that stand before its functions."""

    words: int = COPIED_WORDS
    """The words that each thread moves."""

    @property
    def tile(self) -> int:
        """Words of a block."""
        return self.words * BLOCK_THREADS

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The struct on the host."""
        return struct_dtype(self.fields)

    def function(self, narrow: bool) -> str:
        """Return the name to launch."""
        return f"tofu_{self.name}_{'i32' if narrow else 'i64'}"

    @property
    def namespace(self) -> str:
        """The namespace of the struct, inside of `tofu`."""
        return f"unit_{self.name}"

    @property
    def text(self) -> str:
        """The struct and the functions, to be compiled behind the headers."""
        lines = [f"namespace tofu {{ namespace {self.namespace} {{", *self.declarations]
        lines += [struct_text(self.fields), *instances(self.function, self.body)]
        return "\n".join([*lines, f"}} }}  // namespace tofu::{self.namespace}", ""])

    @cached_property
    def source(self) -> str:
        """A translation unit with this kernel alone."""
        return units_source((self,))


def units_source(units: Iterable[Unit]) -> str:
    """CUDA C++ source of several units; for nvcc, and for NVRTC with CUDA's include folder."""
    chosen = tuple(units)
    types = (entry for unit in chosen for entry in unit.types)
    macros = (
        f"TOFU_AXES {AXES}",
        f"TOFU_COPIED_WORDS {COPIED_WORDS}",
        f"TOFU_REDUCED_WORDS {REDUCED_WORDS}",
    )
    return behind_prelude(types, (unit.text for unit in chosen), ("transfers.h",), macros)


@cache
def copy_unit() -> Unit:
    """Return copies of up to `PIECES` cells, each from one source."""
    return Unit("copy", (_CELLS, _sources(PIECES)), f"tofu::copy<Index>({INSTANCE});")


@cache
def fill_unit() -> Unit:
    """Fills cells with the bits of eight bytes, again and again."""
    return Unit(
        "fill", (_CELLS, Field("pattern", "unsigned long long", _POINTER)), f"tofu::fill<Index>({INSTANCE});"
    )


@cache
def reduce_unit(reducer: ast.AnyReducer, type: str) -> Unit:
    """Combines `terms` sources of every cell.

    In float32 for the floating-point types, float64 for that, 64-bit integers for integers; a custom reducer
    computes integers in float64.
    """
    entry = data_type(type)
    parameters = ParameterStruct(ast.Description("reduce", (), (), (), (), ()), (), (entry,))
    total, name = parameters.real, f"reduce_{reducer}_{type}"
    declarations: tuple[str, ...] = ()
    match reducer:
        case ast.Reducer():
            total = "long long" if entry.integer else total
        case ast.CustomReducer():
            key = repr((reducer.left, reducer.right, format_expression(combination(reducer))))
            name += f"_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
            declarations = (f"using real = {total};", reducer_text(parameters, reducer))
    body = f"tofu::reduce<Index, {entry.storage}, {total}, {reducer_name(reducer)}>({INSTANCE});"
    fields = (_CELLS, _sources(SOURCES), Field("terms", "long long", _INTEGER))
    return Unit(name, fields, body, (entry,), declarations, REDUCED_WORDS)


def _sources(count: int) -> Field:
    return Field("sources", "Source", np.dtype((_SOURCE, (count,))))

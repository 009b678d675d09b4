"""The one argument of a generated kernel: a struct passed by value, laid out the same on both sides.

Everything that differs between shapes, boxes and workers is in it, so one compiled kernel serves all of
them. Every member is made of pointers and 64-bit integers: there is no padding, and the assertions that
`struct_text` writes hold the compiler to the layout of `dtype`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import OperatorError
from ...tdl import ast
from ...tdl.traverse import Node, children, reads_elements, walk
from .datatypes import DataType, computed_in, data_type

INSTANCE = "p"
"""The struct's name inside a kernel."""


@dataclass(frozen=True, slots=True)
class Field:
    """One member: its C++ type and what it is on the host, a structure of a header or one number.

    An array where `dtype` has a shape; `type` is that of its elements.
    """

    name: str
    type: str
    dtype: np.dtype[np.generic]

    @property
    def text(self) -> str:
        """The member's declaration."""
        return f"{self.type} {self.name}{''.join(f'[{length}]' for length in self.dtype.shape)};"


def struct_dtype(fields: Sequence[Field]) -> np.dtype[np.void]:
    """Return the struct on the host."""
    return np.dtype([(field.name, field.dtype) for field in fields])


def struct_text(fields: Sequence[Field]) -> str:
    """Return the struct `Parameters` on the device, and assertions that it is laid out as `struct_dtype`."""
    dtype = struct_dtype(fields)
    members = [f"    {field.text}" for field in fields]
    asserts = [
        f"static_assert(TOFU_OFFSET(Parameters, {name}) == {offset});" for name, offset in _offsets("", dtype)
    ]
    size = f"static_assert(sizeof(Parameters) == {dtype.itemsize});"
    return "\n".join(["struct Parameters {", *members, "};", size, *asserts])


_POINTER = np.dtype("<u8")
_INTEGER = np.dtype("<i8")
_INTERVAL = np.dtype([("lower", _INTEGER), ("upper", _INTEGER)])


def _pointed(rank: int, *parts: str) -> np.dtype[np.void]:
    """Return a pointer and, unless the tensor is a scalar, integers for every dimension."""
    lists = [(part, _INTEGER, (rank,)) for part in parts] if rank else []
    return np.dtype([("data", _POINTER), *lists])


@dataclass(frozen=True, slots=True)
class Gather:
    """A dimension of an access whose index is computed from data; its number is its position in `faults`."""

    tensor: str
    axis: int
    span: ast.Span


@dataclass(frozen=True)
class ParameterStruct:
    """The struct of one description with the element types of its tensors and outputs."""

    description: ast.Description
    """The description that the kernel computes."""

    inputs: tuple[tuple[str, DataType], ...]
    """The name and type of every tensor that is read, in the order of the description."""

    outputs: tuple[DataType, ...]
    """The type of each output."""

    finite: bool = False
    """Whether the kernel sets one more flag, after those of `gathers`, if a result is infinite or NaN."""

    @property
    def operator(self) -> str:
        return self.description.name

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Ranks of the tensors that are read."""
        return {
            node.tensor: len(node.indices) for node in walk(self.description) if isinstance(node, ast.Element)
        }

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All index variables, in the order of the text."""
        binders = (node.name for node in walk(self.description) if isinstance(node, ast.Binder))
        return tuple(dict.fromkeys(binders))

    @cached_property
    def extents(self) -> tuple[tuple[str, int], ...]:
        """Dimensions of whole tensors whose extent is used in an index or a value."""
        bodies = (node for output in self.description.outputs for node in _used(output))
        found = ((node.tensor, node.axis) for node in bodies if isinstance(node, ast.Extent))
        return tuple(sorted(set(found)))

    @cached_property
    def gathers(self) -> tuple[Gather, ...]:
        """Data-dependent indices, in the order of the text."""
        found = (
            Gather(node.tensor, axis, index.span)
            for node in walk(self.description)
            if isinstance(node, ast.Element)
            for axis, index in enumerate(node.indices)
            if reads_elements(index)
        )
        return tuple(dict.fromkeys(found))

    @property
    def faults(self) -> int:
        """How many flags the kernel sets."""
        return len(self.gathers) + self.finite

    @property
    def real(self) -> str:
        """The C++ type of floating-point arithmetic."""
        return computed_in([entry.name for _, entry in self.inputs] + [entry.name for entry in self.outputs])

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(self._fields())

    def _fields(self) -> Iterator[Field]:
        for tensor, entry in self.inputs:
            rank = self.ranks[tensor]
            dtype = _pointed(rank, "lower", "length", "stride")
            yield Field(f"in_{tensor}", f"Input<{entry.storage}, {rank}>", dtype)
        for number, (entry, output) in enumerate(zip(self.outputs, self.description.outputs, strict=True)):
            rank = len(output.variables)
            yield Field(f"out_{number}", f"Output<{entry.storage}, {rank}>", _pointed(rank, "stride"))
        for name in self.variables:
            yield Field(f"box_{name}", "Interval", _INTERVAL)
        for tensor, axis in self.extents:
            yield Field(f"extent_{tensor}_{axis}", "long long", _INTEGER)
        if self.faults:
            yield Field("faults", "int*", _POINTER)

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The struct on the host."""
        return struct_dtype(self.fields)

    def struct_text(self) -> str:
        """Return the struct on the device, and assertions that it is laid out as `dtype`."""
        return struct_text(self.fields)

    def variable(self, name: str) -> str:
        """Return the text of an index variable."""
        return f"v_{name}"

    def interval(self, name: str) -> str:
        """Return the text of an index variable's values."""
        return f"{INSTANCE}.box_{name}"

    def lower(self, name: str) -> str:
        """Return the text of the first value of an index variable."""
        return f"Index({self.interval(name)}.lower)"

    def upper(self, name: str) -> str:
        """Return the text of the value after an index variable's last."""
        return f"Index({self.interval(name)}.upper)"

    def extent(self, tensor: str, axis: int) -> str:
        """Return the text of the extent of a whole tensor's dimension."""
        return f"{INSTANCE}.extent_{tensor}_{axis}"

    def fault(self, gather: Gather) -> str:
        """Return the text of the flag that a bad index sets."""
        return f"{INSTANCE}.faults[{self.gathers.index(gather)}]"

    @property
    def infinite(self) -> str:
        """The text of the flag that a result sets which is infinite or no number."""
        return f"{INSTANCE}.faults[{len(self.gathers)}]"


def _offsets(prefix: str, dtype: np.dtype[np.void]) -> Iterator[tuple[str, int]]:
    """Yield every member, members of members included, with its offset in bytes; of an array the ends."""
    for name, entry in (dtype.fields or {}).items():
        member, offset = entry[0], entry[1]
        if member.fields:
            yield from ((inner, offset + more) for inner, more in _offsets(f"{prefix}{name}.", member))
        elif member.base.fields:
            for number in sorted({0, member.shape[0] - 1}):
                start = offset + number * member.base.itemsize
                inside = _offsets(f"{prefix}{name}[{number}].", member.base)
                yield from ((inner, start + more) for inner, more in inside)
        else:
            yield f"{prefix}{name}", offset


def _used(output: ast.Lambda) -> Iterator[Node]:
    """Yield everything that a lambda's elements are computed from; extents stated by binders are not."""
    pending: list[Node] = [output]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.Binder):
            pending.extend(children(node))


def make_parameters(
    description: ast.Description, inputs: Mapping[str, str], outputs: Sequence[str], finite: bool = False
) -> ParameterStruct:
    """Return the struct for tensors and outputs of these types.

    Raises OperatorError for a type that is missing or not known.
    """
    read = {node.tensor for node in walk(description) if isinstance(node, ast.Element)}
    names = [name for name in description.tensor_names if name in read]
    missing = [name for name in names if name not in inputs]
    if missing:
        raise OperatorError(
            f"{description.name}: no element type is given for {', '.join(missing)}; a kernel needs the "
            f"types of {', '.join(names)}"
        )
    if len(outputs) != len(description.outputs):
        raise OperatorError(
            f"{description.name} has {len(description.outputs)} outputs, "
            f"{len(outputs)} element types are given; give one for each output"
        )
    typed = tuple((name, data_type(inputs[name])) for name in names)
    return ParameterStruct(description, typed, tuple(data_type(name) for name in outputs), finite)

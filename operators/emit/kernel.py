"""A description's kernel as CUDA C++ source.

Only ranks, element types and the description itself are baked in. Shapes, boxes, regions and strides are
the launch's argument, so a kernel is compiled once for all shapes and workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain

from ...tdl import ast
from ...tdl.printer import format
from ...tdl.traverse import custom_reducers
from .datatypes import DataType
from .entry_functions import BLOCK_THREADS, EntryFunction, entries, entry_text
from .parameters import ParameterStruct, make_parameters
from .statements import reducer_text

OPTIONS = ("-std=c++17",)
"""Compiler options of all sources. CuPy adds the architecture, and for NVRTC the folder of CUDA's headers."""


@dataclass(frozen=True)
class CudaKernel:
    """A kernel's source. Equal descriptions with equal types give the same kernel."""

    name: str
    """The kernel's name, which no other kernel has."""

    parameters: ParameterStruct
    """The struct that its functions take."""

    groups: tuple[tuple[EntryFunction, ...], ...]
    """For each group of outputs, the entries to choose from."""

    text: str
    """The definitions of the parameters and the entries, to be compiled after the prelude; `source` is
    both."""

    @cached_property
    def source(self) -> str:
        """A translation unit with this kernel alone."""
        return translation_unit((self,))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of all functions that can be launched."""
        return tuple(
            entry.function(narrow) for entry in chain.from_iterable(self.groups) for narrow in (True, False)
        )


def generate(
    description: ast.Description, inputs: Mapping[str, str], outputs: Sequence[str], *, finite: bool = False
) -> CudaKernel:
    """Return the kernel of a specialised description without stages.

    With `finite` it flags results that are not.

    `inputs` names the element type of every tensor that is read, `outputs` that of every output, as in
    `datatypes.DATA_TYPES`. Arithmetic is in float32, or in float64 if a type is. Raises OperatorError
    for an opaque function, a scalar function without a spelling, and a missing or unknown type.
    """
    parameters = make_parameters(description, inputs, outputs)
    key = tuple((name, entry.name) for name, entry in parameters.inputs)
    return _generate(description, key, tuple(outputs), finite)


def translation_unit(kernels: Iterable[CudaKernel]) -> str:
    """CUDA C++ source that defines several kernels; for nvcc, and for NVRTC with CUDA's include folder."""
    chosen = tuple(kernels)
    typed = chain.from_iterable(
        chain((entry for _, entry in kernel.parameters.inputs), kernel.parameters.outputs)
        for kernel in chosen
    )
    return behind_prelude(typed, (kernel.text for kernel in chosen))


def behind_prelude(
    types: Iterable[DataType], texts: Iterable[str], headers: Sequence[str] = (), macros: Sequence[str] = ()
) -> str:
    """CUDA C++ source: the prelude with what these element types need, further headers, then the texts."""
    defined = sorted({entry.macro for entry in types if entry.macro})
    defined += [f"TOFU_BLOCK_THREADS {BLOCK_THREADS}", *macros]
    parts = map(header, ("prelude.h", *headers))
    return "\n".join([*(f"#define {macro}" for macro in defined), *parts, *texts])


@cache
def header(name: str) -> str:
    """Return the text of a header of this room."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _generate(
    description: ast.Description,
    inputs: tuple[tuple[str, str], ...],
    outputs: tuple[str, ...],
    finite: bool,
) -> CudaKernel:
    parameters = make_parameters(description, dict(inputs), outputs, finite)
    text = format(description)
    digest = hashlib.sha256(repr((text, inputs, outputs, *("finite",) * finite)).encode()).hexdigest()[:12]
    name = f"tofu_{description.name}_{digest}"
    groups = entries(parameters, name)
    functions = [entry_text(parameters, entry) for entry in chain.from_iterable(groups)]
    return CudaKernel(name, parameters, groups, namespace_text(parameters, name, functions))


def namespace_text(parameters: ParameterStruct, name: str, functions: Iterable[str]) -> str:
    """Return the namespace of a kernel, to be compiled after the prelude: its struct, and what computes."""
    description = parameters.description
    lines = [f"// {line}".rstrip() for line in format(description).splitlines()]
    lines += [f"namespace tofu {{ namespace {name} {{", "", f"using real = {parameters.real};", ""]
    lines += [parameters.struct_text(), ""]
    lines += [f"{reducer_text(parameters, reducer)}\n" for reducer in custom_reducers(description)]
    lines += [f"{function}\n" for function in functions]
    lines += [f"}} }}  // namespace tofu::{name}", ""]
    return "\n".join(lines)

"""Make an operator's description from its attributes and, if needed, from ranks or shapes.

Most operators are one text (`Fixed`). Some write their text from the ranks of their inputs (a convolution
over one, two or three dimensions), a few from the shapes themselves (Reshape, broadcasting). The
distinction decides what a description is cached on and how early shape inference can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from ... import tdl
from ...analyzer.indices.region import Shape
from ...tdl import ast
from ..kernels.kernel import Kernel
from .attributes import Attributes, SliceBounds

Constant = int | float | bool | tuple[int | float, ...]
NOTHING: Mapping[str, Constant] = MappingProxyType({})
NO_TARGETS: Mapping[str, str] = MappingProxyType({})
NO_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Attachment:
    """Kernels for one stage, and for its gradients by the tensor they differentiate with respect to."""

    kernel: Kernel | None = None
    adjoints: Mapping[str, Kernel] = field(default_factory=dict)


NO_KERNELS: Mapping[str, Attachment] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Variant:
    """A description and the values of its keyword-only parameters."""

    description: ast.Description
    """The description that the operator has for these attributes and shapes."""

    constants: Mapping[str, Constant] = field(default_factory=lambda: NOTHING)
    """Values of the keyword-only parameters, by name."""

    kernels: Mapping[str, Attachment] = field(default_factory=lambda: NO_KERNELS)
    """Attached kernels by the stage that they compute; the last stage is `output_0`."""

    targets: Mapping[str, str] = field(default_factory=lambda: NO_TARGETS)
    """For a custom gradient: the stage or output that is each argument's gradient."""

    opaques: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: NO_FUNCTIONS)
    """The functions of NumPy arrays behind the description's `Opaque()` names."""


def variant(
    text: str,
    constants: Mapping[str, Constant] = NOTHING,
    kernels: Mapping[str, Attachment] = NO_KERNELS,
    targets: Mapping[str, str] = NO_TARGETS,
    opaques: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
) -> Variant:
    """Return a variant from TDL text; equal texts are parsed once."""
    return Variant(_parsed(text), constants, kernels, targets, opaques)


def described(text: str, attributes: Attributes, kernels: Mapping[str, Attachment] = NO_KERNELS) -> Variant:
    """Return a variant whose keyword-only parameters are the operator's attributes of the same names."""
    description = _parsed(text)
    return Variant(description, constants_of(description, attributes), kernels)


def constants_of(description: ast.Description, attributes: Attributes) -> dict[str, Constant]:
    """Return the values of a description's keyword-only parameters, from the attributes of the same names."""
    constants: dict[str, Constant] = {}
    for parameter in description.attributes:
        value = attributes[parameter.name]
        assert value is not None
        assert not isinstance(value, str | SliceBounds)
        constants[parameter.name] = value
    return constants


@cache
def _parsed(text: str) -> ast.Description:
    return tdl.parse(text, "<library>", bounded=False)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A description that the attributes alone determine."""

    describe: Callable[[Attributes], Variant]


@dataclass(frozen=True, slots=True)
class ByRank:
    """A description that the attributes and the ranks of the tensors `of` determine."""

    describe: Callable[[Attributes, Mapping[str, int]], Variant]
    of: tuple[str, ...] = ("data",)


@dataclass(frozen=True, slots=True)
class ByShape:
    """A description that the attributes and the shapes of some tensors determine; `of` names
    these tensors.
    """

    describe: Callable[[Attributes, Mapping[str, Shape]], Variant]
    of: Callable[[Attributes], tuple[str, ...]]


Definition = Fixed | ByRank | ByShape


def text(source: str) -> Fixed:
    """Return the definition of an operator that is one text, its attributes the text's keyword-only
    parameters.
    """
    return Fixed(lambda attributes: described(source, attributes))

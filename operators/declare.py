"""Describe new operators: `@tofu.op`, `tofu.parse`, `tofu.load`, and the words of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar, overload

from .. import tdl
from ..analyzer.strategies.automatic_stages import with_stages
from ..errors import DescriptionError, OperatorError
from ..support.checked_argument import path_of, require
from ..support.opened_files import open_regular
from ..support.wording import suggestion
from ..tdl import Max, Min, Opaque, Prod, Reducer, Sum, ast
from ..tdl.choices import choices_of, chosen
from ..tdl.syntax.layout import MAX_BYTES
from .callables import Callables
from .kernels.kernel import Kernel, check_kernel
from .operator import Operator
from .stages.attributes import Attributes, AttributeSpec, AttributeType
from .stages.definition import NO_FUNCTIONS, Attachment, Fixed, Variant, constants_of

T = TypeVar("T")
NO_OPERATORS: Mapping[str, Operator] = MappingProxyType({})

__all__ = ["Max", "Min", "Opaque", "Prod", "Reducer", "Sum", "load", "op", "parse"]


@overload
def op(function: Callable[..., Any]) -> Operator: ...


@overload
def op(
    *,
    opaque: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
    operators: Mapping[str, Operator] = NO_OPERATORS,
    kernel: Kernel | None = None,
) -> Callable[[Callable[..., Any]], Operator]: ...


def op(
    function: Callable[..., Any] | None = None,
    *,
    opaque: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
    operators: Mapping[str, Operator] = NO_OPERATORS,
    kernel: Kernel | None = None,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Return the operator that a decorated function describes. The function is read, never called.

        @tofu.op
        def conv1d(data, filters):
            return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])

    `@tofu.op(opaque=..., operators=..., kernel=...)` takes what `parse` takes. Raises as `parse` does, with
    file, line and a caret for everything that is wrong.
    """

    def described(function: Callable[..., Any]) -> Operator:
        text, origin, first_line = tdl.op_location(function)
        description = tdl.parse(text, origin, first_line, callables=Callables(operators))
        return operator_of(description, opaque, kernel)

    return described if function is None else described(function)


def parse(
    text: str,
    origin: str = "<string>",
    *,
    name: str | None = None,
    opaque: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
    operators: Mapping[str, Operator] = NO_OPERATORS,
    kernel: Kernel | None = None,
) -> Operator:
    """Return the operator that a text describes, with the functions behind its `Opaque()` names.

    Of several descriptions it is the last one, or the one that `name` says. A description may call those
    above it, `operators` by the names under which they are given, and operators of the library.

    `kernel` computes the last stage on the processor in place of the derived kernel; `tofu.audit` holds it
    against the text. Raises DescriptionError, and OperatorError for a function that the text does not
    declare, a name that it does not have, or a kernel that cannot be one.
    """
    if not isinstance(text, str):
        raise DescriptionError(
            f"a description must be text, found {text!r}; use tofu.op for a function, tofu.load for a file"
        )
    found = tdl.parse_all(text, origin, callables=Callables(operators))
    return operator_of(found[-1] if name is None else _named(found, name, origin), opaque, kernel)


def load(
    path: str | Path,
    *,
    name: str | None = None,
    opaque: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
    operators: Mapping[str, Operator] = NO_OPERATORS,
    kernel: Kernel | None = None,
) -> Operator:
    """Return the operator that a `.tdl` file describes, in UTF-8.

    Takes what `parse` takes. Raises as `parse` does, and DescriptionError for a file that cannot be read.
    """
    try:
        with open_regular(path_of(path, "path", DescriptionError)) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DescriptionError(f"the description file {path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise DescriptionError(f"{path} is not a description: it is larger than {MAX_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DescriptionError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
    return parse(text, str(path), name=name, opaque=opaque, operators=operators, kernel=kernel)


def _named(found: Sequence[ast.Description], name: str, origin: str) -> ast.Description:
    """Return the description of this name. Raises OperatorError."""
    require(isinstance(name, str), name, "name", "the name of a description", OperatorError)
    by_name = {description.name: description for description in found}
    if name not in by_name:
        hint = suggestion(name, by_name) or f"it has {', '.join(by_name)}"
        raise OperatorError(f"{origin} has no description {name!r}; {hint}")
    return by_name[name]


RESERVED = ("attr", "name", "training")
"""The names of arguments of `tofu.sym.apply` and `Operator.bind` that are given next to attributes."""


def operator_of(
    description: ast.Description,
    opaque: Mapping[str, Callable[..., Any]] = NO_FUNCTIONS,
    kernel: Kernel | None = None,
) -> Operator:
    """Return a description as an operator: its keyword-only parameters are the attributes.

    Reducers that can be split only as stages become stages, unless a kernel computes all of the last stage.
    """
    require(isinstance(opaque, Mapping), opaque, "opaque", "functions by name", OperatorError)
    unknown = [name for name in opaque if name not in description.opaques]
    if unknown:
        declared = ", ".join(description.opaques) or "none"
        raise OperatorError(
            f"{description.name} has no opaque function {unknown[0]!r}; it declares {declared}"
        )
    taken = next((each.name for each in description.attributes if each.name in RESERVED), None)
    if taken is not None:
        raise OperatorError(
            f"{description.name} has an attribute {taken!r}, which is an argument of tofu.sym.apply or bind; "
            "choose another name"
        )
    if kernel is not None:
        check_kernel(description.name, kernel)
    elif not choices_of(description):
        description = with_stages(description)
    names = description.tensor_names
    count = len(description.outputs)
    return Operator(
        name=description.name,
        definition=Fixed(_Described(description, tuple(opaque.items()), kernel)),
        argument_names=_Always(names),
        specs=tuple(_spec(each, choices_of(description)) for each in description.attributes),
        output_count=_Always(count),
        written=description,
    )


@dataclass(frozen=True, slots=True)
class _Always(Generic[T]):
    """A function of the attributes that returns one value for all. Two are equal if their values are."""

    value: T

    def __call__(self, attributes: Attributes) -> T:
        return self.value


@dataclass(frozen=True, slots=True)
class _Described:
    """The one description of a user's operator, for any attributes."""

    description: ast.Description
    opaque: tuple[tuple[str, Callable[..., Any]], ...]
    kernel: Kernel | None

    def __call__(self, attributes: Attributes) -> Variant:
        description = self.description
        words = {name: attributes.text(name) for name in choices_of(description)}
        if words:
            description = chosen(description, words)
            description = description if self.kernel else with_stages(description)
        constants = constants_of(description, attributes)
        kernels = {} if self.kernel is None else {"output_0": Attachment(self.kernel)}
        return Variant(description, constants, kernels, opaques=dict(self.opaque))


def _spec(parameter: ast.AttributeParameter, choices: Mapping[str, tuple[str, ...]]) -> AttributeSpec:
    if parameter.name in choices:
        words = choices[parameter.name]
        return AttributeSpec(parameter.name, AttributeType.CHOICE, parameter.default, choices=words)
    return AttributeSpec(parameter.name, AttributeType.NUMBERS, parameter.default, parameter.default is None)

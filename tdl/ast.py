"""The syntax tree of the Tensor Description Language (Tofu, section 4.1).

Nodes are immutable values. Spans say where a node came from and are ignored in comparisons: two texts
that differ only in layout give equal trees.
"""

# ruff: noqa: RUF009 (the default of every span is one immutable value)

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Span(NamedTuple):
    """Character offsets `[start, end)` into the source text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


class Reducer(StrEnum):
    """Commutative and associative functions that aggregate over reduction variables."""

    SUM = "Sum"
    MAX = "Max"
    MIN = "Min"
    PROD = "Prod"


@dataclass(frozen=True, slots=True)
class CustomReducer:
    """`name = Reducer(lambda left, right: body, identity)`: a reducer that the user defines."""

    name: str
    """The name to which the text assigns it."""

    left: str
    """The first parameter of `body`."""

    right: str
    """The second parameter of `body`."""

    body: Expression
    """Made of the two parameters, numbers and scalar functions. The user promises that it is commutative and
    associative."""

    identity: int | float
    """The value that `body` combines with any other without changing it; promised likewise."""

    span: Span = _span()
    """The place in the text."""

    def __str__(self) -> str:
        return self.name


AnyReducer = Reducer | CustomReducer


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A literal; after specialisation also an attribute's value.

    1, 1.0 and True are unequal, and so are 0.0 and -0.0: `x // 2` is an index, and `x // 2.0` is not. All
    caches by description tell them apart.
    """

    value: int | float
    span: Span = _span()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Variable:
    """An index variable, in an index or used as a value."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Star:
    """`*name`: all index variables of a starred binder; only inside brackets, gone after specialisation."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FullSlice:
    """`:`, a whole dimension; only in the arguments of an opaque function."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword-only parameter, `stride` or `stride[0]`; gone after specialisation."""

    name: str
    index: int | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Choice:
    """`mode == "edge"`: whether an attribute is a word; gone after specialisation."""

    attribute: str
    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Extent:
    """`tensor.shape[axis]`: the extent of a whole (unpartitioned) tensor's dimension."""

    tensor: str
    axis: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Element:
    """`tensor[indices]`: one element (or, as an opaque function's argument, a slice)."""

    tensor: str
    indices: tuple[Index, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Pad:
    """`pad(element, value)`: the element, or `value` if its indices leave the tensor."""

    element: Element
    value: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `not x`."""

    operator: str
    operand: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation on two values."""

    operator: str
    """One of `+ - * / // % **`, the comparisons `< <= > >= == !=`, and `and`, `or`."""

    left: Expression
    """The first operand."""

    right: Expression
    """The second operand."""

    span: Span = _span()
    """The place in the text."""


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function, one of `functions.FUNCTIONS`; `where(condition, x, y)` is one of them."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binder:
    """A parameter of a lambda: an index variable."""

    name: str
    """The variable's name."""

    extent: Expression | None = None
    """The extent that the text states; None if it is inferred."""

    star: bool = False
    """Whether the text is `*name`, which binds any number of variables."""

    span: Span = _span()
    """The place in the text."""


@dataclass(frozen=True, slots=True)
class ReducerCall:
    """`Sum(lambda i, j: body)`, and likewise for the other reducers."""

    reducer: AnyReducer
    """Combines the values of the body. The body of a custom reducer is not part of this tree."""

    variables: tuple[Binder, ...]
    """The reduction variables."""

    body: Expression
    """The value for each setting of the variables."""

    span: Span = _span()
    """The place in the text."""


@dataclass(frozen=True, slots=True)
class OpaqueElement:
    """`function(arguments)[indices]`: an element of the result of a function whose body is unknown."""

    function: str
    """The function's name."""

    arguments: tuple[Element, ...]
    """The slices of tensors that the function takes."""

    indices: tuple[Index, ...]
    """The indices of the element in the result."""

    span: Span = _span()
    """The place in the text."""


Expression = (
    Number
    | Variable
    | Attribute
    | Choice
    | Extent
    | Element
    | Pad
    | Unary
    | Binary
    | Call
    | ReducerCall
    | OpaqueElement
)
Index = Expression | Star | FullSlice


@dataclass(frozen=True, slots=True)
class Lambda:
    """A tensor as a function from index variables to elements."""

    variables: tuple[Binder, ...]
    body: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NamedStage:
    """`name = lambda ...: ...`: an intermediate tensor that later stages and the outputs read."""

    name: str
    value: Lambda
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TensorParameter:
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AttributeParameter:
    """A keyword-only parameter; `default` is None if the user must give a value, and a word for a choice."""

    name: str
    default: int | float | bool | str | tuple[int | float, ...] | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Description:
    """One operator, checked: every name is bound and every tensor has one rank."""

    name: str
    """The operator's name."""

    tensors: tuple[TensorParameter, ...]
    """The tensors that it takes, in order."""

    attributes: tuple[AttributeParameter, ...]
    """The keyword-only parameters, in order."""

    opaques: tuple[str, ...]
    """The names of the opaque functions that the text declares."""

    stages: tuple[NamedStage, ...]
    """The intermediate tensors, each after those that it reads."""

    outputs: tuple[Lambda, ...]
    """One lambda for each output."""

    source: str = field(default="", compare=False, repr=False)
    """The text that the description was parsed from; empty if a program made it."""

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return tuple([parameter.name for parameter in self.tensors])

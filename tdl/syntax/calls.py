"""Calls of descriptions in one text, while it is built: their stages, each made once, and names for these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from ...errors import TofuError
from ...support.wording import suggestion
from ..ast import Description, Element, FullSlice, Index, NamedStage, Number, Span, Star, Unary, Variable
from ..constants import is_constant
from ..traverse import variable_names
from .inlining import CallerNames, Given, Inlined, MisfitError, Settings, inline
from .parts import AttributeSetting, DescriptionCall, Name, Part, Quoted

Setting = int | float | str
"""The value of an attribute in a call: a number or a word."""


class DescriptionFamily(Protocol):
    """Descriptions of one operator that differ by ranks and attributes."""

    def description(self, ranks: Sequence[int], settings: Mapping[str, Setting]) -> Description:
        """Return the description for tensors of these ranks. Raises OperatorError."""
        ...


Callee = Description | DescriptionFamily
NO_CALLABLES: Mapping[str, Callee] = MappingProxyType({})

_WORD = re.compile(r"[A-Za-z_]\w*+(?!\s*\()")
"""A word that is not only the name of a function."""

_SLICE = "write a tensor's name, or a slice of variables, numbers and ':', such as x[b, :]"


class Calls:
    """The calls of one text."""

    def __init__(self, callables: Mapping[str, Callee], text: str) -> None:
        """`callables` are the descriptions that the text may call, by name."""
        self._callables = callables
        self._taken = set(_WORD.findall(text))
        self._declared: set[str] = set()
        self._made: dict[object, Inlined] = {}

    def declare(self, names: Iterable[str]) -> None:
        """Add names of tensors, attributes and statements."""
        self._declared.update(names)

    def has(self, name: str, arguments: Sequence[Part]) -> bool:
        """Return whether a call is one of a description.

        Calls of a family have a slice with `:`, which tells them from calls of functions.
        """
        if isinstance(self._callables.get(name), Description):
            return True
        sliced = any(
            isinstance(part, Element) and any(isinstance(index, FullSlice) for index in part.indices)
            for part in arguments
        )
        return sliced and self.is_family(name)

    def is_family(self, name: str) -> bool:
        """Return whether a name is one of descriptions that differ by ranks and attributes."""
        return name in self._callables and not isinstance(self._callables[name], Description)

    def stages(self, call: DescriptionCall) -> tuple[NamedStage, ...]:
        """Return the stages of a call that no call before it has made. Raises MisfitError."""
        given = self._given(call)
        settings = {part.name: part.value for part in call.arguments if isinstance(part, AttributeSetting)}
        for name, value in settings.items():
            if isinstance(value, Quoted):
                continue
            if not is_constant(value) or variable_names(value):
                hint = "use numbers, attributes, tensor.shape[axis] and constants"
                raise MisfitError(f"attribute '{name}' of '{call.name}' must be a constant", hint)
        key = self._key(call)
        if key in self._made:
            return ()
        names = CallerNames(self._declared, self._fresh)
        callee = self._callables[call.name]
        if not isinstance(callee, Description):
            callee, settings = _of_family(call.name, callee, given, settings), {}
        made = self._made[key] = inline(callee, given, settings, names, call.span)
        return made.stages

    def element(self, call: DescriptionCall, indices: Sequence[Index], span: Span) -> Element:
        """Return an element of the result of a call, whose stages are made."""
        made = self._made[self._key(call)]
        return Element(made.stages[-1].name, (*made.outer, *indices), span)

    def _key(self, call: DescriptionCall) -> object:
        return call.name, tuple(
            (part.name, part.value) if isinstance(part, AttributeSetting) else getattr(part, "name", part)
            for part in call.arguments
        )

    def _given(self, call: DescriptionCall) -> list[Given]:
        """Return the tensors of a call. Raises MisfitError."""
        found = []
        for part in call.arguments:
            match part:
                case AttributeSetting():
                    continue
                case Name(name=tensor):
                    found.append(Given(tensor, None))
                case Element(tensor=tensor, indices=indices) if all(map(_fits_slice, indices)):
                    found.append(Given(tensor, indices))
                case _:
                    raise MisfitError(f"'{call.name}' expects tensors", _SLICE)
            if tensor not in self._declared:
                hint = suggestion(tensor, self._declared) or _SLICE
                raise MisfitError(f"unknown tensor '{tensor}'", hint)
        return found

    def _fresh(self, base: str) -> str:
        """Return a name that stands nowhere in the text, and take it."""
        numbered = (f"{base}_{number}" for number in range(2, len(self._taken) + 3))
        name = base if base not in self._taken else next(each for each in numbered if each not in self._taken)
        self._taken.add(name)
        self._declared.add(name)
        return name


def _of_family(
    name: str, family: DescriptionFamily, given: Sequence[Given], settings: Settings
) -> Description:
    """Return the description that a call with these slices and attributes means. Raises MisfitError."""
    ranks = []
    for argument in given:
        if argument.indices is None or any(isinstance(index, Star) for index in argument.indices):
            hint = f"write {argument.tensor}[:, :], with ':' for each dimension"
            raise MisfitError(f"'{name}' needs the number of dimensions of '{argument.tensor}'", hint)
        ranks.append(sum(isinstance(index, FullSlice) for index in argument.indices))
    values: dict[str, Setting] = {}
    for attribute, value in settings.items():
        if isinstance(value, Unary) and value.operator == "-" and isinstance(value.operand, Number):
            value = Number(-value.operand.value)
        if not isinstance(value, Number | Quoted):
            hint = "write a number or a string"
            raise MisfitError(f"attribute '{attribute}' of '{name}' must be known in the text", hint)
        values[attribute] = value.value
    try:
        return family.description(ranks, values)
    except TofuError as error:
        raise MisfitError(
            f"'{name}' cannot be called here: {error}", "see `tofu describe` for the operator"
        ) from None


def _fits_slice(index: Index) -> bool:
    return isinstance(index, FullSlice | Variable | Star | Number)

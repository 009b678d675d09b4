"""Write out the call of a description: its stages, for the tensors or slices that it is given.

    softmax(x[b, :])[j]    becomes    softmax_top = lambda b: Max(lambda k: x[b, k])
                                      softmax = lambda b, j: ...
                                      softmax[b, j]

A stage gets the variables of the slices that it reads in front of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import cast

from ...support.wording import counted
from ..ast import (
    NOWHERE,
    Attribute,
    Binder,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Lambda,
    NamedStage,
    Number,
    Pad,
    Span,
    Star,
    Variable,
)
from ..choices import choices_of, chosen
from ..traverse import Node, custom_reducers, transform, walk
from .parts import Quoted

Settings = Mapping[str, Expression | Quoted]
"""Values of attributes by name: words, or made of numbers, attributes and extents of the caller."""


class MisfitError(Exception):
    """A call that does not fit the description. The builder turns it into a complaint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Given:
    """An argument: a whole tensor, or a slice."""

    tensor: str
    """The caller's tensor."""

    indices: tuple[Index, ...] | None
    """Variables, stars, numbers and at least one `:`; None for the whole tensor."""


@dataclass(frozen=True, slots=True)
class CallerNames:
    """The names of the caller."""

    declared: Set[str]
    """CallerNames that a variable would shadow: of tensors, attributes and statements."""

    fresh: Callable[[str], str]
    """Makes a name that means nothing else from one that may."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """The stages of a call."""

    stages: tuple[NamedStage, ...]
    """The stages, each after those that it reads. The last one is the result."""

    outer: tuple[Index, ...]
    """The first indices of the result: the variables of the slices."""


def inline(
    callee: Description, given: Sequence[Given], settings: Settings, names: CallerNames, span: Span
) -> Inlined:
    """Return the stages of a call, in which every node has the place of the call.

    Raises MisfitError for a call that does not fit.
    """
    return _Call(callee, given, settings, names, span).inlined()


class _Call:
    """One call that is being written out."""

    def __init__(
        self,
        callee: Description,
        given: Sequence[Given],
        settings: Settings,
        names: CallerNames,
        span: Span,
    ) -> None:
        names_of_tensors = _checked(callee, given)
        values = _settings(callee, settings)
        words = {name: value.value for name, value in values.items() if isinstance(value, Quoted)}
        self.callee = callee = chosen(callee, words)
        self.span = span
        self.slices = dict(zip(names_of_tensors, given, strict=True))
        self.settings = {name: value for name, value in values.items() if not isinstance(value, Quoted)}
        self.outer = [
            index
            for argument in given
            for index in argument.indices or ()
            if isinstance(index, Variable | Star)
        ]
        shadowed = names.declared | {index.name for index in self.outer}
        own = sorted({node.name for node in walk(callee) if isinstance(node, Binder)})
        self.variables = {name: names.fresh(name) if name in shadowed else name for name in own}
        self.names = names
        self.produced: dict[str, tuple[str, tuple[Index, ...]]] = {}

    def inlined(self) -> Inlined:
        name = self.callee.name
        stages = [self.stage(f"{name}_{stage.name}", stage.name, stage.value) for stage in self.callee.stages]
        stages.append(self.stage(name, "", self.callee.outputs[0]))
        return Inlined(tuple(stages), self.produced[""][1])

    def stage(self, base: str, own: str, value: Lambda) -> NamedStage:
        """Return a stage of the caller, with the variables of slices that it reads in front."""
        body = transform(value, self.rewritten)
        used = {node.name for node in walk(body) if isinstance(node, Variable | Star)}
        outer = tuple(dict.fromkeys(index for index in self.outer if index.name in used))
        binders = tuple(self.binder(index, body) for index in outer)
        name = self.names.fresh(base)
        while name in self.variables.values():
            name = self.names.fresh(base)
        self.produced[own] = (name, outer)
        return NamedStage(name, replace(body, variables=(*binders, *body.variables)), self.span)

    def binder(self, index: Variable | Star, body: Lambda) -> Binder:
        """Return the binder of a variable of a slice.

        It states the extent if no element of the stage does.
        """
        if isinstance(index, Star):
            return Binder(index.name, None, True, self.span)
        padded = {id(node.element) for node in walk(body) if isinstance(node, Pad)}
        elements = (node for node in walk(body) if isinstance(node, Element) and id(node) not in padded)
        if any(index in element.indices for element in elements):
            return Binder(index.name, None, False, self.span)
        tensor, indices = next(
            (argument.tensor, argument.indices)
            for argument in self.slices.values()
            if argument.indices is not None and index in argument.indices
        )
        axis = indices.index(index)
        if any(isinstance(each, Star) for each in indices[:axis]):
            axis -= len(indices)
        return Binder(index.name, Extent(tensor, axis, self.span), False, self.span)

    def rewritten(self, node: Node) -> Node:
        """Return a node of the callee as one of the caller; its children are rewritten already."""
        match node:
            case Element(tensor=tensor, indices=indices):
                return self.element(tensor, indices)
            case Extent(tensor=tensor, axis=axis):
                return self.extent(tensor, axis)
            case Variable(name=name):
                return Variable(self.variables[name], self.span)
            case Star(name=name):
                return Star(self.variables[name], self.span)
            case Binder(name=name):
                return replace(node, name=self.variables[name], span=self.span)
            case Attribute(name=name, index=index):
                return self.setting(name, index)
            case _:
                return cast(Node, replace(cast(Number, node), span=self.span))

    def element(self, tensor: str, indices: tuple[Index, ...]) -> Element:
        if tensor in self.produced:
            name, outer = self.produced[tensor]
            return Element(name, (*outer, *indices), self.span)
        argument = self.slices[tensor]
        if argument.indices is None:
            return Element(argument.tensor, indices, self.span)
        free = [place for place, index in enumerate(argument.indices) if isinstance(index, FullSlice)]
        if any(isinstance(index, Star) for index in indices):
            if free[-1] - free[0] >= len(free):
                raise MisfitError(
                    f"'{self.callee.name}' reads '{tensor}' with stars, but the ':' of its slice are apart",
                    "transpose the tensor in a stage, so that ':' stand next to each other",
                )
            before, after = argument.indices[: free[0]], argument.indices[free[-1] + 1 :]
            return Element(argument.tensor, (*before, *indices, *after), self.span)
        if len(indices) != len(free):
            raise MisfitError(
                f"'{self.callee.name}' reads '{tensor}' with {counted(len(indices), 'index', 'indices')}, "
                f"but its slice has {counted(len(free), 'dimension')}",
                "write ':' for every dimension that the description indexes",
            )
        filled = list(argument.indices)
        for place, index in zip(free, indices, strict=True):
            filled[place] = index
        return Element(argument.tensor, tuple(filled), self.span)

    def extent(self, tensor: str, axis: int) -> Extent:
        if tensor in self.produced:
            name, outer = self.produced[tensor]
            return Extent(name, axis if axis < 0 else axis + len(outer), self.span)
        argument = self.slices[tensor]
        if argument.indices is None:
            return Extent(argument.tensor, axis, self.span)
        free = [place for place, index in enumerate(argument.indices) if isinstance(index, FullSlice)]
        if not -len(free) <= axis < len(free):
            raise MisfitError(
                f"'{self.callee.name}' uses {tensor}.shape[{axis}], but its slice has "
                f"{counted(len(free), 'dimension')}",
                "write ':' for every dimension that the description indexes",
            )
        place = free[axis]
        if any(isinstance(index, Star) for index in argument.indices[:place]):
            place -= len(argument.indices)
        return Extent(argument.tensor, place, self.span)

    def setting(self, name: str, index: int | None) -> Expression:
        value = self.settings[name]
        if isinstance(value, tuple):
            assert index is not None, "the checker lets no tuple stand for a number"
            return Number(value[index], self.span)
        if index is None:
            return value
        raise MisfitError(f"attribute '{name}' of '{self.callee.name}' is a tuple", "leave it at its default")


def _checked(callee: Description, given: Sequence[Given]) -> tuple[str, ...]:
    """Return the names of the callee's tensors, one for each argument."""
    names = callee.tensor_names
    if len(given) != len(names):
        raise MisfitError(
            f"'{callee.name}' expects {counted(len(names), 'tensor')}, found {len(given)}",
            f"write {callee.name}({', '.join(names)})",
        )
    if len(callee.outputs) > 1:
        raise MisfitError(
            f"'{callee.name}' has {len(callee.outputs)} outputs, and only a description with one is called",
            "describe each output as a separate operator",
        )
    if callee.opaques or custom_reducers(callee):
        raise MisfitError(
            f"'{callee.name}' declares an opaque function or a reducer",
            "declare it in this description, and write out what the other one computes",
        )
    return names


def _settings(
    callee: Description, given: Settings
) -> dict[str, Expression | Quoted | tuple[int | float, ...]]:
    """Return a value for every attribute of the callee."""
    words = choices_of(callee)
    known = {attribute.name: attribute.default for attribute in callee.attributes}
    for name in given:
        if name not in known:
            raise MisfitError(
                f"'{callee.name}' has no attribute '{name}'", f"it has {', '.join(known) or 'none'}"
            )
        value = given[name]
        if name in words and not (isinstance(value, Quoted) and value.value in words[name]):
            either = " or ".join(f'"{word}"' for word in words[name])
            raise MisfitError(f"attribute '{name}' of '{callee.name}' is a choice", f"write {either}")
        if name not in words and isinstance(value, Quoted):
            raise MisfitError(f"attribute '{name}' of '{callee.name}' is not a choice", "write a number")
    values: dict[str, Expression | Quoted | tuple[int | float, ...]] = dict(given)
    for name, default in known.items():
        if name in values:
            continue
        if default is None:
            raise MisfitError(f"attribute '{name}' of '{callee.name}' needs a value", f"write {name}=...")
        match default:
            case str():
                values[name] = Quoted(default, NOWHERE)
            case tuple():
                values[name] = default
            case _:
                values[name] = Number(+default)
    return values

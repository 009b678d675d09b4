"""Check that all uses of a tensor, opaque function or attribute in a description agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...support.wording import counted
from ..ast import (
    Attribute,
    AttributeParameter,
    CustomReducer,
    Description,
    Element,
    Extent,
    FullSlice,
    OpaqueElement,
    Span,
    Star,
)
from ..choices import choices_of
from ..printer import format_expression
from ..source import Diagnostic
from ..traverse import custom_reducers


@dataclass(slots=True)
class Usage:
    """Every use that the checker met, by name, in the order of the text."""

    elements: dict[str, list[Element]] = field(default_factory=dict)
    """The elements that are read of each tensor and stage."""

    extents: dict[str, list[Extent]] = field(default_factory=dict)
    """The dimensions of each tensor that are mentioned, as in `data.shape[0]`."""

    opaques: dict[str, list[OpaqueElement]] = field(default_factory=dict)
    """The calls of each opaque function."""

    attributes: dict[str, list[Attribute]] = field(default_factory=dict)
    """The uses of each attribute."""

    def check_agreement(self, description: Description) -> list[Diagnostic]:
        """Return complaints about ranks and forms that disagree between uses."""
        complaints: list[Diagnostic] = []
        stages = {
            stage.name: Element(
                stage.name,
                tuple(Star(b.name) if b.star else FullSlice() for b in stage.value.variables),
                stage.span,
            )
            for stage in description.stages
        }
        for tensor in (*description.tensor_names, *stages):
            uses = self.elements.get(tensor, [])
            complaints += _check_rank(tensor, uses, self.extents.get(tensor, []), stages.get(tensor))
        for calls in self.opaques.values():
            complaints += _check_calls(calls)
        for attribute in description.attributes:
            values = self.attributes.get(attribute.name, [])
            complaints += _check_attribute(attribute, values) + _check_length(attribute, values)
        return complaints

    def check_unused(
        self,
        description: Description,
        opaque_spans: Mapping[str, Span],
        reducers: Mapping[str, CustomReducer],
    ) -> list[Diagnostic]:
        """Return complaints about tensors, stages, opaque functions and custom reducers that nothing uses."""
        read = self.elements.keys() | self.extents.keys()
        complaints = [
            Diagnostic(
                f"tensor '{tensor.name}' is never used", tensor.span, "index it or delete the parameter"
            )
            for tensor in description.tensors
            if tensor.name not in read
        ]
        complaints += [
            Diagnostic(f"stage '{stage.name}' is never used", stage.span, "read it, return it or delete it")
            for stage in description.stages
            if stage.name not in read
        ]
        complaints += [
            Diagnostic(f"opaque function '{name}' is never used", span, "call it or delete it")
            for name, span in opaque_spans.items()
            if name not in self.opaques
        ]
        used = {reducer.name for reducer in custom_reducers(description)}
        complaints += [
            Diagnostic(f"reducer '{name}' is never used", reducer.span, "reduce with it or delete it")
            for name, reducer in reducers.items()
            if name not in used
        ]
        return complaints


def check_choices(description: Description) -> list[Diagnostic]:
    """Return complaints about choices that may be one word only."""
    words = choices_of(description)
    return [
        Diagnostic(
            f"choice '{each.name}' can only be '{each.default}'",
            each.span,
            f'compare it with every other word that it may be: {each.name} == "..."',
        )
        for each in description.attributes
        if len(words.get(each.name, ("", ""))) < 2
    ]


def _check_rank(
    tensor: str, uses: list[Element], extents: list[Extent], declared: Element | None
) -> list[Diagnostic]:
    """Check that all uses of a tensor have one rank. A starred index stands for any number of dimensions."""
    complaints = []
    plain = [use for use in uses if not _starred(use)]
    if declared is not None and not _starred(declared):
        plain.insert(0, declared)
    if plain:
        first = plain[0]
        rank = len(first.indices)
        origin = (
            f"it is defined with {rank}" if first is declared else f"'{format_expression(first)}' has {rank}"
        )
        for use in uses:
            fixed = sum(not isinstance(index, Star) for index in use.indices)
            wrong = fixed > rank if _starred(use) else fixed != rank
            if wrong:
                count = f"{'at least ' if _starred(use) else ''}{counted(fixed, 'index', 'indices')}"
                message = f"'{tensor}' is used with {count}, but {origin}"
                complaints.append(Diagnostic(message, use.span, "a tensor has the same rank everywhere"))
        for extent in extents:
            if not -rank <= extent.axis < rank:
                message = f"'{tensor}' has no axis {extent.axis}, its rank is {rank}"
                complaints.append(Diagnostic(message, extent.span, f"it has {counted(rank, 'dimension')}"))
    return complaints


def _starred(element: Element) -> bool:
    return any(isinstance(index, Star) for index in element.indices)


def _check_calls(calls: list[OpaqueElement]) -> list[Diagnostic]:
    """Check that every call of an opaque function has as many arguments and indices as the first."""
    complaints = []
    first = calls[0]
    for call in calls[1:]:
        name = call.function
        if len(call.arguments) != len(first.arguments):
            counts = f"{counted(len(call.arguments), 'argument')}, but elsewhere with {len(first.arguments)}"
            complaints.append(
                Diagnostic(f"'{name}' is called with {counts}", call.span, "use one form everywhere")
            )
        if len(call.indices) != len(first.indices):
            counts = (
                f"{counted(len(call.indices), 'index', 'indices')}, but elsewhere with {len(first.indices)}"
            )
            message = f"the result of '{name}' is indexed with {counts}"
            complaints.append(Diagnostic(message, call.span, "a result has the same rank everywhere"))
    return complaints


def _check_attribute(attribute: AttributeParameter, uses: list[Attribute]) -> list[Diagnostic]:
    """Check that an attribute is a number or a tuple, not both.

    The default says which, else the first use.
    """
    if not uses:
        return []
    if attribute.default is None:
        is_tuple, why = uses[0].index is not None, "it is used otherwise above"
    else:
        is_tuple, why = isinstance(attribute.default, tuple), f"its default is {attribute.default}"
    if is_tuple:
        message = f"attribute '{attribute.name}' is a tuple ({why}) and must be indexed"
        hint = f"write {attribute.name}[0] for its first value"
    else:
        message = f"attribute '{attribute.name}' is a number ({why}) and cannot be indexed"
        hint = f"write {attribute.name}, or give it a tuple as default"
    return [Diagnostic(message, use.span, hint) for use in uses if (use.index is not None) != is_tuple]


def _check_length(attribute: AttributeParameter, uses: list[Attribute]) -> list[Diagnostic]:
    """Check that a tuple given as default has all the values that the description uses."""
    if not isinstance(attribute.default, tuple):
        return []
    count = len(attribute.default)
    message = f"attribute '{attribute.name}' has {counted(count, 'value')} by its default"
    return [
        Diagnostic(f"{message}, there is no {attribute.name}[{use.index}]", use.span, "give a longer default")
        for use in uses
        if use.index is not None and use.index >= count
    ]

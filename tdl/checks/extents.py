"""Check that extents can be inferred: those of index variables and of opaque functions' results."""

from __future__ import annotations

from collections.abc import Sequence

from ...support.wording import counted
from ..ast import Binder, Description, Element, FullSlice, Lambda, OpaqueElement, Star, Variable
from ..ranks import undecided_stars
from ..source import Diagnostic
from ..traverse import variable_names, walk


def unknown_extents(lambdas: Sequence[Lambda]) -> list[Diagnostic]:
    """Return complaints about single variables whose extent is not stated and that index nothing.

    The lambdas share their variables; what one of them says holds for all.
    """
    nodes = [node for value in lambdas for node in walk(value)]
    indexing = {
        inner.name
        for node in nodes
        if isinstance(node, Element | OpaqueElement)
        for inner in walk(node)
        if isinstance(inner, Variable | Star)
    }
    known = indexing | _stated(lambdas)
    unknown: dict[str, Binder] = {}
    for node in nodes:
        if isinstance(node, Binder) and not node.star and node.name not in known:
            unknown.setdefault(node.name, node)
    places = {binder.span: name for name, binder in reversed(unknown.items())}
    return [
        Diagnostic(
            f"the extent of '{name}' cannot be inferred",
            binder.span,
            f"state it: lambda {name}=..., or index a tensor with it",
        )
        for name, binder in unknown.items()
        if places[binder.span] == name
    ]


def open_stars(description: Description) -> list[Diagnostic]:
    """Return complaints about stars whose number of variables does not follow from the tensors' ranks."""
    return [
        Diagnostic(
            f"no tensor's rank decides how many variables '*{binder.name}' stands for",
            binder.span,
            f"index a tensor with '*{binder.name}' and no other starred variable that is not decided",
        )
        for binder in undecided_stars(description, description.tensor_names)
    ]


def misread_results(lambdas: Sequence[Lambda]) -> list[Diagnostic]:
    """Return complaints about results of opaque functions that are indexed at the wrong rank.

    A result has the rank of its first argument's slice, unless its indices' extents are stated.
    """
    complaints = []
    stated = _stated(lambdas)
    for node in (node for value in lambdas for node in walk(value)):
        if not isinstance(node, OpaqueElement) or not node.arguments:
            continue
        if any(isinstance(index, Star) for index in node.indices):
            continue
        slices = sum(isinstance(index, FullSlice) for index in node.arguments[0].indices)
        indexing = set[str]().union(*map(variable_names, node.indices))
        if slices != len(node.indices) and not indexing <= stated:
            message = (
                f"the result of '{node.function}' is indexed with "
                f"{counted(len(node.indices), 'index', 'indices')}, but its first argument is a slice with "
                f"{counted(slices, 'dimension')}"
            )
            hint = "if the rank of the result differs from that of the slice, state extents: lambda i=...:"
            complaints.append(Diagnostic(message, node.span, hint))
    return complaints


def _stated(lambdas: Sequence[Lambda]) -> set[str]:
    """Return variables whose extent a binder states."""
    binders = (node for value in lambdas for node in walk(value) if isinstance(node, Binder))
    return {binder.name for binder in binders if binder.extent is not None}

"""Final names and stated extents for the variables of an adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count

from ...tdl.ast import Binder, Description, Element, Extent, Lambda, ReducerCall, Variable
from ...tdl.syntax.words import LANGUAGE
from ...tdl.traverse import Node, custom_reducers, tensors_in, transform, walk
from .extents import KnownExtents, bare_accesses
from .sites import origin


def state_extents(value: Lambda, extents: KnownExtents) -> Lambda:
    """State the extent of every reduction variable that cannot be inferred from the tensors it indexes."""
    mentioned = {node.tensor for node in walk(value.body) if isinstance(node, Element)}

    def rewrite(node: Node) -> Node:
        if not isinstance(node, ReducerCall):
            return node
        filled: dict[str, list[Extent]] = {}
        for name, extent in bare_accesses(extents.description, node.body):
            filled.setdefault(name, []).append(extent)
        variables = tuple(
            binder
            if binder.extent is not None or extents.follows(origin(binder.name), filled.get(binder.name, ()))
            else Binder(binder.name, extents.expression(origin(binder.name), mentioned))
            for binder in node.variables
        )
        return ReducerCall(node.reducer, variables, node.body)

    return transform(value, rewrite)


def rename(value: Lambda, named_after: Mapping[str, str], forward: Description) -> Lambda:
    """Give every variable a name that a person would: the forward's if it can keep it."""
    taken = LANGUAGE.union(forward.opaques, tensors_in(value), map(str, custom_reducers(value)))
    known = {node.name for node in walk(forward) if isinstance(node, Binder)} | taken
    letters = chain((letter for letter in "ijklmn" if letter not in known), (f"i{n}" for n in count()))
    names: dict[str, str] = {}
    for binder in (node for node in walk(value) if isinstance(node, Binder)):
        if binder.name in names:
            continue
        if binder.name.startswith("@"):
            base = named_after.get(binder.name) or next(letters)
        else:
            base = origin(binder.name)
        names[binder.name] = _free(base, taken | set(names.values()))

    def rewrite(node: Node) -> Node:
        match node:
            case Variable(name):
                return Variable(names[name])
            case Binder(name, extent):
                return Binder(names[name], extent)
            case _:
                return node

    return transform(value, rewrite)


def _free(base: str, taken: set[str] | frozenset[str]) -> str:
    if base not in taken:
        return base
    return next(name for name in (f"{base}{n}" for n in count(2)) if name not in taken)

"""Make stages of reducers that stand where they cannot be split, and of candidates that are compared.

    lambda i: log(Sum(lambda k: x[i, k]))    becomes    sum_k = lambda i: Sum(lambda k: x[i, k])
                                                        lambda i: log(sum_k[i])
    lambda i: Max(lambda k: exp(x[i, k]))    becomes    candidates_k = lambda i, k: exp(x[i, k])
                                                        lambda i: Max(lambda k: candidates_k[i, k])

A reducer commutes with few operations. Inside any other one, such as a logarithm, next to a bias or inside
another reducer, its variables have no strategy. As a stage it has all of them, and is computed once for each
value of the variables that it mentions. Such a stage is never larger than the result of the lambda that it
comes from, or than a tensor that it reads.

Gradients of `Max` and `Min`, and `ArgMax` and `ArgMin`, find the best candidate as the one that equals the
result. If candidates may have other bits where they are computed again (`is_reproducible`), they are a stage,
however large, and computed once. In every stage all variables keep their extents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from ...tdl import ast
from ...tdl.reproducible import is_reproducible
from ...tdl.traverse import Node, reads_elements, substitute, transform, variable_names, walk
from .discover import splittable

Extents = Mapping[str, ast.Expression]


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A dimension that a variable alone indexes, and which therefore has the variable's extent."""

    tensor: str
    """The tensor."""

    place: int
    """The place of the index in the brackets."""

    extent: ast.Extent | None
    """The extent; None for a star, and if stars before and after hide the number of the dimension."""


Alone = dict[str, set[_Dimension]]
"""For each variable, the dimensions that it alone indexes, of elements that are not padded."""

_NAMED = ast.TensorParameter | ast.AttributeParameter | ast.NamedStage | ast.Binder | ast.Variable


def with_stages(description: ast.Description) -> ast.Description:
    """Return the description with a stage for every reducer that can be split only as one.

    `with_stages(with_stages(d)) == with_stages(d)`.
    """
    found = _once(description)
    while found != description:
        description, found = found, _once(found)
    return found


def _once(description: ast.Description) -> ast.Description:
    """Return the description with stages for what is lost now; reducers of new stages may be lost in turn."""
    taken = {node.name for node in walk(description) if isinstance(node, _NAMED)} | {*description.opaques}
    made = _Stages(taken)
    for stage in description.stages:
        (value,) = _staged([stage.value], made)
        made.all.append(replace(stage, value=value))
    outputs = _staged(description.outputs, made)
    return replace(description, stages=tuple(made.all), outputs=tuple(outputs))


@dataclass(slots=True)
class _Stages:
    """The stages so far."""

    taken: set[str]
    """Names that mean something."""

    all: list[ast.NamedStage] = field(default_factory=list)
    """The stages of the text and the new ones, each before those that read it."""

    _elements: dict[ast.Lambda, ast.Element] = field(default_factory=dict)

    def read(self, value: ast.Lambda, name: str) -> ast.Element:
        """Return the element of a new stage, or of one that is equal, at the variables of its lambda.

        A new one gets this name if it means nothing else.
        """
        if value not in self._elements:
            name, span = self._fresh(name), value.span
            self.all.append(ast.NamedStage(name, value, span))
            indices = tuple(
                ast.Star(b.name, span) if b.star else ast.Variable(b.name, span) for b in value.variables
            )
            self._elements[value] = ast.Element(name, indices, span)
        return self._elements[value]

    def _fresh(self, base: str) -> str:
        """Return a name that means nothing else, such as `sum_k`, and take it."""
        candidates = (f"{base}_{number}" for number in range(2, len(self.taken) + 3))
        name = base if base not in self.taken else next(each for each in candidates if each not in self.taken)
        self.taken.add(name)
        return name


def _staged(lambdas: Sequence[ast.Lambda], made: _Stages) -> list[ast.Lambda]:
    """Return lambdas that share their variables, with elements of stages for candidates that are compared.

    If there are none, the reducers that are lost become stages.
    """
    group = _Group(lambdas)
    compared = [_with_candidates(value, group, made) for value in lambdas]
    if compared != list(lambdas):
        return compared

    def staged(value: ast.Lambda) -> ast.Lambda:
        kept = splittable(value.body)

        def replacement(node: Node) -> Node:
            if not isinstance(node, ast.ReducerCall) or all(b.name in kept for b in node.variables):
                return node
            if not _small(group.free(node), value, walk(node)):
                return node
            stage = group.stage(node)
            return node if stage is None else made.read(stage, _name(node))

        return transform(value, replacement)

    return [staged(value) for value in lambdas]


def _name(value: ast.Expression, variables: Sequence[ast.Binder] = ()) -> str:
    """Return a name for a reducer, such as `sum_k`, or for candidates of variables."""
    word = "candidates"
    if isinstance(value, ast.ReducerCall):
        word, variables = str(value.reducer).lower(), value.variables
    return "_".join([word, *(binder.name for binder in variables)])


def _with_candidates(value: ast.Lambda, group: _Group, made: _Stages) -> ast.Lambda:
    """Return a lambda with elements of stages for candidates that may have other bits elsewhere.

    These are the candidates of `Max` and `Min`, and those that the result of one is compared with. They may
    have such candidates inside, which are then the first to become stages.
    """
    found: dict[Node, Node] = {}
    for call in walk(value):
        if not _compares(call) or any(map(_compares, walk(call.body))):
            continue
        stage = group.stage(call.body)
        if stage is None:
            continue
        element = made.read(stage, _name(call.body, call.variables))
        best = replace(call, body=element)
        found[call] = best
        for node in walk(value):
            if isinstance(node, ast.Binary) and node.operator in ("==", "!="):
                found.update(_compared(node, call, best, element))
    return transform(value, lambda node: found.get(node, node)) if found else value


def _compares(node: Node) -> TypeGuard[ast.ReducerCall]:
    """Return whether a node finds the best of candidates that may have other bits elsewhere."""
    match node:
        case ast.ReducerCall(ast.Reducer.MAX | ast.Reducer.MIN, _, body):
            return not is_reproducible(body)
        case _:
            return False


def _compared(
    node: ast.Binary, call: ast.ReducerCall, best: ast.ReducerCall, element: ast.Element
) -> Iterator[tuple[Node, Node]]:
    """Yield a comparison of the best candidate with another one, and the same of elements.

    `best` replaces `call` in it, and `element` its candidates.
    """
    if len(call.variables) != 1 or call not in (node.left, node.right):
        return
    other = node.right if node.left == call else node.left
    (binder,) = call.variables
    for name in sorted(variable_names(other)):
        renamed = {binder.name: ast.Variable(name)}
        if substitute(call.body, renamed) == other:
            read = substitute(element, renamed)
            if other is node.right:
                yield replace(node, left=best), replace(node, left=best, right=read)
            else:
                yield replace(node, right=best), replace(node, left=read, right=best)
            return


class _Group:
    """Lambdas that share their variables, and what fixes the extents of these."""

    def __init__(self, lambdas: Sequence[ast.Lambda]) -> None:
        nodes = [node for value in lambdas for node in walk(value)]
        self.binders = {node.name: node for node in nodes if isinstance(node, ast.Binder)}
        self.stated: dict[str, set[ast.Expression]] = defaultdict(set)
        self.pieces: dict[str, list[set[_Dimension]]] = defaultdict(list)
        self.reads: dict[str, set[ast.Element]] = defaultdict(set)
        """The elements whose indices mention each variable."""
        for node in nodes:
            if isinstance(node, ast.Element):
                for name in variable_names(node):
                    self.reads[name].add(node)
            if isinstance(node, ast.Binder) and node.extent is not None:
                self.stated[node.name].add(node.extent)
            if isinstance(node, ast.Lambda | ast.ReducerCall):
                alone = _alone(walk(node))
                for binder in node.variables:
                    self.pieces[binder.name].append(alone.get(binder.name, set()))

    def free(self, value: ast.Expression) -> list[str]:
        """Return the variables that an expression mentions and does not bind."""
        own, used = set(), set()
        for node in walk(value):
            if isinstance(node, ast.Binder):
                own.add(node.name)
            elif isinstance(node, ast.Variable | ast.Star):
                used.add(node.name)
        return [name for name in self.binders if name in used and name not in own]

    def stage(self, value: ast.Expression) -> ast.Lambda | None:
        """Return an expression as a lambda of the variables that it mentions.

        Return None if an extent would follow from other tensors than before.
        """
        inside = list(walk(value))
        if not reads_elements(value) or any(isinstance(node, ast.OpaqueElement) for node in inside):
            return None
        own = {node.name for node in inside if isinstance(node, ast.Binder)}
        free = self.free(value)
        here, bounding = _alone(inside), set(_unpadded(inside))
        extents: dict[str, ast.Expression] = {}
        for name in (*free, *sorted(own)):
            inferred = name in here or self.reads[name] <= bounding
            found = self._extent(name, inferred=inferred, shared=name in own)
            if found is None:
                return None
            extents.update(found)
        variables = tuple(replace(self.binders[name], extent=extents.get(name)) for name in free)
        return ast.Lambda(variables, _stated(value, extents), value.span)

    def _extent(self, name: str, *, inferred: bool, shared: bool) -> Extents | None:
        """Return the extent that the stage must state for a variable, if it must.

        Return None if no statement is sure to keep the extent. That of an `inferred` one follows in the stage
        as before. A variable that is `shared` is bound in the stage. It may have the name of another one
        outside, with whose dimensions its own must still agree.
        """
        stated = self.stated[name]
        if stated:
            return {name: next(iter(stated))} if len(stated) == 1 else None
        if shared and not _linked(self.pieces[name]):
            return None
        if inferred:
            return {}
        elsewhere = set[_Dimension]().union(*self.pieces[name])
        known = sorted((each.extent for each in elsewhere if each.extent is not None), key=str)
        return {name: known[0]} if known else None


def _linked(pieces: Sequence[set[_Dimension]]) -> bool:
    """Return whether all dimensions agree if those of every piece do: the pieces hang together."""
    found, *others = [piece for piece in pieces if piece] or [set()]
    found = set(found)
    while touching := [piece for piece in others if piece & found]:
        found = found.union(*touching)
        others = [piece for piece in others if not piece <= found]
    return not others


def _small(free: Sequence[str], within: ast.Lambda, inside: Iterable[Node]) -> bool:
    """Return whether a stage of these variables fits into the result of the lambda or into a tensor read."""
    if {*free} <= {binder.name for binder in within.variables}:
        return True
    elements = (node for node in inside if isinstance(node, ast.Element))
    return any({*free} <= {name for name, _ in _dimensions(element)} for element in elements)


def _alone(nodes: Iterable[Node]) -> Alone:
    """Return the dimensions that fix the extent of each variable."""
    found: Alone = defaultdict(set)
    for element in _unpadded(nodes):
        for name, dimension in _dimensions(element):
            found[name].add(dimension)
    return found


def _unpadded(nodes: Iterable[Node]) -> Iterator[ast.Element]:
    """Yield the elements that must exist."""
    nodes = list(nodes)
    padded = {id(node.element) for node in nodes if isinstance(node, ast.Pad)}
    for node in nodes:
        if isinstance(node, ast.Element) and id(node) not in padded:
            yield node


def _dimensions(element: ast.Element) -> Iterator[tuple[str, _Dimension]]:
    """Yield variables that alone index a dimension, each with the dimension."""
    stars = [place for place, index in enumerate(element.indices) if isinstance(index, ast.Star)]
    for place, index in enumerate(element.indices):
        if isinstance(index, ast.Star):
            yield index.name, _Dimension(element.tensor, place, None)
        elif isinstance(index, ast.Variable):
            first = not stars or place < stars[0]
            axis = place if first else place - len(element.indices)
            extent = ast.Extent(element.tensor, axis) if first or place > stars[-1] else None
            yield index.name, _Dimension(element.tensor, place, extent)


def _stated(value: ast.Expression, extents: Extents) -> ast.Expression:
    """Return an expression with extents stated by its binders."""

    def state(node: Node) -> Node:
        if isinstance(node, ast.Binder) and node.name in extents:
            return replace(node, extent=extents[node.name])
        return node

    return transform(value, state)

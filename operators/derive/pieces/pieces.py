"""Cut a box into pieces in which conditions on indices are decided and quotients are affine.

Cut where padding begins and where a comparison changes, a concatenation is one copy per part. `cutting`
says how quotients and remainders are made affine: a grouped convolution gets an axis for its groups, and a
strided convolution's gradient is a product of matrices per residue. Reductions are taken apart too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import assert_never

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Interval, Shape
from ..nodes import affine
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.blocks import length
from ..nodes.build import NodeBuilder
from ..nodes.functions import COMBINE
from ..nodes.ir import Apply, Constant, Iota, Load, Lowered, Node, Output, Reduction, walk
from ..nodes.lower import lower
from ..reductions.ahead import isolate
from ..reductions.factorize import factorize
from .cutting import MOST_PARTS, Asked, Axis, Taken, asked, parts

MOST_ROUNDS = 4
"""How many times the axes of a cut may be cut again, for quotients of remainders."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxPiece:
    """Expressions over the variables of axes, `ranges` of them all, and the values of each output index."""

    lowered: Lowered
    ranges: Ranges
    taken: Mapping[str, Taken]


@lru_cache(maxsize=4096)
def pieces(bound: Bound, box: tuple[Interval, ...]) -> tuple[BoxPiece, ...]:
    """Return the pieces of a box, whose intervals are in the order of the operator's variables.

    Raises `OperatorError` if no kernel can be derived.
    """
    ranges = dict(zip(bound.variables, box, strict=True))
    builder = NodeBuilder(bound.shapes, ranges)
    whole = BoxPiece(lower(bound.description, builder), ranges, {})
    return tuple(_rearranged(piece) for piece in _cut(whole, builder, bound.shapes, MOST_ROUNDS, MOST_PARTS))


def _rearranged(piece: BoxPiece) -> BoxPiece:
    """Return the piece with its reductions rewritten so that they are cheap to compute."""
    extents = {name: length(interval) for name, interval in piece.ranges.items()}
    return BoxPiece(factorize(isolate(piece.lowered, extents), extents), piece.ranges, piece.taken)


def _cut(
    piece: BoxPiece, builder: NodeBuilder, shapes: Mapping[str, Shape], rounds: int, most: int
) -> Iterator[BoxPiece]:
    """Cut until nothing is left to cut, within limits on the number of rounds and of pieces."""
    nodes = [node for output in piece.lowered.outputs for node in walk(output.value)]
    wanted = asked(nodes, builder)
    cuts = _cuts(piece.lowered, nodes, builder, wanted, most)
    if not rounds or not (cuts or _splits_reductions(nodes, builder, wanted)):
        yield piece
        return
    count = prod(map(len, cuts.values()))
    for chosen in product(*cuts.values()):
        taken = dict(zip(cuts, chosen, strict=True))
        rewrite = _Rewrite(shapes, piece.ranges, taken, wanted)
        lowered = rewrite.lowered(piece.lowered)
        whole = {name: values.then(taken) for name, values in piece.taken.items()}
        new = {name: values for name, values in taken.items() if not _is_axis(name, piece)}
        next_piece = BoxPiece(lowered, rewrite.ranges, whole | new)
        yield from _cut(next_piece, rewrite.build, shapes, rounds - 1, most // count)


def _in_rows(name: str, nodes: list[Node]) -> bool:
    """Return whether a remainder of a variable is the last index of an element, so that one of its axes is a
    row.
    """
    return any(
        isinstance(node, Load)
        and node.indices
        and isinstance(index := node.indices[-1], Apply)
        and any(
            isinstance(below, Apply) and below.function == "%" and name in below.free for below in walk(index)
        )
        for node in nodes
    )


def _splits_reductions(nodes: list[Node], builder: NodeBuilder, wanted: Mapping[str, Asked]) -> bool:
    reduced = {name for node in nodes if isinstance(node, Reduction) for name in node.variables}
    return any(
        _is_cut(parts(name, builder.ranges[name], wanted[name], reduced=True, fastest=False))
        for name in reduced & wanted.keys()
        if length(builder.ranges[name])
    )


def _is_cut(found: list[Taken]) -> bool:
    return len(found) > 1 or len(found[0].axes) > 1


def _is_axis(name: str, piece: BoxPiece) -> bool:
    """Return whether a variable is an axis of an index that was cut before."""
    return any(name == axis.name for values in piece.taken.values() for axis in values.axes)


def _cuts(
    lowered: Lowered, nodes: list[Node], builder: NodeBuilder, wanted: Mapping[str, Asked], most: int
) -> dict[str, list[Taken]]:
    """Return the parts of every output variable that is worth cutting, few enough in all."""
    cuts: dict[str, list[Taken]] = {}
    reductions = [node for node in nodes if isinstance(node, Reduction)]
    for name in lowered.outputs[0].variables:
        if not all(name in output.variables for output in lowered.outputs):
            continue
        fastest = name == lowered.outputs[0].variables[-1] and not reductions and not _in_rows(name, nodes)
        asks = wanted.get(name, Asked())
        found = parts(name, builder.ranges[name], asks, reduced=False, fastest=fastest)
        repeats = len(found) > 1 and any(name not in node.free for node in reductions)
        few = len(found) * prod(map(len, cuts.values())) <= most
        if _is_cut(found) and few and not repeats:
            cuts[name] = found
    return cuts


class _Rewrite:
    """Expressions of index variables as expressions of the variables of axes."""

    def __init__(
        self,
        shapes: Mapping[str, Shape],
        ranges: Ranges,
        taken: Mapping[str, Taken],
        wanted: Mapping[str, Asked],
    ) -> None:
        self.original = ranges
        self.wanted = wanted
        self.taken = taken
        self.ranges = {name: interval for name, interval in ranges.items() if name not in taken}
        for values in taken.values():
            self.ranges.update(values.ranges)
        self.build = NodeBuilder(shapes, self.ranges)

    def lowered(self, lowered: Lowered) -> Lowered:
        forms = {name: values.form for name, values in self.taken.items()}
        outputs = tuple(
            Output(
                tuple(axis for name in output.variables for axis in self.axes(name)),
                _Scope(self, forms).node(output.value),
            )
            for output in lowered.outputs
        )
        return Lowered.of(outputs)

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the variables that take a variable's place."""
        return tuple(axis.name for axis in self.taken[name].axes) if name in self.taken else (name,)


class _Scope:
    """`forms` says what index variables are in terms of step numbers."""

    def __init__(self, rewrite: _Rewrite, forms: Mapping[str, AffineIndex]) -> None:
        self.rewrite = rewrite
        self.forms = forms
        self.known: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        if node not in self.known:
            self.known[node] = self.rewritten(node)
        return self.known[node]

    def rewritten(self, node: Node) -> Node:
        build = self.rewrite.build
        match node:
            case Constant(value=value):
                return build.constant(value)
            case Iota(variable=name):
                return build.index(self.forms[name]) if name in self.forms else build.iota(name)
            case Load(tensor=tensor, indices=indices, padding=padding):
                return build.load(
                    tensor,
                    tuple(self.index(index) for index in indices),
                    None if padding is None else self.node(padding),
                )
            case Apply(function=function, arguments=arguments):
                return build.apply(function, tuple(self.node(argument) for argument in arguments))
            case Reduction():
                return self.reduction(node)
            case _:
                assert_never(node)

    def index(self, index: AffineIndex | Node) -> AffineIndex | Node:
        if not isinstance(index, AffineIndex):
            return self.node(index)
        total = AffineIndex((), index.constant)
        for name, coefficient in index.coefficients:
            total = affine.added(total, self.forms.get(name, affine.variable(name)), coefficient)
        return total

    def reduction(self, node: Reduction) -> Node:
        """Return a reduction over all combinations of its variables' parts, combined."""
        rewrite = self.rewrite
        split = {
            name: [
                _named(part)
                for part in parts(
                    name, rewrite.original[name], rewrite.wanted[name], reduced=True, fastest=False
                )
            ]
            for name in node.variables
            if name in rewrite.wanted and length(rewrite.original[name])
        }
        if prod(map(len, split.values())) > MOST_PARTS:
            split = {}
        total: Node | None = None
        for chosen in product(*split.values()):
            taken = dict(zip(split, chosen, strict=True))
            forms = {**self.forms, **{name: values.form for name, values in taken.items()}}
            variables: list[str] = []
            for name in node.variables:
                axes = (
                    [axis.name for axis in taken[name].axes if axis.count != 1] if name in taken else [name]
                )
                variables.extend(axes)
            for values in taken.values():
                rewrite.ranges.update(values.ranges)
            body = _Scope(rewrite, forms).node(node.body)
            term = rewrite.build.reduction(node.reducer, tuple(variables), body) if variables else body
            total = term if total is None else rewrite.build.apply(COMBINE[node.reducer], (total, term))
        assert total is not None
        return total


def _named(part: Taken) -> Taken:
    """Return the same with names that say how many values an axis has: parts of one length share
    their axes.
    """
    return Taken(
        part.start, tuple(Axis(f"{axis.name}@{axis.count}", axis.step, axis.count) for axis in part.axes)
    )

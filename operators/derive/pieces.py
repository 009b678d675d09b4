"""Cuts a box into pieces in which conditions on indices are decided and quotients are affine.

A piece takes of every output variable an arithmetic progression. Cut where padding begins and where a
comparison changes, a concatenation is one copy per part; taken by residues, `x // 2` and `x % 2` are affine
in the number of the step, and a strided convolution's gradient is a product of matrices per residue.
Reductions are taken apart by residues too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, assert_never

from ...analyzer.region import Interval
from ...tdl.ast import Reducer
from . import affine
from .affine import Affine, Ranges
from .blocks import length
from .build import Builder
from .factorize import factorize
from .ir import Apply, Constant, Iota, Load, Lowered, Node, Output, Reduction, walk
from .lower import lower
from .progressions import Progression, Progressions

if TYPE_CHECKING:
    from ..bound import BoundOperator

MOST_PIECES = 64
"""Pieces of a box, and parts of a reduction: beyond, conditions are computed and elements gathered."""

COMBINE = {Reducer.SUM: "+", Reducer.PROD: "*", Reducer.MAX: "maximum", Reducer.MIN: "minimum"}


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Expressions over step numbers; `ranges` of them all, and what the output variables stand for."""

    lowered: Lowered
    ranges: Ranges
    taken: Mapping[str, Progression]


@lru_cache(maxsize=4096)
def pieces(bound: BoundOperator, box: tuple[Interval, ...]) -> tuple[Piece, ...]:
    """The pieces of a box, whose intervals are in the order of the operator's variables.

    Raises `OperatorError` where no kernel can be derived.
    """
    ranges = dict(zip(bound.variables, box, strict=True))
    builder = Builder(bound.shapes, ranges)
    lowered = lower(bound.description, builder)
    nodes = list(dict.fromkeys(node for output in lowered.outputs for node in walk(output.value)))
    progressions = Progressions(nodes, builder)
    cuts = _cuts(lowered, nodes, progressions)
    reduced = {name for node in nodes if isinstance(node, Reduction) for name in node.variables}
    parts = {name: parts for name in reduced if len(parts := progressions.parts(name)) > 1}
    if not cuts and not parts:
        return (_piece(lowered, ranges, {}),)
    result = []
    for chosen in product(*cuts.values()):
        taken = dict(zip(cuts, chosen, strict=True))
        result.append(_Rewrite(bound, ranges, taken, parts).piece(lowered))
    return tuple(result)


def _piece(lowered: Lowered, ranges: Ranges, taken: Mapping[str, Progression]) -> Piece:
    extents = {name: length(interval) for name, interval in ranges.items()}
    return Piece(factorize(lowered, extents), ranges, taken)


def _cuts(lowered: Lowered, nodes: list[Node], progressions: Progressions) -> dict[str, list[Progression]]:
    """Progressions for every output variable that is worth cutting, few enough in all."""
    cuts: dict[str, list[Progression]] = {}
    for name in lowered.outputs[0].variables:
        everywhere = all(name in output.variables for output in lowered.outputs)
        if not everywhere or any(isinstance(node, Reduction) and name not in node.free for node in nodes):
            continue
        parts = progressions.parts(name)
        if len(parts) > 1 and len(parts) * prod(map(len, cuts.values())) <= MOST_PIECES:
            cuts[name] = parts
    return cuts


class _Rewrite:
    """Expressions of index variables as expressions of step numbers."""

    def __init__(
        self,
        bound: BoundOperator,
        ranges: Ranges,
        taken: Mapping[str, Progression],
        parts: Mapping[str, list[Progression]],
    ) -> None:
        self.parts = parts
        self.taken = taken
        self.ranges = {**ranges, **{name: (0, part.count) for name, part in taken.items()}}
        self.build = Builder(bound.shapes, self.ranges)

    def piece(self, lowered: Lowered) -> Piece:
        forms = {name: Affine(((name, part.step),), part.start) for name, part in self.taken.items()}
        outputs = tuple(
            Output(output.variables, _Scope(self, forms).node(output.value)) for output in lowered.outputs
        )
        return _piece(Lowered.of(outputs), self.ranges, self.taken)


class _Scope:
    """`forms` says what index variables are in terms of step numbers."""

    def __init__(self, rewrite: _Rewrite, forms: Mapping[str, Affine]) -> None:
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

    def index(self, index: Affine | Node) -> Affine | Node:
        if not isinstance(index, Affine):
            return self.node(index)
        total = Affine((), index.constant)
        for name, coefficient in index.coefficients:
            total = affine.added(total, self.forms.get(name, affine.variable(name)), coefficient)
        return total

    def reduction(self, node: Reduction) -> Node:
        """A reduction as one part for every combination of its variables' progressions, combined.

        Progressions of equal length share a variable, so that the kernel has few axes.
        """
        rewrite = self.rewrite
        split = {name: rewrite.parts[name] for name in node.variables if name in rewrite.parts}
        if not split or prod(map(len, split.values())) > MOST_PIECES:
            return rewrite.build.reduction(node.reducer, node.variables, self.node(node.body))
        total: Node | None = None
        for chosen in product(*split.values()):
            names, forms = dict(zip(node.variables, node.variables, strict=True)), dict(self.forms)
            for name, part in zip(split, chosen, strict=True):
                names[name] = f"{name}@{part.count}"
                rewrite.ranges[names[name]] = (0, part.count)
                forms[name] = Affine(((names[name], part.step),), part.start)
            body = _Scope(rewrite, forms).node(node.body)
            term = rewrite.build.reduction(node.reducer, tuple(names.values()), body)
            total = term if total is None else rewrite.build.apply(COMBINE[node.reducer], (total, term))
        assert total is not None
        return total

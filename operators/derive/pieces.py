"""Cuts a box into pieces in which conditions on indices are decided and quotients are affine.

A piece takes of every output variable an arithmetic progression. Cut where padding begins and where a
comparison changes, a concatenation is one copy per part; taken by residues, `x // 2` and `x % 2` are affine
in the number of the step, and a strided convolution's gradient is a product of matrices per residue.
Reductions are taken apart by residues too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import gcd, lcm, prod
from typing import TYPE_CHECKING, assert_never

from ...analyzer.region import Interval
from ...tdl.ast import Reducer
from . import affine
from .affine import Affine, Ranges
from .ahead import isolate
from .blocks import length
from .build import Builder
from .factorize import factorize
from .ir import Apply, Constant, Iota, Load, Lowered, Node, Output, Reduction, walk
from .lower import lower

if TYPE_CHECKING:
    from ..bound import BoundOperator

MOST_PIECES = 64
"""Pieces of a box, and parts of a reduction: beyond, conditions are computed and elements gathered."""

THRESHOLDS = {"<": (0,), ">=": (0,), "<=": (1,), ">": (1,), "==": (0, 1), "!=": (0, 1)}
"""Values of the difference from which a comparison's answer may change."""

COMBINE = {Reducer.SUM: "+", Reducer.PROD: "*", Reducer.MAX: "maximum", Reducer.MIN: "minimum"}


@dataclass(frozen=True, slots=True)
class Progression:
    """`start + step * number` for numbers below `count`; starts count from the whole tensor's index 0."""

    start: int
    step: int
    count: int


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
    moduli = _moduli(lowered, builder)
    cuts = _cuts(lowered, builder, moduli)
    if not cuts and not moduli:
        return (_piece(lowered, ranges, {}),)
    result = []
    for chosen in product(*cuts.values()):
        taken = dict(zip(cuts, chosen, strict=True))
        result.append(_Rewrite(bound, ranges, taken, moduli).piece(lowered))
    return tuple(result)


def _piece(lowered: Lowered, ranges: Ranges, taken: Mapping[str, Progression]) -> Piece:
    extents = {name: length(interval) for name, interval in ranges.items()}
    return Piece(factorize(isolate(lowered, extents), extents), ranges, taken)


def _cuts(lowered: Lowered, builder: Builder, moduli: Mapping[str, int]) -> dict[str, list[Progression]]:
    """Progressions for every output variable that is worth cutting, few enough in all."""
    cuts: dict[str, list[Progression]] = {}
    nodes = [node for output in lowered.outputs for node in walk(output.value)]
    marks: dict[str, set[int]] = {}
    for name, mark in _marks(nodes, builder):
        marks.setdefault(name, set()).add(mark)
    for name in lowered.outputs[0].variables:
        everywhere = all(name in output.variables for output in lowered.outputs)
        if not everywhere or any(isinstance(node, Reduction) and name not in node.free for node in nodes):
            continue
        first, stop = builder.ranges[name]
        inner = sorted(mark for mark in marks.get(name, ()) if first < mark < stop)
        parts = [
            part
            for lower, upper in pairwise((first, *inner, stop))
            for part in _residues(lower, upper, moduli.get(name, 1))
        ]
        if len(parts) > 1 and len(parts) * prod(map(len, cuts.values())) <= MOST_PIECES:
            cuts[name] = parts
    return cuts


def _residues(first: int, stop: int, modulus: int) -> list[Progression]:
    count = min(modulus, max(stop - first, 1))
    return [Progression(first + part, modulus, -(-(stop - first - part) // modulus)) for part in range(count)]


def _marks(nodes: list[Node], builder: Builder) -> Iterator[tuple[str, int]]:
    """Variables and the values from which a condition on one of them may change."""
    for node in nodes:
        match node:
            case Load(padding=padding, indices=indices, tensor=tensor) if padding is not None:
                for index, extent in zip(indices, builder.shapes[tensor], strict=True):
                    if isinstance(index, Affine):
                        yield from _changes(index, (0, extent))
            case Apply(function=function, arguments=(x, y)) if function in affine.COMPARISONS:
                a, b = builder.form(x), builder.form(y)
                if a is not None and b is not None:
                    yield from _changes(affine.added(a, b, -1), THRESHOLDS[function])


def _changes(form: Affine, thresholds: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Where an affine form of one variable reaches each threshold, or falls below it."""
    if len(form.coefficients) != 1:
        return
    name, coefficient = form.coefficients[0]
    for threshold in thresholds:
        distance = threshold - form.constant
        yield name, -(-distance // coefficient) if coefficient > 0 else distance // coefficient + 1


def _moduli(lowered: Lowered, builder: Builder) -> dict[str, int]:
    """Variables and the moduli by which quotients and remainders of indices become affine."""
    moduli: dict[str, int] = {}
    for output in lowered.outputs:
        for node in walk(output.value):
            match node:
                case Apply(function="//" | "%", arguments=(x, Constant(value=int(divisor)))) if divisor > 0:
                    form = builder.form(x)
                    for name, coefficient in () if form is None else form.coefficients:
                        modulus = divisor // gcd(divisor, coefficient)
                        moduli[name] = lcm(moduli.get(name, 1), modulus)
    return {name: modulus for name, modulus in moduli.items() if 1 < modulus <= MOST_PIECES}


class _Rewrite:
    """Expressions of index variables as expressions of step numbers."""

    def __init__(
        self,
        bound: BoundOperator,
        ranges: Ranges,
        taken: Mapping[str, Progression],
        moduli: Mapping[str, int],
    ) -> None:
        self.original = ranges
        self.moduli = moduli
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
        """A reduction as one part for every combination of its variables' residues, combined."""
        rewrite = self.rewrite
        split = {
            name: _residues(*rewrite.original[name], rewrite.moduli[name])
            for name in node.variables
            if name in rewrite.moduli and rewrite.original[name][0] < rewrite.original[name][1]
        }
        if not split or prod(map(len, split.values())) > MOST_PIECES:
            return rewrite.build.reduction(node.reducer, node.variables, self.node(node.body))
        total: Node | None = None
        for chosen in product(*split.values()):
            names, forms = dict(zip(node.variables, node.variables, strict=True)), dict(self.forms)
            for name, part in zip(split, chosen, strict=True):
                names[name] = f"{name}@{part.start}"
                rewrite.ranges[names[name]] = (0, part.count)
                forms[name] = Affine(((names[name], part.step),), part.start)
            body = _Scope(rewrite, forms).node(node.body)
            term = rewrite.build.reduction(node.reducer, tuple(names.values()), body)
            total = term if total is None else rewrite.build.apply(COMBINE[node.reducer], (total, term))
        assert total is not None
        return total

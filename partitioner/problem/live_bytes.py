"""The bytes that are live at an instant of an iteration, whatever the plan: a bound, and tensors to price.

Let k be the number of workers, and take any instant between two operations. Then

    k * arena of the fullest worker  >=  sum over lasting tensors t of held[t]  +  sum over others of size[t]

* A *lasting* tensor lives across iterations, so all of its parts are live at every instant. `held` is the
  sum of the sizes of its parts on all workers.
* Any other tensor counts if it is made before the instant, and an operation after it reads all of the tensor,
  however that operation is split (`lower_bound.Refinable`). Then every element is live on some worker.

Tensors share memory only if one overwrites the other, which then counts alone, or in the midst of an
operation. Implemented in: `LiveBytes.of` (the fullest instant), `LiveBytes.least_bytes` (the bound if nothing
is held twice), `LiveBytes.prices` and `graded_prices` (prices on bytes held).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import prod

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, split, volume, whole
from ...dataflow.graph import Graph, Tensor
from ..layouts.choices import axes, operator_choices
from ..layouts.step_split import Dimensions
from .lower_bound import Refinable
from .problem import Problem

GRADES = 8
"""The number of different prices of a byte; tensors of equal price and shape share their tables."""


@dataclass(frozen=True, slots=True)
class LiveBytes:
    """The tensors that are live at the instant at which a graph holds most."""

    shapes: tuple[Shape, ...]
    """The shape of each class of tensors."""

    lasting: Mapping[int, int]
    """For each class of tensors that last, the bytes of one element of all of them."""

    passing: Mapping[int, int]
    """Likewise for other tensors, of those that are live at the instant."""

    lasting_bytes: int
    """The size of the tensors that last."""

    passing_bytes: int
    """The size of the other tensors that are certainly live at the instant."""

    @classmethod
    def of(cls, problem: Problem) -> LiveBytes:
        """Find the instant between two operations at which the size of all live tensors is largest."""
        graph = problem.graph
        born = {tensor: op.index for op in graph.operations for tensor in op.outputs}
        last_use, last_full_use = _last_uses(graph)
        lasting: dict[int, int] = {}
        passing: dict[int, int] = {}
        lasting_bytes = 0
        change = [0] * (len(graph.operations) + 1)
        others = [t for t in graph.tensors if not t.role.persistent and t.alias is None and t.index in born]
        for tensor in graph.tensors:
            if tensor.role.persistent and tensor.alias is None:
                number = problem.tensor_class[tensor.index]
                lasting[number] = lasting.get(number, 0) + tensor.itemsize
                lasting_bytes += _size(tensor)
        for tensor in others:
            if last_full_use.get(tensor.index, -1) > born[tensor.index]:
                change[born[tensor.index]] += _size(tensor)
                change[last_full_use[tensor.index]] -= _size(tensor)
        live = list(accumulate(change))
        passing_bytes = max(live)
        instant = live.index(passing_bytes)
        for tensor in others:
            if born[tensor.index] <= instant < last_use.get(tensor.index, -1):
                number = problem.tensor_class[tensor.index]
                passing[number] = passing.get(number, 0) + tensor.itemsize
        return cls(problem.shapes, lasting, passing, lasting_bytes, passing_bytes)

    def least_bytes(self, workers: int) -> int:
        """Return a lower bound on the arena of the fullest worker, for every plan."""
        return -(-(self.lasting_bytes + self.passing_bytes) // workers)

    def lasting_of(self, dimensions: Sequence[Dimensions], factors: Sequence[int]) -> int:
        """Return the bytes of all parts of tensors that last, given the layout of every class."""
        return sum(
            itemsize * int(volume(split(whole(self.shapes[number]), axes(dimensions[number]), factors)).sum())
            for number, itemsize in self.lasting.items()
        )

    def prices(self, price: Fraction) -> dict[int, Fraction]:
        """Return the price of an element held of each class that lasts, `price` being that of a byte."""
        return {number: price * itemsize for number, itemsize in self.lasting.items()}

    def graded_prices(self, price: Fraction) -> dict[int, Fraction]:
        """Return prices on all tensors that are live at the instant, in grades from `price` to twice that.

        Layers repeat, so at equal prices all of them would change at once. Tensors of one shape take the
        grades in turn.
        """
        prices: dict[int, Fraction] = {}
        seen: Counter[Shape] = Counter()
        for number, itemsize in (*self.lasting.items(), *self.passing.items()):
            shape = self.shapes[number]
            prices[number] = price * itemsize * (1 + Fraction(seen[shape] % GRADES, GRADES))
            seen[shape] += 1
        return prices


def _size(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.itemsize


def _last_uses(graph: Graph) -> tuple[dict[int, int], dict[int, int]]:
    """Return, for each tensor, the last operation that reads it, and the last that reads all of it."""
    last: dict[int, int] = {}
    full: dict[int, int] = {}
    known: dict[Bound, frozenset[str]] = {}
    refinable = Refinable()
    for operation in graph.operations:
        bound = operation.bound
        if bound not in known:
            known[bound] = frozenset(_read_whole(bound, refinable))
        for place, name in bound.read_places:
            last[operation.inputs[place]] = operation.index
            if name in known[bound]:
                full[operation.inputs[place]] = operation.index
    for tensor in graph.outputs:
        last[tensor] = full[tensor] = len(graph.operations)
    return last, full


def _read_whole(bound: Bound, refinable: Refinable) -> Iterator[str]:
    """Yield the parameters of which an operator reads every element, however it is split."""
    unsplit = operator_choices(bound, [()], ())
    for name in bound.reads:
        region = unsplit.inputs[name][0, 0]
        if int(volume(region)) == prod(bound.shapes[name]) and refinable.mask(unsplit, name).all():
            yield name

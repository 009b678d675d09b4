"""The bytes that are live while an operation computes, whatever the plan: bounds, and what to price.

Let k be the number of workers and o an operation. Every worker of o holds at the same time what it reads and
what it produces, so

    k * arena of the fullest worker  >=  live[o]  =  held + across[o] + buffers[o]

* A *lasting* tensor lives across iterations, so all of its parts are live at every instant. `held` is the
  sum of the sizes of its parts on all workers.
* Any other tensor counts in `across` if it is made before o, and an operation after o reads all of the
  tensor, however that operation is split (`lower_bound.Refinable`). Then every element is live on some
  worker, and on every worker that reads it then from its own part of the home.
* `buffers` are the regions of o on all workers: of inputs that count above, those that do not lie in a
  worker's part of the home; of other inputs all; of outputs those that cannot take over the memory of an
  input.

All three are sums over pairs of a strategy and a layout (`buffer_prices`). So they have prices in tables
of a search, and their least values give a bound for every plan in steps. Implemented in: `LiveBytes.of`,
`totals` (the sum for a plan), `least_bytes` (the bound), `prices`, `rising_prices`, `graded_prices` and
`buffer_prices` (prices).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, split, volume, whole
from ...dataflow.graph import Graph, Operation, Tensor
from ..layouts.choices import axes, operator_choices, splittable, tensor_choices
from ..layouts.step_split import Dimensions, Strategies
from ..layouts.uses import Use, touched
from .buffer_prices import buffer_elements
from .lower_bound import Refinable
from .problem import BufferPrice, BufferPrices, BufferUse, HeldPart, Problem
from .sequences import all_sequences, sequence_count

GRADES = 8
"""The number of different prices of a byte; tensors of equal price and shape share their tables."""

RISE = Fraction(1, 2)
"""The part by which prices that rise with the place in the graph do so, from the first to beyond the last."""

RISING_GRADES = 16
"""The number of different prices that rise with the place."""

FULLEST = 8
"""The number of operations whose choices are enumerated for the bound."""

SEQUENCE_LIMIT = 512
"""Operations and tensors with more choices are not enumerated."""


class Buffers(NamedTuple):
    """The parts of a tensor that workers hold because of an operation that uses it."""

    operation: int
    """The operation's number."""

    tensor: int
    """The number of the class of tensors."""

    use: Use
    """How the operation uses the tensor."""

    held: HeldPart
    """The parts that are held."""

    itemsize: int
    """The bytes of an element."""

    least_bytes: int
    """The size of the tensor if all of it is held, however the operation is split; else 0."""


class Passing(NamedTuple):
    """A tensor that is certainly live while some operations compute."""

    after: int
    """The operation that makes it."""

    before: int
    """The last operation that reads all of it; the number of operations if a user reads it."""

    nbytes: int
    """The size of the tensor."""

    kept: Buffers | None
    """The parts that are held until that operation; None if a user reads it."""


@dataclass(frozen=True)
class LiveBytes:
    """The tensors that are live while each operation of a graph computes."""

    problem: Problem
    """The problem whose graph it is."""

    lasting: Mapping[int, int]
    """For each class of tensors that last, the bytes of one element of all of them."""

    lasting_bytes: int
    """The size of the tensors that last."""

    passing: tuple[Passing, ...]
    """Other tensors."""

    buffers: tuple[tuple[Buffers, ...], ...]
    """For each operation, its buffers."""

    fullest: Mapping[int, int]
    """Like `lasting`, for other tensors that are live at the fullest instant between two operations."""

    _elements: dict[tuple[object, ...], int] = field(default_factory=dict, repr=False)
    """The numbers of elements that were counted."""

    _least: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """The results of `least_totals` for numbers of workers."""

    @classmethod
    def of(cls, problem: Problem) -> LiveBytes:
        """Find what is live while each operation computes."""
        graph = problem.graph
        born = {tensor: op.index for op in graph.operations for tensor in op.outputs}
        last_use, last_full_use = _last_uses(graph)
        lasting: dict[int, int] = {}
        lasting_bytes = 0
        others = [t for t in graph.tensors if not t.role.persistent and t.alias is None and t.index in born]
        for tensor in graph.tensors:
            if tensor.role.persistent and tensor.alias is None:
                number = problem.tensor_class[tensor.index]
                if number in problem.fed - problem.unmoved:
                    continue  # its choice is a copy, which does not last
                lasting[number] = lasting.get(number, 0) + tensor.itemsize
                lasting_bytes += _size(tensor)
        buffers = tuple(
            tuple(_buffers(problem, operation, last_use, last_full_use)) for operation in graph.operations
        )
        passing = tuple(
            Passing(born[t.index], before, _size(t), _kept(problem, t, before))
            for t in others
            for before in [last_full_use.get(t.index, -1)]
            if before > born[t.index]
        )
        live = _by_time(len(graph.operations), [(p.after, p.before - 1, p.nbytes) for p in passing])
        instant = int(np.argmax(live))
        fullest: dict[int, int] = {}
        for tensor in others:
            if born[tensor.index] <= instant < last_use.get(tensor.index, -1):
                number = problem.tensor_class[tensor.index]
                fullest[number] = fullest.get(number, 0) + tensor.itemsize
        return cls(problem, lasting, lasting_bytes, passing, buffers, fullest)

    @cached_property
    def across(self) -> list[int]:
        """Return, for each operation, the size of other tensors that are live before and after it."""
        return _by_time(len(self.buffers), [(p.after + 1, p.before - 1, p.nbytes) for p in self.passing])

    def prices(self, price: Fraction) -> dict[int, Fraction]:
        """Return the price of an element held of each class that lasts, `price` being that of a byte."""
        return {number: price * itemsize for number, itemsize in self.lasting.items()}

    def rising_prices(self, price: Fraction) -> dict[int, Fraction]:
        """Return prices on tensors that last, and on others that are live at the fullest instant.

        They rise with the place in the graph, in grades from `price` to nearly `RISE` more.
        """
        rising = [price * (1 + RISE * Fraction(grade, RISING_GRADES)) for grade in range(RISING_GRADES)]
        scaled = cache(lambda itemsize, grade: rising[grade] * itemsize)
        return {
            number: scaled(itemsize, place * RISING_GRADES // len(classes))
            for classes in (self.lasting, self.fullest)
            for place, (number, itemsize) in enumerate(classes.items())
        }

    def graded_prices(self, price: Fraction, *, all_live: bool = True) -> dict[int, Fraction]:
        """Return prices on tensors that last, in grades from `price` to twice that.

        Layers repeat, so at equal prices all of them would change at once. Tensors of one shape take the
        grades in turn. If `all_live`, other tensors that are live at the fullest instant have prices, too.
        """
        prices: dict[int, Fraction] = {}
        seen: Counter[Shape] = Counter()
        others = self.fullest.items() if all_live else ()
        for number, itemsize in (*self.lasting.items(), *others):
            shape = self.problem.shapes[number]
            prices[number] = price * itemsize * (1 + Fraction(seen[shape] % GRADES, GRADES))
            seen[shape] += 1
        return prices

    def buffer_prices(self, prices: Mapping[int, Fraction], workers: int) -> BufferPrices:
        """Return the prices of the buffers of operations, given the price of a byte for some of them."""
        problem = self.problem
        found: dict[BufferUse, dict[HeldPart, Fraction]] = {}
        for each, price in self._with_prices(prices):
            key = problem.operation_class[each.operation], each.tensor, each.use
            known = found.setdefault(key, {})
            known[each.held] = known.get(each.held, Fraction(0)) + price * each.itemsize
        return BufferPrices(
            len(problem.objective.factors(workers)),
            {key: tuple(BufferPrice(*each) for each in known.items()) for key, known in found.items()},
        )

    def unpriced(self, prices: Mapping[int, Fraction]) -> Fraction:
        """Return the cost of bytes that count in `totals`, but have no choice, and so no price in tables."""
        free = [p for p in self.passing if p.kept is None]
        return sum((price * _across(free, operation) for operation, price in prices.items()), Fraction(0))

    def _with_prices(self, prices: Mapping[int, Fraction]) -> Iterator[tuple[Buffers, Fraction]]:
        """Yield what is held while the operations that have prices compute."""
        for operation, price in prices.items():
            for each in self.buffers[operation]:
                yield each, price
        operations = sorted(prices)
        sums = list(accumulate([prices[operation] for operation in operations], initial=Fraction(0)))
        for passing in self.passing:
            first = bisect_right(operations, passing.after)
            last = bisect_left(operations, passing.before)
            if first < last and passing.kept is not None and (price := sums[last] - sums[first]):
                yield passing.kept, price

    def totals(
        self, strategies: Sequence[Strategies], dimensions: Sequence[Dimensions], factors: Sequence[int]
    ) -> list[int]:
        """Return what is live on all workers while each operation computes, given choices by class."""
        between = self._between(strategies, dimensions, factors)
        return [
            live + self._buffered(operation, strategies, dimensions, factors)
            for operation, live in enumerate(between)
        ]

    def fullest_of(
        self, strategies: Sequence[Strategies], dimensions: Sequence[Dimensions], factors: Sequence[int]
    ) -> tuple[int, int]:
        """Return the first operation at which `totals` is largest, and its total.

        Operations at which even whole tensors on all workers would not be more are left out.
        """
        between, workers = self._between(strategies, dimensions, factors), prod(factors)
        most = [live + workers * size for live, size in zip(between, self._sizes_of_buffers, strict=True)]
        fullest, total = 0, 0
        for operation in np.argsort([-each for each in most], kind="stable").tolist():
            if most[operation] < total:
                break
            found = between[operation] + self._buffered(operation, strategies, dimensions, factors)
            if (found, -operation) > (total, -fullest):
                fullest, total = operation, found
        return fullest, total

    def _buffered(
        self,
        operation: int,
        strategies: Sequence[Strategies],
        dimensions: Sequence[Dimensions],
        factors: Sequence[int],
    ) -> int:
        """Return the bytes of an operation's buffers on all workers."""
        return sum(self._bytes_of(each, strategies, dimensions, factors) for each in self.buffers[operation])

    def _between(
        self, strategies: Sequence[Strategies], dimensions: Sequence[Dimensions], factors: Sequence[int]
    ) -> list[int]:
        """Return what is live before and after each operation computes, on all workers."""
        held = self.lasting_of(dimensions, factors)
        across = _by_time(
            len(self.buffers),
            [
                (
                    p.after + 1,
                    p.before - 1,
                    p.nbytes if p.kept is None else self._bytes_of(p.kept, strategies, dimensions, factors),
                )
                for p in self.passing
            ],
        )
        return [held + more for more in across]

    def lasting_of(self, dimensions: Sequence[Dimensions], factors: Sequence[int]) -> int:
        """Return the bytes of all parts of tensors that last, given the layout of every class."""
        shapes, factors = self.problem.shapes, tuple(factors)
        total = 0
        for number, itemsize in self.lasting.items():
            key = shapes[number], dimensions[number], factors
            held = self._elements.get(key)
            if held is None:
                regions = split(whole(shapes[number]), axes(dimensions[number]), factors)
                held = self._elements[key] = int(volume(regions).sum())
            total += itemsize * held
        return total

    def least_bytes(self, workers: int) -> int:
        """Return a lower bound on the arena of the fullest worker, for every plan in steps."""
        return -(-max(self.least_totals(workers), default=0) // workers)

    def whole_bytes(self, workers: int) -> int:
        """Return a lower bound on that arena from what is held in whole, which is found at once."""
        held, known = self._whole_totals(self.problem.objective.factors(workers))
        return -(-(held + max(known, default=0)) // workers)

    def _whole_totals(self, factors: Sequence[int]) -> tuple[int, list[int]]:
        """Return the least of what lasts, and for each operation the tensors that are then held in whole."""
        held = sum(
            itemsize * _least_held(self.problem.shapes[number], factors)
            for number, itemsize in self.lasting.items()
        )
        return held, [
            across + sum(each.least_bytes for each in buffers)
            for across, buffers in zip(self.across, self.buffers, strict=True)
        ]

    def least_totals(self, workers: int) -> tuple[int, ...]:
        """Return, for each operation, the least that is live on all workers while it computes."""
        if workers in self._least:
            return self._least[workers]
        factors = self.problem.objective.factors(workers)
        held, known = self._whole_totals(factors)
        fullest = sorted(range(len(known)), key=lambda o: -known[o] - self._sizes_of_buffers[o])[:FULLEST]
        for operation in fullest:
            known[operation] = max(
                known[operation], self.across[operation] + self._least_buffers(operation, factors)
            )
        found = self._least[workers] = tuple([held + more for more in known])
        return found

    @cached_property
    def _sizes_of_buffers(self) -> list[int]:
        """Return, for each operation, the size of the tensors that it uses."""
        shapes = self.problem.shapes
        return [sum(each.itemsize * prod(shapes[each.tensor]) for each in used) for used in self.buffers]

    def _least_buffers(self, operation: int, factors: Sequence[int]) -> int:
        """Return the least bytes of an operation's buffers, over its strategies and its tensors' layouts.

        A layout counts by what it holds more than the least, if the tensor lasts.
        """
        bound = self.problem.operators[self.problem.operation_class[operation]]
        if sequence_count(splittable(bound), tuple(factors)) > SEQUENCE_LIMIT:
            return 0
        operator = operator_choices(bound, all_sequences(splittable(bound), factors), factors)
        total = np.zeros(len(operator.sequences), np.int64)
        waiting = dict(self.lasting)
        for each in self.buffers[operation]:
            shape = self.problem.shapes[each.tensor]
            extents = dict(enumerate(shape))
            if sequence_count(extents, tuple(factors), True) > SEQUENCE_LIMIT:
                continue
            tensor = tensor_choices(shape, all_sequences(extents, factors, True), factors)
            bytes_ = each.itemsize * buffer_elements(operator, tensor, each.use, each.held, len(factors))
            held = volume(tensor.regions).sum(axis=-1)
            more = waiting.pop(each.tensor, 0) * (held - held.min())
            total += (bytes_ + more).min(axis=1)
        return int(total.min())

    def _bytes_of(
        self,
        each: Buffers,
        strategies: Sequence[Strategies],
        dimensions: Sequence[Dimensions],
        factors: Sequence[int],
    ) -> int:
        """Return what all workers hold of a tensor because of an operation, in bytes."""
        problem = self.problem
        number = problem.operation_class[each.operation]
        bound, strategy = problem.operators[number], strategies[number]
        shape, layout = problem.shapes[each.tensor], dimensions[each.tensor]
        key = (bound, strategy, shape, layout, tuple(factors), each.use, each.held)
        found = self._elements.get(key)
        if found is None:
            operator, tensor = (
                operator_choices(bound, [strategy], factors),
                tensor_choices(shape, [layout], factors),
            )
            elements = buffer_elements(operator, tensor, each.use, each.held, len(factors))
            found = self._elements[key] = int(elements[0, 0])
        return each.itemsize * found


def _by_time(operations: int, intervals: Iterable[tuple[int, int, int]]) -> list[int]:
    """Return, for each operation, the sum over intervals that contain it; an interval has both its ends."""
    change = [0] * (operations + 2)
    for first, last, nbytes in intervals:
        if first <= last:
            change[first] += nbytes
            change[last + 1] -= nbytes
    return list(accumulate(change))[:operations]


def _across(passing: Iterable[Passing], operation: int) -> int:
    return sum(p.nbytes for p in passing if p.after < operation < p.before)


def _kept(problem: Problem, tensor: Tensor, before: int) -> Buffers | None:
    """Return what is held of a tensor until the operation `before` reads all of it."""
    if before == len(problem.graph.operations):
        return None
    uses = dict(touched(problem.graph.operations[before]))
    number = problem.tensor_class[tensor.index]
    return Buffers(before, number, uses[tensor.index], HeldPart.KEPT, tensor.itemsize, _size(tensor))


def _buffers(
    problem: Problem, operation: Operation, last_use: Mapping[int, int], last_full_use: Mapping[int, int]
) -> Iterator[Buffers]:
    """Yield the buffers of an operation that are live while it computes, besides what counts anyway.

    An output may take over the buffer of an input that is read only at the index that is written. So if such
    inputs end here, the output does not count, and if all of them live on, their buffers do not.
    """
    graph, now = problem.graph, operation.index
    uses = touched(operation)
    in_place = {index for index, use in uses if not operation.bound.in_place.isdisjoint(_names(use))}
    taken_over = any(last_use[index] == now and not _lasts(graph, graph.tensors[index]) for index in in_place)
    for index, use in uses:
        tensor = graph.tensors[index]
        number = problem.tensor_class[index]
        if isinstance(use, int):
            if tensor.alias is None and not taken_over:
                yield Buffers(now, number, use, HeldPart.MADE, tensor.itemsize, _size(tensor))
        elif taken_over or index not in in_place:
            counted = _lasts(graph, tensor) or last_full_use.get(index, -1) > now
            entire = not counted and last_full_use.get(index, -1) == now
            held = HeldPart.FETCHED if counted else HeldPart.READ
            yield Buffers(now, number, use, held, tensor.itemsize, _size(tensor) if entire else 0)


def _names(use: Use) -> tuple[str, ...]:
    return () if isinstance(use, int) else use


def _lasts(graph: Graph, tensor: Tensor) -> bool:
    """Tell whether a tensor lives across iterations: itself, or what it overwrites."""
    return graph.tensors[graph.roots[tensor.index]].role.persistent


def _least_held(shape: Shape, factors: Sequence[int]) -> int:
    """Return the least elements that all workers hold of a tensor, over its layouts."""
    size = prod(shape)
    if max(shape, default=1) >= prod(factors):
        return size
    extents = dict(enumerate(shape))
    if sequence_count(extents, tuple(factors)) > SEQUENCE_LIMIT:
        return size
    layouts = tensor_choices(shape, all_sequences(extents, factors), factors)
    return int(volume(layouts.regions).sum(axis=-1).min())


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

"""Regions of random affine operators against an enumeration of every element read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.analyzer.analysis import analyze
from tofu.analyzer.bound import Bound

OUTPUTS = ("x", "y")
REDUCTIONS = ("r", "s")


@dataclass(frozen=True)
class Index:
    """`(sum of coefficient * variable + constant) [// or % divisor]`, as text and as a function."""

    terms: tuple[tuple[int, str], ...]
    constant: int
    operator: str
    divisor: int

    def value(self, at: Mapping[str, int]) -> int:
        total = sum(factor * at[name] for factor, name in self.terms) + self.constant
        if self.operator:
            return total // self.divisor if self.operator == "//" else total % self.divisor
        return total

    def __str__(self) -> str:
        text = " + ".join([*(f"{factor} * {name}" for factor, name in self.terms), str(self.constant)])
        return f"({text}) {self.operator} {self.divisor}" if self.operator else text

    @property
    def exact(self) -> bool:
        """Whether every variable occurs once and nothing can wrap around."""
        names = [name for _, name in self.terms]
        return len(set(names)) == len(names) and self.operator != "%"


@dataclass(frozen=True)
class Case:
    """A description's text, its shapes, and whether the regions must be exact bounding boxes."""

    text: str
    shapes: dict[str, tuple[int, ...]]
    exact: bool


@st.composite
def indices(draw: st.DrawFn, names: tuple[str, ...]) -> Index:
    term = st.tuples(st.integers(-3, 3).filter(bool), st.sampled_from(names))
    operator = draw(st.sampled_from(["", "", "", "//", "%"]))
    divisor = draw(st.sampled_from([2, 3, 5, -2, -3])) if operator else 1
    terms = draw(st.lists(term, min_size=0, max_size=3))
    return Index(tuple(terms), draw(st.integers(-4, 4)), operator, divisor)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    outputs = OUTPUTS[: draw(st.integers(1, 2))]
    reductions = REDUCTIONS[: draw(st.integers(0, 2))]
    names = outputs + reductions
    extents = {name: draw(st.integers(1, 7 if name in OUTPUTS else 4)) for name in names}
    points = [dict(zip(names, at, strict=True)) for at in product(*(range(extents[n]) for n in names))]
    terms, shapes, exact = [], {}, True
    for tensor, rank in (("A", draw(st.integers(1, 3))), ("B", draw(st.integers(0, 2)))):
        low, high = [0] * rank, [0] * rank
        accesses = [
            ([draw(indices(names)) for _ in range(rank)], draw(st.booleans()))
            for _ in range(draw(st.integers(1, 2)))
        ]
        for axis in range(rank):
            inside = [index[axis].value(at) for index, padded in accesses if not padded for at in points]
            low[axis], high[axis] = min([0, *inside]), max([0, *inside])
        slack = [draw(st.integers(1, 4)) for _ in range(rank)]
        shapes[tensor] = tuple(high[axis] - low[axis] + slack[axis] for axis in range(rank))
        for index, padded in accesses:
            text = ", ".join(f"{part} + {-low[axis]}" for axis, part in enumerate(index))
            element = f"{tensor}[{text or '()'}]" if rank else f"{tensor}[()]"
            terms.append(f"pad({element}, 0)" if padded else element)
            shared = [name for part in index for name in {n for _, n in part.terms}]
            exact &= all(part.exact for part in index)
            exact &= not padded or (
                len(set(shared)) == len(shared) and not any(part.operator for part in index)
            )
    body = " * ".join(terms)
    if reductions:
        body = f"Sum(lambda {', '.join(f'{n}={extents[n]}' for n in reductions)}: {body})"
    text = f"def op(A, B):\n    return lambda {', '.join(f'{n}={extents[n]}' for n in outputs)}: {body}"
    return Case(text, shapes, exact)


def boxes_of(bound: Bound) -> Iterator[tuple[str, np.ndarray]]:
    for strategy in bound.strategies:
        for workers in range(2, min(9, bound.extents[strategy.variable]) + 1):
            yield strategy.variable, bound.split((strategy.variable,), (workers,))


@settings(max_examples=300, deadline=None)
@given(case=cases())
def test_regions_hold_every_read_and_are_exact_where_promised(
    case: Case, reads: Callable[..., dict[str, set[tuple[int, ...]]]]
) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    everything = [("", bound.full_box[None]), *boxes_of(bound)]
    for variable, boxes in everything:
        regions = bound.input_regions(boxes)
        for worker, box in enumerate(boxes.tolist()):
            found = reads(bound, dict(zip(bound.variables, map(tuple, box), strict=True)))
            for tensor, elements in found.items():
                region = regions[tensor][worker]
                place = f"{case.text}\n{case.shapes} {variable} {box} {tensor} {region.tolist()}"
                assert (region >= 0).all(), place
                assert (region[:, 1] <= case.shapes[tensor]).all(), place
                for element in elements:
                    assert ((region[:, 0] <= element) & (element < region[:, 1])).all(), place
                if case.exact and elements:
                    columns = np.array(sorted(elements))
                    assert region[:, 0].tolist() == columns.min(axis=0).tolist(), place
                    assert region[:, 1].tolist() == (columns.max(axis=0) + 1).tolist(), place
                if case.exact and not elements:
                    assert (region == 0).all(), place
        if variable and bound.kind(variable) == "concat":
            assert_tiles(bound, boxes)


def assert_tiles(bound: Bound, boxes: np.ndarray) -> None:
    """Output regions of the workers cover every element exactly once."""
    for shape, regions in zip(bound.output_shapes, bound.output_regions(boxes), strict=True):
        count = np.zeros(shape, np.int64)
        for region in regions.tolist():
            count[tuple(slice(*interval) for interval in region)] += 1
        assert (count == 1).all()


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_tight_regions_hold_nothing_else(
    case: Case, reads: Callable[..., dict[str, set[tuple[int, ...]]]]
) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    loose = {looseness.tensor for looseness in bound.looseness}
    found = reads(bound, {name: (0, extent) for name, extent in bound.extents.items()})
    regions = bound.input_regions(bound.full_box[None])
    for tensor, elements in found.items():
        volume = int(np.prod(regions[tensor][0, :, 1] - regions[tensor][0, :, 0]))
        if tensor not in loose:
            assert volume == len(elements), f"{case.text}\n{case.shapes} {tensor}"


@settings(max_examples=100, deadline=None)
@given(case=cases(), seed=st.integers(0, 2**16))
def test_strategies_compute_what_one_worker_computes(case: Case, seed: int) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    random = np.random.default_rng(seed)
    tensors = {name: random.integers(-3, 4, shape) for name, shape in case.shapes.items()}
    (whole,) = bound.interpret(tensors)
    for variable, boxes in boxes_of(bound):
        total = np.zeros_like(whole)
        for worker, box in enumerate(boxes):
            part = interpret_box(bound, box, tensors)
            region = bound.output_regions(boxes)[0][worker].tolist()
            total[tuple(slice(*interval) for interval in region)] += part
        np.testing.assert_array_equal(total, whole, err_msg=f"{case.text} {variable}")


def interpret_box(bound: Bound, box: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """One worker's part, from tensors in which everything outside its input regions is spoiled."""
    regions = bound.input_regions(box[None])
    spoiled = {}
    for name, tensor in tensors.items():
        kept = tuple(slice(*interval) for interval in regions[name][0].tolist())
        spoiled[name] = np.full_like(tensor, 1000)
        spoiled[name][kept] = tensor[kept]
    intervals = dict(zip(bound.variables, map(tuple, box.tolist()), strict=True))
    (part,) = tdl.interpret(bound.description, bound.extents, spoiled, bound.shapes, box=intervals)
    return part

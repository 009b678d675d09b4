"""Regions of random affine operators against every element they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.input_regions import enumerated_bounds

from ..random_operators import Case, Intervals, random_case

CASES = st.builds(random_case, st.randoms(use_true_random=False))


def boxes_of(bound: Bound) -> Iterator[tuple[str, np.ndarray]]:
    for strategy in bound.strategies:
        for workers in range(2, min(9, bound.extents[strategy.variable]) + 1):
            yield strategy.variable, bound.split((strategy.variable,), (workers,))


def intervals(bound: Bound, box: np.ndarray) -> Intervals:
    return dict(zip(bound.variables, map(tuple, box.tolist()), strict=True))


def smallest_box(elements: np.ndarray) -> list[list[int]]:
    """The bounding box of elements `[element, dimension]`; zeros if there are none."""
    if not len(elements):
        return [[0, 0]] * elements.shape[1]
    return np.stack((elements.min(axis=0), elements.max(axis=0) + 1), axis=-1).tolist()


@settings(max_examples=300)
@given(case=CASES)
def test_regions_are_the_smallest_boxes_that_hold_every_read(case: Case) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    everything = [("", bound.full_box[None]), *boxes_of(bound)]
    for variable, boxes in everything:
        regions = bound.input_regions(boxes)
        for worker, box in enumerate(boxes):
            for tensor in case.shapes:
                found = smallest_box(case.elements_read(tensor, intervals(bound, box)))
                place = f"{case.text}\n{case.shapes} {variable} {box.tolist()} {tensor}"
                assert regions[tensor][worker].tolist() == found, place
        if variable and bound.kind(variable) == "concat":
            assert_tiles(bound, boxes)


@settings(max_examples=100)
@given(case=CASES)
def test_regions_hold_every_read_where_there_is_too_much_to_try(case: Case) -> None:
    limit, enumerated_bounds.MAX_TRIALS = enumerated_bounds.MAX_TRIALS, 20
    try:
        bound = analyze(tdl.parse(case.text)).bind(case.shapes)
        for _, boxes in boxes_of(bound):
            regions = bound.input_regions(boxes)
            for worker, box in enumerate(boxes):
                for tensor, shape in case.shapes.items():
                    region = regions[tensor][worker]
                    assert (region >= 0).all()
                    assert (region[:, 1] <= shape).all()
                    read = case.elements_read(tensor, intervals(bound, box))
                    assert ((region[:, 0] <= read) & (read < region[:, 1])).all(), case.text
    finally:
        enumerated_bounds.MAX_TRIALS = limit


def assert_tiles(bound: Bound, boxes: np.ndarray) -> None:
    """Output regions of the workers cover every element exactly once."""
    for shape, regions in zip(bound.output_shapes, bound.output_regions(boxes), strict=True):
        count = np.zeros(shape, np.int64)
        for region in regions.tolist():
            count[tuple(slice(*interval) for interval in region)] += 1
        assert (count == 1).all()


@settings(max_examples=150)
@given(case=CASES)
def test_tight_regions_hold_nothing_else(case: Case) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    loose = {looseness.tensor for looseness in bound.looseness}
    regions = bound.input_regions(bound.full_box[None])
    for tensor in case.shapes:
        read = case.elements_read(tensor, intervals(bound, bound.full_box))
        volume = int(np.prod(regions[tensor][0, :, 1] - regions[tensor][0, :, 0]))
        if tensor not in loose:
            assert volume == len(np.unique(read, axis=0)), f"{case.text}\n{case.shapes} {tensor}"


COMBINE = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}


@settings(max_examples=100)
@given(case=CASES, seed=st.integers(0, 2**16))
def test_strategies_compute_what_one_worker_computes(case: Case, seed: int) -> None:
    bound = analyze(tdl.parse(case.text)).bind(case.shapes)
    random = np.random.default_rng(seed)
    tensors = {name: random.integers(-1, 2, shape) for name, shape in case.shapes.items()}
    (whole,) = bound.interpret(tensors)
    for variable, boxes in boxes_of(bound):
        parts = [interpret_box(bound, box, tensors) for box in boxes]
        if bound.kind(variable) == "reduce":
            total = COMBINE[str(bound.reducer(variable))].reduce(parts)
        else:
            total = np.empty_like(whole)
            for part, region in zip(parts, bound.output_regions(boxes)[0].tolist(), strict=True):
                total[tuple(slice(*interval) for interval in region)] = part
        np.testing.assert_array_equal(total, whole, err_msg=f"{case.text} {variable}")


def interpret_box(bound: Bound, box: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """One worker's part, from tensors in which everything outside its input regions is spoiled."""
    regions = bound.input_regions(box[None])
    spoiled = {}
    for name, tensor in tensors.items():
        kept = tuple(slice(*interval) for interval in regions[name][0].tolist())
        spoiled[name] = np.full_like(tensor, 1000)
        spoiled[name][kept] = tensor[kept]
    (part,) = tdl.interpret(
        bound.description, bound.extents, spoiled, bound.shapes, box=intervals(bound, box)
    )
    return part

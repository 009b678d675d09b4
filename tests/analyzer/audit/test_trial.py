"""Strategies tried on data: parts put together, and results held against those of one worker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.audit.samples import Sample, sample
from tofu.analyzer.audit.trial import (
    combine,
    difference,
    inside,
    missed_element,
    regions_of,
    whole_numbers,
    wrong_cover,
    wrong_result,
)
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.bind.staged_bound import bind as bind_stages
from tofu.analyzer.strategies.strategy import Strategy

Bind = Callable[..., Bound]
SUM = "def op(x):\n    return lambda i: Sum(lambda k: x[i, k])"


def test_parts_are_put_side_by_side_or_reduced(bind: Bind) -> None:
    side_by_side, reduced = bind(SUM, {"x": (4, 6)}).strategies
    result = np.full(4, np.nan)
    assert combine(result, np.array([1.0, 2.0]), ((0, 2),), side_by_side, first=True)
    assert combine(result, np.array([3.0, 4.0]), ((2, 4),), side_by_side, first=False)
    assert result.tolist() == [1, 2, 3, 4]
    assert combine(result, np.array([5.0, 6.0]), ((1, 3),), reduced, first=True)
    assert combine(result, np.array([10.0, 20.0]), ((1, 3),), reduced, first=False)
    assert result.tolist() == [1, 15, 26, 4]


def test_parts_that_do_not_fit_change_nothing(bind: Bind) -> None:
    strategy, _ = bind(SUM, {"x": (4, 6)}).strategies
    result = np.zeros(4)
    assert not combine(result, np.ones(3), ((0, 2),), strategy, first=True)
    assert not result.any()


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    "body", ["Sum(lambda k: x[i, k])", "Sum(lambda k: x[i, k] / 3)", "Max(lambda k: x[i, k])"]
)
def test_correct_strategies_give_what_one_worker_gives(bind: Bind, body: str, workers: int) -> None:
    """Sums of thirds too, though the order of a sum shows in its last digits."""
    bound = bind(f"def op(x):\n    return lambda i: {body}", {"x": (20, 30)})
    given = sample(bound)
    assert len(bound.strategies) == 2
    for strategy in bound.strategies:
        assert wrong_result(bound, strategy, workers, given) is None


def test_a_wrong_result_is_shown_where_it_is(bind: Bind) -> None:
    bound = bind(SUM, {"x": (4, 6)})
    correct = sample(bound)
    assert correct.reference is not None
    reference = correct.reference[0].copy()
    reference[2] += 0.5
    for strategy in bound.strategies:
        wrong = wrong_result(bound, strategy, 2, Sample(correct.tensors, (reference,), {}))
        assert wrong is not None
        assert str(wrong) == (
            f"output 0[2] is wrong; expected {reference[2]:.10g}, found {reference[2] - 0.5:.10g}; "
            "2 workers; with x (4, 6)"
        )
        assert wrong.place == (2,)


def test_concatenation_leaves_every_digit_as_it_is(bind: Bind) -> None:
    bound = bind("def op(x):\n    return lambda i: x[i] / 3", {"x": (6,)})
    (strategy,) = bound.strategies
    given = sample(bound)
    assert given.reference is not None
    almost = np.nextafter(given.reference[0], np.inf)
    assert wrong_result(bound, strategy, 2, given) is None
    assert wrong_result(bound, strategy, 2, Sample(given.tensors, (almost,), {})) is not None


def test_differences(bind: Bind) -> None:
    bound = bind(SUM, {"x": (2, 2)})
    reference = [np.array([1.0, 100.0, np.nan, np.inf])]
    assert difference([reference[0].copy()], reference, bound) is None
    near = reference[0] + np.array([0.5, 0, 0, 0])
    assert difference([near], reference, bound, relative=0.005) is None
    found = difference([near], reference, bound, workers=3, relative=0.0049)
    assert found is not None
    assert (found.message, found.place, found.workers) == ("output 0[0] is wrong", (0,), 3)
    assert (found.expected, found.found, found.shapes) == (1.0, 1.5, {"x": (2, 2)})
    shape = difference([np.zeros(3)], reference, bound, 2)
    assert shape is not None
    assert (shape.message, shape.workers) == ("output 0 has shape (3,), not (4,)", 2)
    scalar = difference([np.array(1.0), np.array(3.0)], [np.array(1.0), np.array(2.0)], bound)
    assert scalar is not None
    assert scalar.message == "output 1[()] is wrong"


def test_small_results_may_be_off_by_a_part_of_one(bind: Bind) -> None:
    bound = bind(SUM, {"x": (2, 2)})
    assert difference([np.array([0.01])], [np.array([0.0])], bound, relative=0.01) is None
    assert difference([np.array([0.01])], [np.array([0.0])], bound, relative=0.009) is not None


def test_whole_numbers() -> None:
    assert whole_numbers([np.array([1.0, -2.0, np.nan, np.inf]), np.array(3)])
    assert not whole_numbers([np.array([1.0]), np.array([0.5])])


def test_inside_a_region() -> None:
    assert inside(((1, 2), (0, 2)), (3, 3)).astype(int).tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert inside((), ()).tolist() is True


def test_stages_are_interpreted_in_parts() -> None:
    text = "def op(x):\n    twice = lambda i: 2 * x[i]\n    return lambda i=6: twice[i] + twice[i + 1]"
    bound = bind_stages(tdl.parse(text), {"x": (7,)})
    (strategy,) = bound.strategies
    given = sample(bound)
    assert given.reference is not None
    assert wrong_result(bound, strategy, 3, given) is None
    wrong = wrong_result(bound, strategy, 3, Sample(given.tensors, (given.reference[0] + 1,), {}))
    assert wrong is not None
    assert wrong.found == given.reference[0][0]


class FirstAlone(Strategy):
    """Reads what the first worker reads, and produces what the first one does, whoever works."""

    def input_regions(self, *, worker: int, workers: int) -> dict[str, tuple[tuple[int, int], ...]]:
        return super().input_regions(worker=0, workers=workers)

    def output_regions(self, *, worker: int, workers: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        return super().output_regions(worker=0, workers=workers)


def test_what_is_missed_is_shown_whole(bind: Bind) -> None:
    bound = bind("def op(x):\n    return lambda i: Sum(lambda d=2: x[i + d])", {"x": (7,)})
    (given, (strategy, _)) = sample(bound), bound.strategies
    fields = (strategy.variable, strategy.kind, strategy.reducer, strategy.needs_offset, strategy.bound)
    assert missed_element(bound, strategy, 2, given) is None
    assert wrong_cover(bound, strategy, 2) is None
    missed = missed_element(bound, FirstAlone(*fields), 2, given)
    assert str(missed) == "reads x[4] outside of its region; worker 1 of 2; region of x [0:4]; with x (7,)"
    assert missed is not None
    assert missed.place == (4,)
    uncovered = wrong_cover(bound, FirstAlone(*fields), 2)
    assert str(uncovered) == "output 0[0] is produced by 2 workers; 2 workers; with x (7,)"
    assert uncovered is not None
    assert uncovered.place == (0,)


def test_regions_of_all_workers_at_once_are_those_of_each(bind: Bind) -> None:
    bound = bind("def op(x, w):\n    return lambda i: Sum(lambda k: x[i + k] * w[k])", {"x": (9,), "w": (3,)})
    for strategy in bound.strategies:
        each = [strategy.input_regions(worker=worker, workers=3) for worker in range(3)]
        assert regions_of(strategy, 3) == each

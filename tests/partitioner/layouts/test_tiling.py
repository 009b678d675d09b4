"""Parts that tile a box are accepted; every kind that does not is named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tofu.analyzer.indices.region import Region
from tofu.errors import PlanError
from tofu.partitioner.layouts.forms import Expanded
from tofu.partitioner.layouts.tiling import check_held, check_tiling

WHOLE = np.array(((0, 4), (0, 6)), np.int64)
TOP: Region = ((0, 2), (0, 6))
BOTTOM: Region = ((2, 4), (0, 6))
LEFT: Region = ((0, 2), (0, 3))


def _parts(*parts: tuple[int, Region], term: tuple[int, ...] = ()) -> Expanded:
    workers = np.array([worker for worker, _ in parts])
    boxes = np.array([box for _, box in parts], np.int64)
    terms = np.array(term or [0] * len(parts))
    return Expanded(workers, boxes, terms, int(terms.max()) + 1)


@pytest.mark.parametrize(
    "parts",
    [
        ((0, TOP), (1, BOTTOM)),
        ((0, TOP), (1, TOP), (1, BOTTOM)),
        ((0, TOP), (0, BOTTOM)),
        ((3, ((0, 4), (0, 6))),),
    ],
)
def test_tilings(parts: tuple[tuple[int, Region], ...]) -> None:
    check_tiling(_parts(*parts), WHOLE)
    check_held(_parts(*parts), WHOLE)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (((0, TOP),), "the parts cover 12 of the 24 elements of [0:4, 0:6]"),
        (((0, TOP), (0, TOP), (1, BOTTOM)), "worker 0 has the part [0:2, 0:6] twice"),
        (((0, TOP), (1, LEFT), (1, BOTTOM)), "the parts [0:2, 0:6] and [0:2, 0:3] overlap"),
        (((0, TOP), (1, ((2, 5), (0, 6)))), "the part [2:5, 0:6] lies outside [0:4, 0:6]"),
        (((0, TOP), (1, BOTTOM), (2, ((4, 4), (0, 6)))), "the part [4:4, 0:6] is empty"),
    ],
)
def test_what_does_not_tile_is_named(parts: tuple[tuple[int, Region], ...], says: str) -> None:
    with pytest.raises(PlanError, match=re.escape(says)):
        check_tiling(_parts(*parts), WHOLE)


def test_an_empty_box_has_empty_parts() -> None:
    nothing = np.array(((0, 0), (0, 6)), np.int64)
    check_tiling(_parts((0, ((0, 0), (0, 6))), (1, ((0, 0), (0, 6)))), nothing)


def test_what_is_held_may_be_some_of_it_but_not_twice_on_a_worker() -> None:
    check_held(_parts((0, LEFT), (1, TOP)), WHOLE)
    with pytest.raises(PlanError, match=re.escape("[0:2, 0:6] and [0:2, 0:3] overlap")):
        check_held(_parts((1, TOP), (1, LEFT)), WHOLE)
    with pytest.raises(PlanError, match="lies outside"):
        check_held(_parts((0, ((0, 9), (0, 6)))), WHOLE)


def test_each_term_tiles() -> None:
    check_tiling(_parts((0, TOP), (0, TOP), (1, BOTTOM), (1, BOTTOM), term=(0, 1, 0, 1)), WHOLE)
    with pytest.raises(PlanError, match="term 1: the parts cover 12 of the 24"):
        check_tiling(_parts((0, TOP), (0, TOP), (1, BOTTOM), term=(0, 1, 0)), WHOLE)

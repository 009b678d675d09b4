from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.programs import offsets as of_buffers
from tofu.programs.offsets import (
    FEW_BUFFERS,
    in_order_of_time,
    largest_area_first,
    largest_first,
    live_sizes,
    place,
)
from tofu.support.integers import Integers

Method = Callable[[Integers, Integers, Integers], tuple[Integers, int]]

intervals = st.lists(
    st.tuples(st.integers(1, 50), st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=60
)


@pytest.mark.parametrize("method", [in_order_of_time, largest_first, largest_area_first, place])
@given(items=intervals)
def test_live_buffers_never_overlap(method: Method, items: list[tuple[int, int, int]]) -> None:
    sizes = np.array([size for size, _, _ in items])
    births = np.array([birth for _, birth, _ in items])
    deaths = births + np.array([length for _, _, length in items])
    offsets, total = method(sizes, births, deaths)
    live = [sum(s for s, b, d in zip(sizes, births, deaths, strict=True) if b <= t <= d) for t in range(50)]
    assert max(live) == live_sizes(sizes, births, deaths).max()
    assert max(live) <= total <= sizes.sum()
    assert offsets.min() >= 0
    assert (offsets + sizes).max() == total
    for a in range(len(items)):
        for b in range(a):
            if births[a] <= deaths[b] and births[b] <= deaths[a]:
                assert offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]


@pytest.mark.parametrize("method", [in_order_of_time, largest_first, largest_area_first])
@given(items=intervals)
def test_compiled_loops_place_buffers_alike(method: Method, items: list[tuple[int, int, int]]) -> None:
    sizes, births, lengths = np.array(items).T
    expected = method(sizes, births, births + lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_buffers, "COMPILED_BUFFERS", 0)
        patch.setattr(of_buffers, "COMPILED_IN_TIME", 0)
        found = method(sizes, births, births + lengths)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1] == expected[1]


def test_memory_is_used_again() -> None:
    sizes = np.full(100, 64)
    births = np.arange(100)
    offsets, total = place(sizes, births, births + 1)
    assert total == 128
    assert set(offsets.tolist()) == {0, 64}


def test_nothing_to_place() -> None:
    none = np.zeros(0, np.int64)
    offsets, total = place(none, none, none)
    assert (len(offsets), total) == (0, 0)


def test_the_dearer_heuristic_is_used_where_it_pays() -> None:
    """A long-lived buffer born while a short-lived one lies below it splits the memory for a large one."""
    sizes, births, deaths = (np.array(v) for v in ([64, 64, 128], [0, 1, 2], [1, 3, 3]))
    assert in_order_of_time(sizes, births, deaths)[1] == 256
    assert largest_first(sizes, births, deaths)[1] == 192
    assert place(sizes, births, deaths)[1] == 192


def test_areas_are_compared_if_sizes_alone_waste_memory() -> None:
    """The buffer that lives longest goes to the bottom, although others are as large."""
    sizes, births, deaths = (np.array(v) for v in ([128, 64, 64, 128], [3, 2, 0, 0], [5, 3, 2, 0]))
    assert in_order_of_time(sizes, births, deaths)[1] == 256
    assert largest_first(sizes, births, deaths)[1] == 256
    assert largest_area_first(sizes, births, deaths)[1] == 192
    assert place(sizes, births, deaths)[1] == 192


def test_few_buffers_waste_no_memory_that_a_slower_heuristic_saves() -> None:
    """Of many buffers a small waste is accepted."""
    sizes, births, deaths = (np.array(v) for v in ([100, 100, 200, 19600], [0, 1, 2, 2], [1, 3, 3, 3]))
    assert in_order_of_time(sizes, births, deaths)[1] == 20000
    assert place(sizes, births, deaths)[1] == 19900
    later = np.full(FEW_BUFFERS, 4)
    many = np.append(sizes, np.ones_like(later)), np.append(births, later), np.append(deaths, later)
    assert largest_first(*many)[1] == 19900
    assert place(*many)[1] == 20000

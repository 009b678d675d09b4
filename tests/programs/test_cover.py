"""Regions covered by pieces of what workers hold, against sets of elements."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.programs.cover import contains, cover, covers, elements

INTERVALS = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted).map(tuple)
BOXES = st.tuples(INTERVALS, INTERVALS)


def element_set(region):
    return set(itertools.product(*(range(lower, upper) for lower, upper in region)))


@given(BOXES, st.lists(st.none() | BOXES, min_size=1, max_size=5), st.data())
def test_pieces_are_disjoint_and_together_the_target(target, held, data):
    reader = data.draw(st.integers(0, len(held) - 1))
    wanted = element_set(target)
    there = [element_set(region) if region else set() for region in held]
    holders = {number: (number, region) for number, region in enumerate(held) if region is not None}
    parts = cover(target, holders, reader, len(held))
    if not wanted <= set().union(*there):
        assert parts is None
        return
    pieces = [element_set(region) for _, region in parts]
    assert set().union(*pieces) == wanted
    assert sum(map(len, pieces)) == len(wanted)
    assert all(piece <= there[source] for (source, _), piece in zip(parts, pieces, strict=True))
    assert {
        e for (source, _), piece in zip(parts, pieces, strict=True) if source == reader for e in piece
    } == (wanted & there[reader])


@given(st.lists(BOXES, max_size=5), st.lists(BOXES, max_size=5))
def test_several_readers_have_what_each_has_alone(targets, held):
    holders = {2 * number: (number, region) for number, region in enumerate(held)}
    readers = list(enumerate(targets))
    found = covers(readers, holders, 5)
    assert found == [cover(target, holders, reader, 5) for reader, target in readers]


def test_a_number_is_read_from_itself_or_its_neighbour():
    held = {0: (0, ()), 1: (2, ())}
    assert [cover((), held, reader, 4) for reader in range(4)] == [
        ((0, ()),),
        ((0, ()),),
        ((1, ()),),
        ((1, ()),),
    ]


@given(BOXES, BOXES)
def test_elements_and_containment(outer, inner):
    assert elements(outer) == len(element_set(outer))
    if element_set(inner):
        assert contains(outer, inner) == (element_set(inner) <= element_set(outer))


@pytest.mark.parametrize(("reader", "source"), [(0, 2), (1, 3), (2, 2), (3, 3)])
def test_readers_take_copies_from_themselves_or_from_different_workers(reader, source):
    whole, half = ((0, 4),), ((0, 2),)
    assert cover(half, {2: (2, whole), 3: (3, whole)}, reader, 4) == ((source, half),)


@pytest.mark.parametrize(("reader", "source"), [(1, 0), (2, 0), (3, 0), (5, 4), (6, 4), (7, 4)])
def test_readers_take_copies_from_their_own_half(reader, source):
    """Workers 0 to 3 and 4 to 7 are two blocks, as devices of two nodes are."""
    whole = ((0, 4),)
    holders = {worker: (worker, whole) for worker in (0, 4)}
    assert cover(whole, holders, reader, 8) == ((source, whole),)


def test_a_worker_may_hold_several_regions():
    holders = {0: (1, ((0, 2),)), 1: (0, ((2, 3),)), 2: (1, ((3, 4),))}
    assert cover(((0, 4),), holders, 1, 2) == ((0, ((0, 2),)), (2, ((3, 4),)), (1, ((2, 3),)))

"""Pieces of variables against what every element has."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.analyzer.indices.region import Region
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.pieces import Held, cut_in_pieces, is_alone, joined
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    evenly,
)

WORKERS = 3
SHAPE = (4, 5)
WHOLE: Region = ((0, 4), (0, 5))


def inside(region: Region, element: tuple[int, ...]) -> bool:
    return all(lower <= at < upper for (lower, upper), at in zip(region, element, strict=True))


@st.composite
def regions(draw: st.DrawFn) -> Region:
    ends = [sorted(draw(st.sets(st.integers(0, extent), min_size=2, max_size=2))) for extent in SHAPE]
    return tuple((lower, upper) for lower, upper in ends)


@st.composite
def strategies(draw: st.DrawFn) -> Synchronisation:
    cuts = []
    for axis, extent in enumerate(SHAPE):
        bounds = draw(st.sets(st.integers(1, extent - 1), max_size=2))
        if bounds:
            cuts.append(Partition(axis, tuple(sorted(bounds))))
    count = prod(len(cut.bounds) + 1 for cut in cuts)
    sync = st.builds(Server, st.integers(0, WORKERS - 1)) | st.builds(AllReduce, st.integers(0, 3))
    return Synchronisation(tuple(draw(st.lists(sync, min_size=count, max_size=count))), tuple(cuts))


@given(strategies(), st.lists(st.tuples(st.integers(0, WORKERS - 1), regions())), st.integers(0, WORKERS - 1))
def test_pieces_say_what_every_element_has(how: Synchronisation, read: list[Held], owner: int) -> None:
    pieces = cut_in_pieces("w", SHAPE, how, read, [(owner, WHOLE)])
    for element in product(*map(range, SHAPE)):
        (piece,) = [each for each in pieces if inside(each.region, element)]
        readers = tuple(sorted({worker for worker, region in read if inside(region, element)}))
        part = 0
        for cut in how.cuts:
            part = part * (len(cut.bounds) + 1) + sum(element[cut.axis] >= bound for bound in cut.bounds)
        sync = how.parts[part]
        holders = (sync.worker,) if isinstance(sync, Server) else readers or (owner,)
        assert (piece.readers, piece.holders, type(piece.sync)) == (readers, holders, type(sync))


@given(st.lists(st.tuples(st.integers(0, WORKERS - 1), regions())), st.sets(st.integers(1, 4), max_size=2))
def test_a_variable_is_alone_if_its_holders_alone_read_it(read: list[Held], bounds: set[int]) -> None:
    edges = [0, *sorted(bounds), 5]
    held = [(number, ((0, 4), (lower, upper))) for number, (lower, upper) in enumerate(pairwise(edges))]
    owner = {
        element: w for w, region in held for element in product(range(4), range(5)) if inside(region, element)
    }
    expected = all(
        owner[element] == worker for worker, region in read for element in owner if inside(region, element)
    )
    assert is_alone(SHAPE, read, held) == expected


def test_what_two_workers_hold_is_not_alone() -> None:
    assert is_alone(SHAPE, [(0, WHOLE)], [(0, WHOLE)])
    assert not is_alone(SHAPE, [(0, WHOLE)], [(0, WHOLE), (1, WHOLE)])


def test_parts_of_an_all_reduce_are_one_piece() -> None:
    how = Synchronisation((AllReduce(0), AllReduce(1), AllReduce(1), AllReduce(2)), evenly(0, 4, 4))
    pieces = cut_in_pieces("w", SHAPE, how, [(0, WHOLE), (2, WHOLE)], [(0, WHOLE)])
    assert [(piece.region, piece.holders) for piece in pieces] == [(WHOLE, (0, 2))]


def test_a_scalar_is_one_piece() -> None:
    (piece,) = cut_in_pieces("w", (), Synchronisation((AllReduce(),)), [(1, ()), (0, ())], [(0, ())])
    assert (piece.region, piece.holders) == ((), (0, 1))


def test_boxes_are_joined_only_to_boxes() -> None:
    corner = [(((0, 1), (0, 2))), (((1, 2), (0, 1)))]
    assert joined([("a", box) for box in corner]) == [("a", box) for box in corner]
    assert joined([("a", ((1, 2), (0, 2))), ("a", ((0, 1), (0, 2)))]) == [("a", ((0, 2), (0, 2)))]
    assert len(joined([("a", ((1, 2), (0, 2))), ("b", ((0, 1), (0, 2)))])) == 2


def test_too_many_cells_are_refused() -> None:
    read = [(0, ((at, at + 1), (at, at + 1))) for at in range(200)]
    with pytest.raises(PlanError, match="'w' would be cut into 40,000 cells, but at most 16,384"):
        cut_in_pieces("w", (200, 200), Synchronisation((AllReduce(),)), read, [(0, ((0, 200), (0, 200)))])

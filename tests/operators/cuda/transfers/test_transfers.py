"""Kernels that move data, run on the CPU: what they write to the bit, and that they write nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.errors import DataError, OperatorError
from tofu.operators.cuda.launch.commands import KernelLaunch, MemoryCopy
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.transfers.transfer_units import copy_unit
from tofu.operators.cuda.transfers.transfers import Reduction, fetch, fill, moved_bytes, reduce, reduce_all
from tofu.tdl.ast import Reducer

from ..arrays import decode, encode
from ..card import Card, dense, strided
from ..moving import (
    REDUCERS,
    SAMPLE,
    TYPES,
    Seen,
    check_fetch,
    check_fill,
    check_reduce,
    expected,
    generators,
    numbers,
    random_terms,
    units,
)

TILE = copy_unit().tile


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Card:
    return Card.compiled(units(SAMPLE), tmp_path_factory.mktemp("card"))


def test_boxes_are_assembled(card: Card) -> None:
    seen = Seen(set(), set())
    for rng in generators(200):
        check_fetch(card, rng, seen)
    assert seen.widths == {1, 2, 4, 8, 16}
    assert seen.ranks == {1, 2, 3, 4, 5}
    assert seen.copies > 5
    assert seen.launches > 150


@pytest.mark.parametrize(("reducer", "type"), SAMPLE, ids=lambda value: str(value))
def test_terms_are_reduced(card: Card, reducer: Any, type: str) -> None:
    seen, size = Seen(set(), set()), DeviceView.dense(0, (), type).itemsize
    for rng in generators(20):
        check_reduce(card, reducer, type, rng, seen)
    assert seen.widths == {width for width in (2, 4, 8, 16) if width >= size}


@pytest.mark.slow
def test_every_reducer_and_type(tmp_path: Path) -> None:
    every = [(reducer, type) for reducer in REDUCERS for type in TYPES]
    card = Card.compiled(units(every), tmp_path)
    for reducer, type in every:
        for rng in generators(60):
            check_reduce(card, reducer, type, rng)


def test_boxes_are_filled(card: Card) -> None:
    for rng in generators(80):
        check_fill(card, rng)


def test_a_contiguous_piece_is_a_copy() -> None:
    source, target = (
        DeviceView.dense(0x1000, (4, 3, 5), "float32"),
        DeviceView.dense(0x8004, (4, 3, 5), "float32"),
    )
    assert fetch([(source, target)]) == (MemoryCopy(0x8004, 0x1000, 240),)
    assert fetch([(source[1:3,], target[2:4,])]) == (MemoryCopy(0x8004 + 120, 0x1000 + 60, 120),)
    (launch,) = fetch([(source[:, 1:2], target[:, 1:2])])
    assert isinstance(launch, KernelLaunch)
    permuted = [DeviceView.dense(address, (4, 3, 5), "int64", (0, 2, 1)) for address in (0x2000, 0x4000)]
    assert fetch([(permuted[0], permuted[1])]) == (MemoryCopy(0x4000, 0x2000, 480),)


def test_one_term_is_fetched() -> None:
    source, target = (DeviceView.dense(address, (6,), "bfloat16") for address in (0x1000, 0x2000))
    assert reduce(Reducer.MAX, [[(source, target)]]) == fetch([(source, target)])


def test_nothing_to_move_is_no_command() -> None:
    empty, whole = DeviceView.dense(0x1000, (0, 3), "float32"), DeviceView.dense(0x2000, (2, 3), "float32")
    assert fetch([]) == fetch([(empty, empty)]) == fetch([(whole, whole)]) == ()
    assert reduce(Reducer.SUM, []) == reduce(Reducer.SUM, [[(empty, empty)], []]) == fill(empty, 1) == ()


def test_one_launch_takes_eight_pieces() -> None:
    target = DeviceView.dense(0x100000, (40, 30), "float32")
    pairs = [
        (DeviceView.dense(0x1000 * number, (2, 30), "float32"), target[2 * number : 2 * number + 2,])
        for number in range(20)
    ]
    assert [len(fetch(pairs[:count])) for count in (2, 8, 9, 16, 17, 20)] == [1, 1, 2, 2, 3, 3]


def test_pieces_begin_behind_the_target() -> None:
    """With worker's memories one behind the other no two begin with the same worker's."""
    workers = [0x10000 * (number + 1) for number in range(4)]
    firsts = []
    for own in workers:
        target = DeviceView.dense(own, (4, 5), "float32")
        pairs = [
            (DeviceView.dense(worker + 0x800, (1, 5), "float32"), target[row : row + 1,])
            for row, worker in enumerate(workers)
        ]
        (launch,) = fetch(pairs)
        assert isinstance(launch, KernelLaunch)
        order = launch.struct["sources"]["data"][0, :4].tolist()
        start = workers.index(own)
        assert order == [worker + 0x800 for worker in workers[start:] + workers[:start]]
        firsts.append(order[0])
    assert len(set(firsts)) == 4


def test_blocks_are_shared_out_by_size() -> None:
    target = DeviceView.dense(0x100000, (4, 8 * TILE), "float32")
    pairs = [
        (DeviceView.dense(0x900000, (4, 100), "float32"), target[:, :100]),
        (DeviceView.dense(0xA00000, (4, 6 * TILE), "float32"), target[:, TILE : 7 * TILE]),
    ]
    (launch,) = fetch(pairs)
    assert isinstance(launch, KernelLaunch)
    cells = launch.struct["cells"][0]
    assert cells["count"].tolist() == [100, 6 * TILE, 0, 0, 0, 0, 0, 0]
    assert cells["first_block"].tolist()[:2] == [0, 1]
    assert (cells["first_block"][2:] >= 1 << 31).all()
    assert launch.blocks == 7


def test_far_apart_elements_take_64_bits() -> None:
    near = DeviceView(0x1000, (3, 5), (1 << 29, 4), "float32")
    far = DeviceView(0x1000, (3, 5), (1 << 30, 4), "float32")
    target = DeviceView.dense(0, (3, 5), "float32")
    for source, suffix in ((near, "i32"), (far, "i64")):
        for commands in (fetch([(source, target)]), reduce(Reducer.SUM, [[(source, target)]] * 2)):
            assert [command.function[-3:] for command in commands if isinstance(command, KernelLaunch)] == [
                suffix
            ]
    assert fill(far, 0)[0].function.endswith("i64")  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [16, 47, 48, 49, 95, 96])
def test_many_terms(card: Card, count: int) -> None:
    """Up to 48 at once; of more that many are rounded before the next 47."""
    rng, type = np.random.default_rng(count), "float16"
    target = strided(numbers((5, 24), type, rng), type, rng)
    terms, wholes, _kept = random_terms(target.array, type, count, rng, most=1)
    commands = reduce(Reducer.SUM, terms)
    assert len(commands) == 1 + (count > 48) + (count > 95)
    card.run(commands)
    result = expected(Reducer.SUM, type, wholes[:48])
    for start in range(48, count, 47):
        result = expected(Reducer.SUM, type, [result, *wholes[start : start + 47]])
    assert np.array_equal(target.array, result)


def test_reductions_share_launches(card: Card) -> None:
    """Those of one reducer, type and number of terms; one term is copied, and second passes come later."""
    rng = np.random.default_rng(3)
    reductions: list[Reduction] = []
    expectations: list[tuple[Any, Any]] = []
    everything: list[Any] = []
    cases = ((Reducer.SUM, "float16", 3), (Reducer.MAX, "bfloat16", 3), (Reducer.SUM, "float16", 3))
    for reducer, type, count in (*cases, (Reducer.SUM, "float32", 1), (Reducer.SUM, "float16", 50)):
        target = strided(numbers((4, 16), type, rng), type, rng)
        terms, wholes, kept = random_terms(target.array, type, count, rng, most=1)
        reductions.append((reducer, terms))
        result = expected(reducer, type, wholes[:48]) if count > 1 else wholes[0]
        if count > 48:
            result = expected(reducer, type, [result, *wholes[48:]])
        expectations.append((target.array, result))
        everything += [target, *kept]
    commands = reduce_all(reductions)
    copied = len(fetch(reductions[3][1][0]))
    combined = [int(each.struct["terms"][0]) for each in commands[copied:] if isinstance(each, KernelLaunch)]
    assert sorted(combined) == [3, 3, 3, 48]
    assert len(commands) == copied + 4
    card.run(commands)
    for found, values in expectations:
        assert np.array_equal(found, values)


def test_sums_of_sixteen_bits_are_rounded_once(card: Card) -> None:
    target = dense(np.zeros(3), "float16")
    terms = [dense(np.full(3, value), "float16") for value in (2048, 1, 1)]
    card.run(reduce(Reducer.SUM, [[(term.view, target.view)] for term in terms]))
    assert target.array.tolist() == [2050] * 3


@pytest.mark.parametrize(("reducer", "type"), [(Reducer.MAX, "bfloat16"), (Reducer.PROD, "float64")])
def test_not_a_number_stays(card: Card, reducer: Reducer, type: str) -> None:
    rows = [[np.nan, 1, 1, 1, -2], [1, np.nan, 1, 1, 0], [1, 1, np.nan, 1, 5]]
    target, terms = (
        dense(encode(np.zeros(5), type), type),
        [dense(encode(np.array(row), type), type) for row in rows],
    )
    card.run(reduce(reducer, [[(term.view, target.view)] for term in terms]))
    end = 5 if reducer is Reducer.MAX else 0
    np.testing.assert_array_equal(decode(target.array, type), [np.nan, np.nan, np.nan, 1, end])


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 65519.0, 1e300, np.inf, np.nan, 3.0e-5])
def test_fill_rounds_as_a_store_does(card: Card, type: str, value: float) -> None:
    target = dense(encode(np.zeros(5), type), type)
    if type.startswith("int") and (value != 65519 and value not in (0, 1)):
        with pytest.raises(DataError, match=r"cannot be set to"):
            fill(target.view, value)
        return
    card.run(fill(target.view, value))
    with np.errstate(over="ignore"):
        wanted = decode(encode(np.full(5, value), type), type)
    np.testing.assert_array_equal(decode(target.array, type), wanted)


def test_moved_bytes() -> None:
    source, target = DeviceView.dense(0x1000, (6, 2), "float16"), DeviceView.dense(0x2000, (6, 2), "float16")
    halves = [(source[:3,], target[:3,]), (source[3:,], target[3:,])]
    assert moved_bytes([halves]) == 24 + 24
    assert moved_bytes([[(source, target)], halves, halves]) == 3 * 24 + 24
    assert moved_bytes([]) == 0


def test_what_does_not_fit_is_refused() -> None:
    target = DeviceView.dense(0x1000, (4, 6), "float32")
    for other in (DeviceView.dense(0, (6, 4), "float32"), DeviceView.dense(0, (4, 6), "int32")):
        with pytest.raises(DataError, match=r"cannot move to float32 elements of shape \(4, 6\)"):
            fetch([(other, target)])
        with pytest.raises(DataError, match="cannot move to float32"):
            reduce(Reducer.SUM, [[(target, target)], [(other, target)]])
    longer = DeviceView.dense(0, (5, 6), "float32")
    halves = [(longer[:3,], target[:2,]), (longer[2:4,], target[2:,])]
    with pytest.raises(DataError, match=r"shape \(3, 6\) cannot move to float32 elements of shape \(2, 6\)"):
        reduce(Reducer.SUM, [[(target, target)], halves])
    with pytest.raises(DataError, match=r"written with strides \(0, 4\)"):
        fetch([(target, DeviceView(0x8000, (4, 6), (0, 4), "float32"))])
    with pytest.raises(DataError, match=r"0x8002 with strides \(24, 4\) are not aligned to 4 bytes"):
        fill(DeviceView.dense(0x8002, (4, 6), "float32"), 0)
    odd = DeviceView(0x8000, (4, 6), (26, 4), "float32")
    with pytest.raises(DataError, match=r"not aligned"):
        reduce(Reducer.SUM, [[(target, target)], [(odd, target)]])
    with pytest.raises(OperatorError, match="no CUDA kernel for elements of type 'int8'"):
        fill(DeviceView(0, (1,), (1,), "int8"), 0)

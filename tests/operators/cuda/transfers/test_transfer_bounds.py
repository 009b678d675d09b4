"""Moving data between arrays that lie alone, where a sanitizer sees every access next to them."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.operators.cuda.transfers.transfer_units import copy_unit, fill_unit, reduce_unit
from tofu.operators.cuda.transfers.transfers import fetch, fill, reduce
from tofu.tdl.ast import Reducer

from ..arrays import decode
from ..card import Card, dense, view_of
from ..moving import expected, numbers

pytestmark = pytest.mark.slow  # values are compared elsewhere, this is for the sanitizers

TILE = copy_unit().tile
SHAPES = ((), (1,), (7,), (5, 3), (8, 16), (2, 1, 9), (6, 1, 2, 5), (TILE + 1,))


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Card:
    return Card.compiled([copy_unit(), fill_unit()], tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Card:
    return Card.compiled([reduce_unit(Reducer.SUM, "float16")], tmp_path_factory.mktemp("adder"))


@pytest.mark.parametrize("type", ["float16", "float32", "float64"])
@pytest.mark.parametrize("wide", [False, True])
def test_copies_and_fills(card: Card, type: str, wide: bool) -> None:
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        target, source = (dense(numbers(shape, type, rng), type) for _ in "ab")
        turned = (
            view_of(source.array[tuple(slice(None, None, -1) for _ in shape)], type) if shape else source.view
        )
        card.run(fetch([(turned, target.view)]), wide)
        assert np.array_equal(target.array, np.flip(source.array))
        card.run(fill(target.view, 3), wide)
        assert (decode(target.array, type) == 3).all()
        card.run(fill(view_of(target.array[..., ::2], type), 5) if shape else (), wide)
        halves = (
            [slice(0, length // 2) for length in shape[:1]],
            [slice(length // 2, None) for length in shape[:1]],
        )
        parts = [(..., *half, *(slice(None) for _ in shape[1:])) for half in halves[: len(shape) + 1]]
        pairs = [(view_of(source.array[part], type), view_of(target.array[part], type)) for part in parts]
        card.run(fetch(pairs), wide)
        assert np.array_equal(target.array, source.array)


@pytest.mark.parametrize("wide", [False, True])
def test_reductions(adder: Card, wide: bool) -> None:
    rng = np.random.default_rng(4)
    for shape in SHAPES:
        target, *sources = (dense(numbers(shape, "float16", rng), "float16") for _ in "abcd")
        adder.run(reduce(Reducer.SUM, [[(source.view, target.view)] for source in sources]), wide)
        assert np.array_equal(target.array, expected(Reducer.SUM, "float16", [one.array for one in sources]))

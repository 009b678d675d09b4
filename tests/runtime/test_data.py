from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.data import ArrayIterator, Batch, Batches, checked


def test_the_last_batch_is_filled_and_says_so() -> None:
    batches = list(ArrayIterator(np.arange(7), np.arange(7) * 10, batch_size=3).epoch())
    assert [batch.valid for batch in batches] == [3, 3, 1]
    assert [batch.data["data"].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]
    assert batches[2].label["softmax_label"].tolist() == [60, 0, 10]
    assert batches[2].size == 3


def test_the_last_batch_can_be_left_out() -> None:
    iterator = ArrayIterator(np.arange(7), batch_size=3, drop_last=True)
    assert len(iterator) == len(list(iterator.epoch())) == 2


def test_a_batch_larger_than_the_data_repeats_it() -> None:
    (batch,) = ArrayIterator(np.arange(3), batch_size=8).epoch()
    assert batch.data["data"].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert batch.valid == 3


def test_shuffling_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        iterator = ArrayIterator(np.arange(50), np.arange(50), 10, shuffle=True, seed=seed)
        batches = list(iterator.epoch(epoch))
        for batch in batches:
            np.testing.assert_array_equal(batch.data["data"], batch.label["softmax_label"])
        return [row for batch in batches for row in batch.data["data"].tolist()]

    assert order(0, 3) == order(0, 3)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    assert sorted(order(0, 3)) == list(range(50))


def test_several_arrays_by_name() -> None:
    iterator = ArrayIterator({"a": np.zeros((5, 2)), "b": np.zeros((5, 3, 4))}, {"y": np.zeros(5)}, 2)
    assert iterator.shapes == {"a": (2, 2), "b": (2, 3, 4), "y": (2,)}


def test_bad_data_is_refused() -> None:
    with pytest.raises(DataError, match=r"different numbers of samples: {'data': 3, 'softmax_label': 4}"):
        ArrayIterator(np.zeros(3), np.zeros(4))
    with pytest.raises(DataError, match=r"0 samples do not fill a batch of 2"):
        ArrayIterator(np.zeros((0, 2)), batch_size=2)
    with pytest.raises(DataError, match=r"batch_size is 0 .*an integer from 1 on"):
        ArrayIterator(np.zeros(3), batch_size=0)
    with pytest.raises(DataError, match=r"3 samples do not fill a batch of 4"):
        ArrayIterator(np.zeros(3), batch_size=4, drop_last=True)
    with pytest.raises(DataError, match=r"'data' must be an array"):
        ArrayIterator(np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"'data' must be an array"):
        ArrayIterator(np.float64(3))
    with pytest.raises(DataError, match=r"'softmax_label' must be an array .*inhomogeneous shape"):
        ArrayIterator(np.zeros((2, 2)), [[1], [2, 3]])
    with pytest.raises(DataError, match=r"data has no arrays"):
        ArrayIterator({}, np.zeros(2))


class Given(Batches):
    """Batches as a user may give them."""

    shapes: ClassVar = {"data": (4, 2), "softmax_label": (4,)}

    def __init__(self, *batches: object) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return 1

    def epoch(self, number: int = 0) -> Iterator[Any]:
        return iter(self.batches)


def given(valid: Any = 4) -> Batch:
    return Batch({"data": np.zeros((4, 2))}, {"softmax_label": np.zeros(4)}, valid)


def test_batches_of_ones_own() -> None:
    [batch] = checked(Given(given(3)))
    assert batch.valid == 3
    assert Given().settings == {"shapes": Given.shapes, "batches": 1}


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "epoch 0 gave 0 batches, but the length of the data is 1"),
        ([given(), given()], "epoch 0 gave 2 batches"),
        ([{"data": 1}], "gave a dict, expected a tofu.Batch"),
        ([given(5)], "a batch of 4 samples states that 5 of them are valid"),
        ([given(3.5)], r"the number of valid samples of a batch is 3\.5 \(float\); give an integer"),
        ([Batch({}, {"softmax_label": np.zeros(4)}, 4)], "a batch has no 'data', whose shape the data state"),
        ([Batch({"data": np.zeros((4, 2))}, {}, 4)], "a batch has no 'softmax_label'"),
        (
            [Batch({"data": [[0, 0]] * 4}, {"softmax_label": np.zeros(4)}, 4)],
            r"'data' of a batch is \[\[.* \(list\); give a NumPy array",
        ),
    ],
)
def test_batches_that_are_not_what_they_say(batches: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(checked(Given(*batches)))

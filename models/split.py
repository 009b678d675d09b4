"""Samples with their labels, and what of them is held out of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import DataError

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Samples:
    """`data` `[n, ...]` and `label` `[n, ...]`, float32 as MXNet has them."""

    data: Array
    label: Array

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> Samples:
        return Samples(self.data[rows], self.label[rows])


@dataclass(frozen=True)
class DataSplit:
    """Samples for training, and samples held out. The latter are empty if nothing is held out."""

    train_data: Array
    """The inputs to train on, `[samples, ...]`."""

    train_label: Array
    """The labels to train on, `[samples, ...]`."""

    test_data: Array
    """The inputs held out, `[samples, ...]`."""

    test_label: Array
    """The labels held out, `[samples, ...]`."""

    @classmethod
    def of(cls, train: Samples, test: Samples) -> DataSplit:
        return cls(train.data, train.label, test.data, test.label)


def windows(classes: npt.NDArray[np.float32], length: int) -> Samples:
    """Return a sequence of class numbers cut into windows `[n, length]`.

    Each label is the class that follows.

    Raises DataError if `length` is below one.
    """
    if length < 1:
        raise DataError(f"a window needs at least one character, but length is {length}")
    count = max(0, (len(classes) - 1) // length)
    data = classes[: count * length].reshape(count, length)
    return Samples(data, classes[1 : count * length + 1].reshape(count, length))

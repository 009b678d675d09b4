"""Batches of samples, from arrays or from what a user derives from `Batches`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Shape
from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.checked_argument import array_of, require, require_count
from .initializer import generator

Arrays = Mapping[str, npt.ArrayLike]

Rows = npt.NDArray[np.int64]
"""Numbers of rows of a batch, in ascending order."""

CHECKED_SAMPLES = 256
"""The number of samples, spread evenly, whose checksum identifies the data."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples for one training step."""

    data: Mapping[str, Array]
    """Arrays `[batch, ...]` by name."""

    label: Mapping[str, Array]
    """Labels `[batch, ...]` by name."""

    valid: int
    """The number of real samples; later rows repeat others to fill the batch."""

    @property
    def size(self) -> int:
        """Count the samples, including those that fill the batch."""
        return len(next(iter(self.data.values())))

    def parts(self, count: int) -> Iterator[Batch]:
        """Split the batch into `count` equal parts, in order; the last may have only filling rows."""
        size = self.size // count
        for start in range(0, size * count, size):
            yield Batch(
                {name: array[start : start + size] for name, array in self.data.items()},
                {name: array[start : start + size] for name, array in self.label.items()},
                min(max(self.valid - start, 0), size),
            )


class Batches(ABC):
    """Batches of one size, epoch after epoch, on which `Module` trains, scores and predicts.

    Derive from this class for data that are generated or read during training, so that they need not be in
    memory.
    """

    @property
    @abstractmethod
    def shapes(self) -> dict[str, Shape]:
        """Return the shape of every array of a batch, by name."""

    @abstractmethod
    def __len__(self) -> int:
        """Batches in an epoch."""

    @abstractmethod
    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """Return the batches of one epoch, the same each time for the same number."""

    def reading(self, rows: Mapping[str, Rows]) -> Batches:
        """Return the same batches, of which a process reads only the rows that its workers are fed.

        `rows` has the rows of each array of a batch by name; an array without an entry is needed whole. The
        arrays keep the shape of the whole batch, and other rows may hold anything. Labels have to be whole,
        since processes compute metrics, unless the class names them in `label_names`. Without a method of its
        own, a class reads whole batches in every process.
        """
        return self

    @property
    def label_names(self) -> Sequence[str] | None:
        """Return the names of the labels, in the order of the outputs that they are compared with.

        None if a class does not say; its labels are then needed whole in every process.
        """
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that a resumed run must share, as JSON values."""
        return {"shapes": self.shapes, "batches": len(self)}


def checked(data: Batches, number: int = 0) -> Iterator[Batch]:
    """Yield the batches of one epoch. Raises DataError if they do not match the data's description."""
    count, names = 0, tuple(data.shapes)
    for batch in data.epoch(number):
        count += 1
        if not isinstance(batch, Batch):
            raise DataError(f"epoch {number} gave a {type(batch).__name__}, expected a tofu.Batch")
        _require_arrays(batch, names)
        require_count(batch.valid, "the number of valid samples of a batch", DataError)
        if not 0 < batch.valid <= batch.size:
            raise DataError(f"a batch of {batch.size} samples states that {batch.valid} of them are valid")
        yield batch
    if count != len(data):
        raise DataError(f"epoch {number} gave {count} batches, but the length of the data is {len(data)}")


def _require_arrays(batch: Batch, names: Sequence[str]) -> None:
    """Raise DataError unless a batch has an array of each name."""
    given = {**batch.data, **batch.label}
    for name in names:
        if name not in given:
            raise DataError(f"a batch has no '{name}', whose shape the data state; give it in every batch")
        fits = isinstance(given[name], np.ndarray)
        require(fits, given[name], f"'{name}' of a batch", "a NumPy array", DataError)


class ArrayIterator(Batches):
    """Cuts arrays `[sample, ...]` into batches of one size.

    `data` and `label` are arrays, or several by name. Metrics compare the first label with the first output,
    the second with the second, and so on. If `shuffle`, every epoch has a different order, given by `seed`
    and the epoch's number. The last batch is filled with the epoch's first samples, or left out if
    `drop_last`. Raises DataError if lengths differ or there are no batches.
    """

    def __init__(
        self,
        data: npt.ArrayLike | Arrays,
        label: npt.ArrayLike | Arrays | None = None,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        self.data = _named(data, data_name)
        if not self.data:
            raise DataError("data has no arrays; give at least one")
        self.label = {} if label is None else _named(label, label_name)
        require_count(batch_size, "batch_size", DataError, 1)
        self.batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._drop_last = drop_last
        self._rows: Mapping[str, Rows] = {}
        lengths = {name: len(array) for name, array in {**self.data, **self.label}.items()}
        if len(set(lengths.values())) != 1:
            raise DataError(f"arrays have different numbers of samples: {lengths}")
        self.samples = next(iter(lengths.values()))
        if not len(self):
            raise DataError(
                f"{self.samples} samples do not fill a batch of {batch_size}; use a smaller batch_size"
            )

    def __len__(self) -> int:
        """Batches in an epoch."""
        rounding = 0 if self._drop_last else self.batch_size - 1
        return (self.samples + rounding) // self.batch_size

    @property
    def shapes(self) -> dict[str, Shape]:
        """Return the shape of every array of a batch."""
        arrays = {**self.data, **self.label}
        return {name: (self.batch_size, *array.shape[1:]) for name, array in arrays.items()}

    @property
    def label_names(self) -> Sequence[str]:
        """Return the names of the labels."""
        return tuple(self.label)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the batches; the checksum covers some samples of each array."""
        return {
            "samples": self.samples,
            "checksum": self._checksum(),
            "batch_size": self.batch_size,
            "shuffle": self._shuffle,
            "seed": self._seed,
            "drop_last": self._drop_last,
        }

    def reading(self, rows: Mapping[str, Rows]) -> Batches:
        """Return batches whose arrays are read only in part, see `Batches.reading`; other rows are zeros.

        Arrays may be memory maps, of which only these samples are then read. A class that changes what
        `epoch` returns reads whole batches, since its change may need them.
        """
        if type(self).epoch is not ArrayIterator.epoch:
            return self
        partial = copy(self)
        partial._rows = dict(rows)
        return partial

    def _checksum(self) -> int:
        rows = np.linspace(0, self.samples - 1, min(self.samples, CHECKED_SAMPLES)).astype(int)
        return reduce(
            lambda checksum, array: crc32(array[rows].tobytes(), checksum),
            [*self.data.values(), *self.label.values()],
            0,
        )

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        order = np.arange(self.samples)
        if self._shuffle:
            order = generator(f"epoch {number}", self._seed).permutation(self.samples)
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            valid = min(self.batch_size, self.samples - start)
            rows = np.take(order, np.arange(start, start + self.batch_size), mode="wrap")
            yield Batch(
                {name: self._read(name, array, rows) for name, array in self.data.items()},
                {name: self._read(name, array, rows) for name, array in self.label.items()},
                valid,
            )

    def _read(self, name: str, array: Array, samples: Rows) -> Array:
        """Return the samples of a batch, those of rows that are not needed as zeros."""
        needed = self._rows.get(name)
        if needed is None:
            return array[samples]
        batch = np.zeros((len(samples), *array.shape[1:]), array.dtype)
        batch[needed] = array[samples[needed]]
        return batch


def _named(value: npt.ArrayLike | Arrays, name: str) -> dict[str, Array]:
    named = value if isinstance(value, Mapping) else {name: value}
    return {key: _numbers(key, array) for key, array in named.items()}


def _numbers(name: str, value: npt.ArrayLike) -> Array:
    array = array_of(value, name, DataError)
    if array.ndim == 0 or array.dtype.kind not in "buif":
        raise DataError(
            f"'{name}' must be an array [sample, ...] of numbers, not {array.dtype} {array.shape}"
        )
    return array

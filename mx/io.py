"""`mx.io`: batches of arrays, in the manner of MXNet's iterators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..models.files.idx import read_idx
from ..runtime.data import ArrayIterator
from ..support.wording import counted
from .ndarray.array import NDArray, as_array
from .seed import current_seed

__all__ = ["DataBatch", "DataDesc", "DataIter", "MNISTIter", "NDArrayIter", "ResizeIter"]


class _Desc(NamedTuple):
    name: str
    shape: tuple[int, ...]


class DataDesc(_Desc):
    """Name and shape of an input, `(name, shape)`, with its type and its layout."""

    dtype: Any
    layout: str

    def __new__(
        cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str = "NCHW"
    ) -> DataDesc:
        made = super().__new__(cls, name, tuple(shape))
        made.dtype = dtype
        made.layout = layout
        return made

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return where the batch lies: the place of N, 0 if there is no layout."""
        return 0 if layout is None else layout.find("N")


class DataBatch:
    """Arrays of one batch, those of `data` and of `label` in the order of their descriptions.

    The last `pad` samples only fill the batch.
    """

    def __init__(
        self,
        data: Sequence[NDArray],
        label: Sequence[NDArray] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[Any] | None = None,
        provide_label: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(data, list | tuple) or not isinstance(label, list | tuple | None):
            raise DataError("data and label of a DataBatch are lists of arrays; write [data], [label]")
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __repr__(self) -> str:
        label = [array.shape for array in self.label or ()]
        return f"DataBatch: data shapes: {[array.shape for array in self.data]} label shapes: {label}"


class DataIter:
    """Something that yields batches until StopIteration, and again after `reset`."""

    provide_data: Sequence[Any]
    provide_label: Sequence[Any]

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """Return the next batch. Raises StopIteration after the last."""
        raise NotImplementedError("an iterator returns its next batch from next(); override it")

    def reset(self) -> None:
        """Begin again."""


class NDArrayIter(DataIter):
    """Batches of arrays in memory.

    `data` and `label` are an array, a list or a dictionary of them. The last batch is filled with the first
    samples ("pad"), left out ("discard"), or ("roll_over") kept for the next epoch, which is not supported.
    The order of `shuffle` follows from `mx.random.seed`; it differs from epoch to epoch.
    """

    _seed: int | None = None

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        super().__init__(batch_size)
        if last_batch_handle not in ("pad", "discard"):
            raise DataError(f"last_batch_handle is {last_batch_handle!r}; supported are 'pad' and 'discard'")
        self._batches = ArrayIterator(
            _named(data, data_name),
            _named(label, label_name) or None,
            batch_size,
            shuffle=shuffle,
            seed=current_seed() if self._seed is None else self._seed,
            drop_last=last_batch_handle == "discard",
        )
        self.num_data = self._batches.samples
        self.provide_data = self._described(self._batches.data)
        self.provide_label = self._described(self._batches.label)
        self._epoch = -1
        self.reset()

    def reset(self) -> None:
        self._epoch += 1
        self._left = self._batches.epoch(self._epoch)

    hard_reset = reset

    def next(self) -> DataBatch:
        batch = next(self._left)
        return DataBatch(
            [NDArray(array) for array in batch.data.values()],
            [NDArray(array) for array in batch.label.values()],
            batch.size - batch.valid,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    def _described(self, arrays: Mapping[str, Any]) -> list[DataDesc]:
        return [
            DataDesc(name, (self.batch_size, *array.shape[1:]), array.dtype) for name, array in arrays.items()
        ]


class MNISTIter(NDArrayIter):
    """Images and labels in MNIST's idx files, gzipped or not: numbers from 0 to 1, `[batch, 1, 28, 28]`.

    The order of `shuffle` follows from `seed` alone. Raises DataError for a part that is not there, and for
    images that do not have `input_shape`.
    """

    def __init__(
        self,
        image: str,
        label: str,
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        input_shape: Sequence[int] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        if not 0 <= part_index < num_parts:
            raise DataError(f"part_index is {part_index}, but there are {counted(num_parts, 'part')}")
        self._seed = seed
        images = read_idx(Path(image))[part_index::num_parts].astype(np.float32) / 255
        shape = (-1,) if flat else tuple(input_shape or (1, *images.shape[1:]))
        if input_shape is not None and math.prod(input_shape) != math.prod(images.shape[1:]):
            raise DataError(f"{image} has images {images.shape[1:]}, but input_shape is {tuple(input_shape)}")
        labels = read_idx(Path(label))[part_index::num_parts].astype(np.float32)
        super().__init__(
            images.reshape(len(images), *shape), labels, batch_size, shuffle, "discard", data_name, label_name
        )


class ResizeIter(DataIter):
    """An iterator whose epochs have `size` batches, whatever those of `data_iter` have."""

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self._done = 0
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label

    def reset(self) -> None:
        self._done = 0
        if self.reset_internal:
            self.data_iter.reset()

    def next(self) -> DataBatch:
        if self._done == self.size:
            raise StopIteration
        self._done += 1
        try:
            return self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            return self.data_iter.next()


def _named(given: Any, name: str) -> dict[str, Any]:
    """Return arrays by name: one as `name`, several as `_0_name`, `_1_name`."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {key: as_array(value) for key, value in given.items()}
    if isinstance(given, list | tuple) and given and hasattr(given[0], "shape"):
        several = len(given) > 1
        return {f"_{k}_{name}" if several else name: as_array(value) for k, value in enumerate(given)}
    return {name: as_array(given)}

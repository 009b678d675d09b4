"""The inputs of a module: what they are called, their shapes, and batches of them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import DataError
from ...operators.kernels.kernel import Array
from ...runtime.data import Batch
from ...runtime.feeding import valid_rows
from ..io import DataBatch, DataDesc
from ..ndarray.array import as_array

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Data and labels as bound."""

    data: Sequence[DataDesc]
    label: Sequence[DataDesc]

    @property
    def shapes(self) -> Shapes:
        """The shape of every input."""
        return {each.name: each.shape for each in (*self.data, *self.label)}

    def by_name(self, batch: DataBatch) -> Batch:
        """Return a batch by name; samples that only fill it are not valid.

        A batch of any class will do: `pad`, `label` and descriptions may be missing.
        Raises DataError for missing arrays.
        """
        data = _by_name("data", self.data, batch.data, getattr(batch, "provide_data", None))
        label = _by_name(
            "label", self.label, getattr(batch, "label", None) or (), getattr(batch, "provide_label", None)
        )
        size = len(next(iter(data.values())))
        return Batch(data, label, size - padding(batch))

    def shapes_of(self, batch: Batch) -> Shapes:
        """Return shapes of all inputs for this batch; those of labels that it lacks as bound, for
        its size.
        """
        labels = {each.name: (batch.size, *each.shape[1:]) for each in self.label}
        given = {name: array.shape for name, array in {**batch.data, **batch.label}.items()}
        return {**labels, **given}


def padding(batch: DataBatch) -> int:
    """Return the number of samples that only fill a batch; a batch that does not say so has none."""
    return getattr(batch, "pad", None) or 0


def without_padding(array: Array, size: int, valid: int) -> Array:
    """Return the rows of the first `valid` of a batch's `size` samples.

    Return the whole array if samples have no rows of their own, such as a loss of the whole batch.
    """
    return valid_rows(array, size, valid) if array.ndim and len(array) % size == 0 else array


def described(given: Any, names: Sequence[str], what: str) -> list[DataDesc]:
    """Return descriptions for exactly these names, of `(name, shape)` each. Raises DataError."""
    found = [each if isinstance(each, DataDesc) else DataDesc(*each) for each in given or ()]
    if sorted(each.name for each in found) != sorted(names):
        listed = ", ".join(each.name for each in found) or "nothing"
        raise DataError(
            f"{what} describes {listed}, but the module has {', '.join(names) or 'none'}; describe exactly "
            "these"
        )
    return found


def _by_name(what: str, bound: Sequence[DataDesc], arrays: Any, provided: Any) -> dict[str, Array]:
    """Return arrays by name, in the order the batch says, else that of `bind`."""
    names = [each[0] for each in provided] if provided else [each.name for each in bound]
    if what == "data" and len(arrays) != len(names):
        raise DataError(
            f"the batch has {len(arrays)} arrays of {what} for {', '.join(names)}; give one for each"
        )
    wanted = {each.name for each in bound}
    return {name: as_array(array) for name, array in zip(names, arrays, strict=False) if name in wanted}

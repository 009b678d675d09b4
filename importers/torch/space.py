"""Arguments and results of ATen operators that work on dimensions of space."""

from __future__ import annotations

from .call import AtenCall, TensorValue
from .moves import viewed


def spread(value: object, rank: int, default: int = 0) -> tuple[int, ...]:
    """Return one number for each dimension of space."""
    if value is None or value == []:
        return (default,) * rank
    listed = [value] if isinstance(value, int) else list(value)  # type: ignore[call-overload]
    return tuple(listed * rank if len(listed) == 1 else listed)


def batched(call: AtenCall, data: TensorValue, space: int) -> TensorValue:
    """Return the data with a batch, which PyTorch lets users leave out."""
    if data.rank == space + 2:
        return data
    return viewed(call, data, (1, *data.shape), "batch")


def unbatched(call: AtenCall, found: TensorValue) -> TensorValue:
    return found if found.rank == len(call.result.shape) else viewed(call, found, call.result.shape, "row")


def with_batch(call: AtenCall, space: int) -> tuple[int, ...]:
    shape = call.result.shape
    return shape if len(shape) == space + 2 else (1, *shape)


def space_of(call: AtenCall) -> int:
    """Return the number of dimensions of space, which the operator's name ends with."""
    return int(call.target.partition("d_with")[0].rstrip("d")[-1])

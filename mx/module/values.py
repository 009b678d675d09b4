"""Where the values of parameters and of the optimizer's states come from and go to, as whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DataError
from ...operators.kernels.kernel import Array
from ...runtime.executor import Executor
from ...runtime.parameters import optimizer_state
from ...support.wording import alternatives
from ..initializer import InitDesc
from ..ndarray.array import NDArray, as_array


def start_values(
    wanted: Mapping[InitDesc, tuple[int, ...]],
    given: Mapping[str, Any] | None,
    rule: Any,
    allow_missing: bool,
    allow_extra: bool,
) -> dict[str, Array]:
    """Return a value for each name of `wanted`, of its shape: the given one, or else the initializer's.

    Raises DataError for a value of another shape; unless they may be, for one that is not wanted, and for
    one that is missing if any is given.
    """
    unknown = [name for name in given or () if name not in wanted]
    if unknown and not allow_extra:
        raise DataError(f"the symbol has no parameter '{unknown[0]}'{alternatives(unknown[0], wanted)}")
    values: dict[str, Array] = {}
    for name, shape in wanted.items():
        array = NDArray(np.zeros(shape, np.float32))
        if given is not None and name in given:
            if (found := as_array(given[name]).shape) != shape:
                raise DataError(
                    f"'{name}' has shape {shape}, but its value {found}; give the values of the same model"
                )
            array[:] = given[name]
        elif given is not None and not allow_missing:
            raise DataError(f"no value is given for '{name}'; allow_missing=True initializes it")
        else:
            rule(name, array)
        values[str(name)] = array.numpy_array
    return values


def leave(name: str, array: NDArray) -> None:
    """Leave an array as it is, an initializer of parameters that may be missing."""


def merged(arrays: Sequence[Array], merge_multi_context: bool) -> Any:
    """Return the arrays, or, if parts are asked for, a list of parts for each.

    Devices hold no samples of their own here, so the whole array is the only part.
    """
    whole = [NDArray(array) for array in arrays]
    return whole if merge_multi_context else [[array] for array in whole]


def write_states(executor: Executor, values: Mapping[str, Array]) -> None:
    """Overwrite what the optimizer keeps. Raises DataError if it is of another optimizer."""
    different = set(optimizer_state(executor)) ^ set(values)
    if different:
        where = "file" if min(different) in values else "module"
        raise DataError(
            f"optimizer state '{min(different)}' exists only in the {where}: the states are another "
            "optimizer's; use the optimizer that they were saved with"
        )
    for name, array in values.items():
        executor.write(name, array)

"""Arrays in files of the safetensors format, which holds numbers and text and executes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ...errors import DataError
from ...runtime.checkpoint_file import Checkpoint, encode
from ...runtime.checkpoint_reading import read
from ...support.atomic_files import write_whole
from ...support.opened_files import open_regular
from .array import NDArray, as_array

LIST = "list"
MXNET_MAGIC = (0x112).to_bytes(8, "little")


def save(fname: str | PathLike[str], data: NDArray | Sequence[NDArray] | Mapping[str, NDArray]) -> None:
    """Write an array, a list or a dictionary of arrays. Raises DataError if it cannot be written."""
    unnamed = not isinstance(data, Mapping)
    if isinstance(data, NDArray):
        data = [data]
    named = data if isinstance(data, Mapping) else {str(k): array for k, array in enumerate(data)}
    tensors = {name: as_array(array) for name, array in named.items()}
    try:
        write_whole(Path(fname), encode(Checkpoint(tensors, {LIST: unnamed})))
    except (OSError, DataError) as error:
        raise DataError(f"{fname} cannot be saved: {error}") from error


def load(fname: str | PathLike[str]) -> list[NDArray] | dict[str, NDArray]:
    """Return what `save` wrote.

    Raises DataError for a file that is missing, damaged, or written by MXNet itself.
    """
    path = Path(fname)
    try:
        with open_regular(path) as file:
            begin = file.read(8)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if begin == MXNET_MAGIC:
        raise DataError(
            f"{path} is in MXNet's own binary format, which is not read here; save it as safetensors"
        )
    found = read(path)
    arrays = {name: NDArray(np.array(array)) for name, array in found.tensors.items()}
    if found.state.get(LIST):
        if set(arrays) != {str(index) for index in range(len(arrays))}:
            raise DataError(f"{path} says that it is a list, but its arrays are not numbered")
        return [arrays[str(index)] for index in range(len(arrays))]
    return arrays

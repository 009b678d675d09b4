"""Arrays in files of the safetensors format, which holds numbers and text and executes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from ...errors import DataError
from ...runtime.checkpoint import Checkpoint, encode, read
from ...runtime.files import Files
from .array import NDArray, as_array

LIST = "list"
MXNET_MAGIC = (0x112).to_bytes(8, "little")


def save(fname: str | PathLike[str], data: NDArray | Sequence[NDArray] | Mapping[str, NDArray]) -> None:
    """Write an array, a list or a dictionary of arrays. Raises DataError where it cannot be written."""
    listed = [data] if isinstance(data, NDArray) else data
    unnamed = not isinstance(listed, Mapping)
    named = {str(k): array for k, array in enumerate(listed)} if not isinstance(listed, Mapping) else listed
    tensors = {name: as_array(array) for name, array in named.items()}
    path, files = Path(fname), Files()
    temporary = path.with_name(path.name + ".temporary")
    try:
        files.write(temporary, encode(Checkpoint(tensors, {LIST: unnamed})))
        files.sync(temporary)
        files.rename(temporary, path)
        files.sync_folder(path.parent)
    except OSError as error:
        raise DataError(f"{path} cannot be saved: {error}") from error


def load(fname: str | PathLike[str]) -> list[NDArray] | dict[str, NDArray]:
    """What `save` wrote. Raises DataError for a file that is missing, damaged, or written by MXNet itself."""
    path = Path(fname)
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if begin == MXNET_MAGIC:
        raise DataError(
            f"{path} is in MXNet's own binary format, which is not read here; save it as safetensors"
        )
    found = read(path)
    arrays = {name: NDArray(array) for name, array in found.tensors.items()}
    if found.state.get(LIST):
        return [arrays[str(index)] for index in range(len(arrays))]
    return arrays

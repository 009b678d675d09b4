"""Tensors of ONNX files as arrays. Sizes are compared with what the file has before memory is taken."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import GraphError
from ...support.opened_files import open_regular
from .operand import MOST_ELEMENTS, Array

FIELDS = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}
"""By type, where a tensor holds numbers that are not raw bytes; all others are in `int32_data`."""


def element_type(code: int) -> np.dtype[Any] | None:
    """Return the type of elements that ONNX has this number for; None if Tofu does not have it.

    bfloat16 is read as float32, which holds all its numbers.
    """
    import onnx

    if code == onnx.TensorProto.BFLOAT16:
        return np.dtype(np.float32)
    try:
        found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, TypeError, ValueError):
        return None
    return found if found.kind in "fiub" else None


def read_tensor(proto: Any, folder: Path | None) -> Array:
    """Return the value of a tensor. External data are read from inside `folder` only.

    Raises GraphError.
    """
    import onnx

    place = f"tensor {proto.name!r:.200}"
    shape, dtype = tuple(proto.dims), element_type(proto.data_type)
    if dtype is None:
        raise GraphError(f"{place} has elements of type {proto.data_type}, which cannot be read; use numbers")
    if min(shape, default=0) < 0 or prod(shape) > MOST_ELEMENTS:
        raise GraphError(
            f"{place} has shape {shape}; extents are from 0 on, with at most {MOST_ELEMENTS:,} elements"
        )
    if proto.HasField("segment"):
        raise GraphError(f"{place} is a segment of a tensor; save the model with whole tensors")
    stored = np.dtype(np.uint16) if proto.data_type == onnx.TensorProto.BFLOAT16 else dtype
    wanted = prod(shape) * stored.itemsize
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        raw = _external(proto, folder, wanted, place)
    elif proto.HasField("raw_data"):
        raw = proto.raw_data
    else:
        return _listed(proto, shape, dtype, place)
    if len(raw) != wanted:
        raise GraphError(f"{place} of shape {shape} takes {wanted:,} bytes, but the file has {len(raw):,}")
    found: Array = np.frombuffer(raw, stored.newbyteorder("<")).astype(stored, copy=False).reshape(shape)
    return _widened(found) if stored != dtype else found


def _listed(proto: Any, shape: tuple[int, ...], dtype: np.dtype[Any], place: str) -> Array:
    """Return numbers that are listed one by one."""
    import onnx

    listed = getattr(proto, FIELDS.get(dtype.name, "int32_data"))
    if proto.data_type == onnx.TensorProto.BFLOAT16:
        listed = proto.int32_data
    if len(listed) != prod(shape):
        raise GraphError(
            f"{place} of shape {shape} has {prod(shape):,} elements, but the file has {len(listed):,}"
        )
    array = np.array(listed, np.int64 if dtype.kind in "ib" else None)
    if proto.data_type in (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16):
        bits = array.astype(np.uint16).reshape(shape)
        return bits.view(np.float16) if proto.data_type == onnx.TensorProto.FLOAT16 else _widened(bits)
    return array.astype(dtype).reshape(shape)


def _widened(bits: Array) -> Array:
    """Return bfloat16 as float32, of which it is the first half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _external(proto: Any, folder: Path | None, wanted: int, place: str) -> bytes:
    """Read the bytes that a tensor has in another file. Raises GraphError."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise GraphError(f"{place} is in the file {location!r:.200}; give the model's path, not its bytes")
    path = _inside(folder, location, place)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
    except ValueError:
        raise GraphError(f"{place} has an offset or a length that is not a number") from None
    if length != wanted or offset < 0:
        raise GraphError(f"{place} takes {wanted:,} bytes, but the file says {length:,} from {offset:,} on")
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if offset + length > size:
                raise GraphError(
                    f"{place} ends at byte {offset + length:,} of {location!r:.200}, which has {size:,}"
                )
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise GraphError(f"{place}: {location!r:.200} cannot be read: {error.strerror}") from None


def _inside(folder: Path, location: str, place: str) -> Path:
    """Return the path of a file inside a folder, links followed. Raises GraphError if it is outside."""
    refused = GraphError(
        f"{place} is in {location!r:.200}, outside of the model's folder; external data lie next to the model"
    )
    if not location or "\0" in location or Path(location).is_absolute() or ".." in Path(location).parts:
        raise refused
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, location))
    if os.path.commonpath((root, path)) != root:
        raise refused
    return Path(path)

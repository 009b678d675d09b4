"""Read a pickle without running any code that it names.

A pickle is a program that may call anything. Here only five names mean something, and none of them is the
real one: NumPy's four, of which an array is made, are stand-ins that keep what they are given, and
`_codecs.encode`, by which Python 3 writes bytes in old protocols, turns text into bytes and does no more.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt


class _StandIn:
    """Something that a pickle may call. It has no attributes to overwrite."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it sets the state of an object")


class _Class(_StandIn):
    """Stands for `numpy.ndarray`, which is only ever handed to `_reconstruct`."""

    __slots__ = ()


class _Array:
    """Stands for an array of bytes until its contents are known."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: npt.NDArray[np.uint8] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, columns_first, raw = state
        self.fill(shape, dtype, columns_first, raw)

    def fill(self, shape: Any, dtype: object, columns_first: object, raw: object) -> None:
        """Take the contents. Raises UnpicklingError if they are not `shape`'s number of bytes."""
        if not isinstance(dtype, _Type) or not isinstance(raw, bytes | bytearray) or columns_first:
            raise pickle.UnpicklingError("it holds an array that is not of bytes in row-major order")
        if any(type(extent) is not int or extent < 0 for extent in shape) or math.prod(shape) != len(raw):
            raise pickle.UnpicklingError(f"it holds an array {shape} of {len(raw):,} bytes")
        self.array = np.frombuffer(raw, np.uint8).reshape(shape)


class _Type:
    """Stands for the type of bytes."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Byte order and the like, which bytes do not have."""


class _MakeArray(_StandIn):
    __slots__ = ()

    def __call__(self, kind: object, shape: object, code: object) -> _Array:
        return _Array()


class _MakeFilled(_StandIn):
    """As protocol 5 makes arrays, at once."""

    __slots__ = ()

    def __call__(self, raw: object, dtype: object, shape: object, order: object) -> _Array:
        made = _Array()
        made.fill(shape, dtype, order != "C", raw)
        return made


class _MakeType(_StandIn):
    __slots__ = ()

    def __call__(self, code: object, *flags: object) -> _Type:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"it holds an array of {_shown(code)}, but pixels are bytes, u1")
        return _Type()


class _Encode(_StandIn):
    """Makes no more bytes than the file has, however often it names one text."""

    __slots__ = ("_left",)

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, text: object, encoding: object) -> bytes:
        if not isinstance(text, str) or encoding != "latin1":
            raise pickle.UnpicklingError("it encodes data that is not latin1 text")
        self._left -= len(text)
        if self._left < 0:
            raise pickle.UnpicklingError("it makes more bytes than it has")
        return text.encode("latin1")


_KNOWN: dict[tuple[str, str], object] = {
    ("numpy.core.multiarray", "_reconstruct"): _MakeArray(),
    ("numpy._core.multiarray", "_reconstruct"): _MakeArray(),
    ("numpy.core.numeric", "_frombuffer"): _MakeFilled(),
    ("numpy._core.numeric", "_frombuffer"): _MakeFilled(),
    ("numpy", "ndarray"): _Class(),
    ("numpy", "dtype"): _MakeType(),
}


class _Reader(pickle._Unpickler):
    """Python's own reader, whose memory grows with the file and not with numbers in it, with few names."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw), encoding="bytes")
        self._known = {**_KNOWN, ("_codecs", "encode"): _Encode(len(raw))}

    def find_class(self, module: str, name: str) -> Any:
        found = self._known.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(
                f"it asks for {_shown(f'{module}.{name}')}, which data does not need"
            )
        return found


def read_pickle(raw: bytes) -> object:
    """Return what a pickle of plain values and arrays of bytes holds; text of Python 2 is bytes.

    Nothing that the pickle names is imported or called. Raises UnpicklingError, saying why, for all others.
    """
    try:
        return _plain(_Reader(raw).load())
    except pickle.UnpicklingError:
        raise
    except EOFError:
        raise pickle.UnpicklingError("it ends in the middle") from None
    except Exception as error:  # a malformed program can fail in any of its instructions, in any way
        raise pickle.UnpicklingError(f"it is malformed ({type(error).__name__})") from error


def _plain(value: object) -> object:
    """Replace stand-ins by arrays, at the top and in a dictionary; this format has none deeper."""
    if isinstance(value, dict):
        return {key: each.array if isinstance(each, _Array) else each for key, each in value.items()}
    return value.array if isinstance(value, _Array) else value


def _shown(value: object) -> str:
    """Return a value from the file, short and without control characters."""
    return repr(value)[:60] if isinstance(value, str | bytes) else type(value).__name__

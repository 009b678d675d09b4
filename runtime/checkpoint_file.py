"""The file of a checkpoint: the safetensors format, with a place for every tensor before any is written.

A file is a header, JSON that names every tensor with its type, shape and place, then the tensors. So tensors
can be written in any order, and by several processes. The header's metadata hold the state of the run, and
the SHA-256 of that state and of every tensor's name, type, shape and own SHA-256. It is written last.

`checkpoint_reading` reads such files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Region, Shape
from ..errors import DataError
from ..operators.kernels.kernel import Array

FORMAT = 2
ALIGNMENT = 8
METADATA = "__metadata__"
"""The entry of the header that is not a tensor."""

Form = tuple[npt.DTypeLike, Shape]
"""The type and the shape of a tensor."""


class Savable(Protocol):
    """The contents of a checkpoint that is to be saved."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Return everything besides tensors, as JSON values."""
        ...

    @property
    def forms(self) -> Mapping[str, Form]:
        """Return the type and shape of every tensor."""
        ...

    def read(self, name: str, process: int = 0) -> Array | None:
        """Return a tensor in one process; None in others. All call it in the same order."""
        ...


class Restorable(Protocol):
    """The contents of a checkpoint that was saved."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Return everything besides tensors, as JSON values."""
        ...

    @property
    def forms(self) -> Mapping[str, Form]:
        """Return the type and shape of every tensor."""
        ...

    def parts(self, name: str, regions: Sequence[Region]) -> list[Array]:
        """Return regions of a tensor. All processes call this in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The contents of a checkpoint."""

    tensors: Mapping[str, Array]
    """Whole tensors by name. Those of a file are read when they are looked up."""

    state: Mapping[str, Any]
    """Everything else, as JSON values."""

    @property
    def forms(self) -> dict[str, Form]:
        """Return the type and shape of every tensor."""
        return {name: (array.dtype, array.shape) for name, array in self.tensors.items()}

    def read(self, name: str, process: int = 0) -> Array:
        """Return a tensor."""
        return self.tensors[name]

    def parts(self, name: str, regions: Sequence[Region]) -> list[Array]:
        """Return regions of a tensor."""
        tensor = self.tensors[name]
        return [tensor[tuple(slice(lower, upper) for lower, upper in region)] for region in regions]


class FileForm:
    """The header of a file, and where in the file each tensor begins. `state` is the text of the state.

    Wide elements come first, so each tensor lies at a multiple of its element's size.
    """

    def __init__(self, forms: Mapping[str, Form], state: str) -> None:
        self.state = state
        self.forms = {name: (np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in forms.items()}
        self.sizes = {
            name: dtype.itemsize * int(np.prod(shape, dtype=object))
            for name, (dtype, shape) in sorted(self.forms.items(), key=_place)
        }
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        self._spans = dict(zip(self.sizes, pairwise(ends), strict=True))
        start = len(self.header_with("0" * hashlib.sha256().digest_size * 2))
        self.nbytes = start + ends[-1]
        self.places = {name: start + lower for name, (lower, _) in self._spans.items()}

    @classmethod
    def of(cls, checkpoint: Savable) -> FileForm:
        """Return the form of the file of a checkpoint. Raises DataError as `require_names`."""
        require_names(checkpoint.forms)
        return cls(checkpoint.forms, json.dumps(checkpoint.state, sort_keys=True))

    def header(self, digests: Mapping[str, str]) -> bytes:
        """Return the header; `digests` are those of the tensors, see `digest`."""
        return self.header_with(self.digest(digests))

    def digest(self, digests: Mapping[str, str]) -> str:
        """Return the SHA-256 of everything in the file; `digests` are those of the tensors."""
        total = hashlib.sha256(self.state.encode())
        for name in sorted(self.forms):
            dtype, shape = self.forms[name]
            total.update(repr((name, dtype.str, shape, digests[name])).encode())
        return total.hexdigest()

    def header_with(self, digest: str) -> bytes:
        """Return the header; `digest` is that of everything in the file."""
        listed: dict[str, Any] = {
            METADATA: {"tofu_format": str(FORMAT), "state": self.state, "sha256": digest}
        }
        for name, span in self._spans.items():
            dtype, shape = self.forms[name]
            listed[name] = {"dtype": _type_name(dtype), "shape": list(shape), "data_offsets": list(span)}
        text = json.dumps(listed, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        return len(text).to_bytes(8, "little") + text


def require_names(names: Collection[str]) -> None:
    """Raise DataError for a name that a tensor of a checkpoint cannot have."""
    if METADATA in names:
        raise DataError(
            f"no checkpoint can hold a tensor named '{METADATA}', which is the name of the file's own entry; "
            "give the variable another name"
        )


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of a file."""
    form = FileForm.of(checkpoint)
    written = {name: content(checkpoint.tensors[name]) for name in form.places}
    header = form.header({name: digest(each) for name, each in written.items()})
    return b"".join([header, *written.values()])


def content(array: Array) -> memoryview:
    """Return the bytes of a tensor as a file holds them."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def digest(written: memoryview) -> str:
    """Return the SHA-256 of the bytes of a tensor."""
    return hashlib.sha256(written).hexdigest()


def _place(item: tuple[str, tuple[np.dtype[Any], Shape]]) -> tuple[int, str]:
    name, (dtype, _) = item
    return -dtype.itemsize, name


def _type_name(dtype: np.dtype[Any]) -> str:
    """Return the name of an element type in the safetensors format, such as `F32`."""
    if dtype.kind == "b":
        return "BOOL"
    if dtype.kind not in "iuf" or dtype.newbyteorder("<") != dtype:
        raise DataError(f"elements of type {dtype} cannot be saved")
    return f"{dtype.kind.upper()}{8 * dtype.itemsize}"


def type_of(name: str) -> np.dtype[Any]:
    """Return the element type that has a name in the safetensors format. Raises ValueError for others."""
    return np.dtype(bool) if name == "BOOL" else np.dtype(f"{name[0].lower()}{int(name[1:]) // 8}")

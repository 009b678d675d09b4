"""The file of a checkpoint: the safetensors format, with a place for every tensor before any is written.

A file is a header, JSON that names every tensor with its type, shape and place, then the tensors. So tensors
can be written in any order, and by several processes. The header's metadata hold the state of the run, and
the SHA-256 of that state and of every tensor's name, type, shape and own SHA-256. It is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Shape
from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.opened_files import open_regular

FORMAT = 2
ALIGNMENT = 8
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The contents of a checkpoint."""

    tensors: Mapping[str, Array]
    """Whole tensors by name."""

    state: Mapping[str, Any]
    """Everything else, as JSON values."""

    @property
    def forms(self) -> dict[str, Form]:
        """Return the type and shape of every tensor."""
        return {name: (array.dtype, array.shape) for name, array in self.tensors.items()}

    def read(self, name: str, process: int = 0) -> Array:
        """Return a tensor."""
        return self.tensors[name]


class OtherVersion(DataError):
    """A checkpoint is of another format; it is not damaged, so none is read in place of it."""


class FileForm:
    """The header of a file, and where in the file each tensor begins.

    Wide elements come first, so each tensor lies at a multiple of its element's size.
    """

    def __init__(self, forms: Mapping[str, Form], state: Mapping[str, Any]) -> None:
        self.state = json.dumps(state, sort_keys=True)
        self._forms = {name: (np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in forms.items()}
        self.sizes = {
            name: dtype.itemsize * int(np.prod(shape, dtype=object))
            for name, (dtype, shape) in sorted(self._forms.items(), key=_place)
        }
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        self._spans = dict(zip(self.sizes, pairwise(ends), strict=True))
        start = len(self._header("0" * hashlib.sha256().digest_size * 2))
        self.nbytes = start + ends[-1]
        self.places = {name: start + lower for name, (lower, _) in self._spans.items()}

    def header(self, digests: Mapping[str, str]) -> bytes:
        """Return the header; `digests` are those of the tensors, see `digest`."""
        return self._header(_digest(self.state, self._forms, digests))

    def _header(self, digest: str) -> bytes:
        listed: dict[str, Any] = {
            "__metadata__": {"tofu_format": str(FORMAT), "state": self.state, "sha256": digest}
        }
        for name, span in self._spans.items():
            dtype, shape = self._forms[name]
            listed[name] = {"dtype": _type_name(dtype), "shape": list(shape), "data_offsets": list(span)}
        text = json.dumps(listed, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        return len(text).to_bytes(8, "little") + text


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of a file."""
    form = FileForm(checkpoint.forms, checkpoint.state)
    written = {name: content(checkpoint.tensors[name]) for name in form.places}
    header = form.header({name: digest(each) for name, each in written.items()})
    return b"".join([header, *written.values()])


def content(array: Array) -> memoryview:
    """Return the bytes of a tensor as a file holds them."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def digest(written: memoryview) -> str:
    """Return the SHA-256 of the bytes of a tensor."""
    return hashlib.sha256(written).hexdigest()


def read(path: Path) -> Checkpoint:
    """Read the checkpoint in a file. Raises DataError if it is damaged or not of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path).close()
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
        found = metadata.get("tofu_format", "none")
        if found != str(FORMAT):
            kind = OtherVersion if found.isdecimal() else DataError
            raise kind(
                f"checkpoint {path} has format {found}, but this version of Tofu reads {FORMAT}; use the "
                "version that saved it, or another folder"
            )
        checkpoint = Checkpoint(tensors, json.loads(metadata["state"]))
        digests = {name: digest(content(array)) for name, array in tensors.items()}
        if _digest(metadata["state"], checkpoint.forms, digests) != metadata["sha256"]:
            raise DataError(f"checkpoint {path} is damaged: its contents do not match its checksum")
        if not isinstance(checkpoint.state, dict):
            raise DataError(f"checkpoint {path} is damaged: its state is not an object")
        return checkpoint
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"checkpoint {path} is damaged: {type(error).__name__}: {error}") from error


def _digest(state: str, forms: Mapping[str, Form], digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of everything in a checkpoint."""
    total = hashlib.sha256(state.encode())
    for name in sorted(forms):
        dtype, shape = forms[name]
        total.update(repr((name, np.dtype(dtype).str, shape, digests[name])).encode())
    return total.hexdigest()


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

"""Whatever a name leads to, readers refuse it at once, with an error of theirs that says why."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tofu
from tofu.errors import DataError, DescriptionError, GraphError, PlanError, TofuError
from tofu.models.files import idx, read
from tofu.mx import ndarray
from tofu.runtime import checkpoint
from tofu.support.opened_files import check_expansion, open_regular, read_regular
from tofu.support.strict_documents import read_document

READERS: list[tuple[Callable[[Path], object], type[TofuError]]] = [
    (read, DataError),
    (idx.read_idx, DataError),
    (checkpoint.read, DataError),
    (ndarray.load, DataError),
    (tofu.load, DescriptionError),
    (tofu.sym.load, GraphError),
    (lambda path: read_document(path, "plan"), PlanError),
]


@pytest.fixture(params=["pipe", "/dev/zero", "folder", "a" * 300, "nul\0", "missing"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A name of something that is not a regular file."""
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
    if request.param == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize(("reader", "error"), READERS)
def test_readers_refuse_what_is_not_a_file(
    reader: Callable[[Path], object], error: type[TofuError], place: Path
) -> None:
    with pytest.raises(error):
        reader(place)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file but a pipe"):
        open_regular(tmp_path / "pipe")


def test_sizes_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"123")
    assert read_regular(path, 3) == b"123"
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_regular(path, 2)
    check_expansion(1, 1 << 30, "file")
    check_expansion(1 << 30, 1 << 36, "file")
    with pytest.raises(OSError, match="would expand"):
        check_expansion(1 << 24, (1 << 30) + 1, "file")


def test_false_sizes_in_a_packed_file_allocate_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bomb-idx1-ubyte.gz"
    content = bytes((0, 0, 8, 2)) + (1 << 31).to_bytes(4, "big") * 2
    path.write_bytes(gzip.compress(content + bytes(100)) + os.urandom(2 << 20))
    with pytest.raises(DataError, match="would expand"):
        idx.read_idx(path)

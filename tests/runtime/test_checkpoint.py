"""Checkpoint files: every way a write can fail, every way a file can be wrong."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.checkpoint import TEMPORARY, CheckpointFolder
from tofu.runtime.checkpoint_file import Checkpoint, encode
from tofu.runtime.checkpoint_reading import read
from tofu.support.atomic_files import Files

OPERATIONS = 10
"""Of one save: write, extend, write three tensors and the header, sync, rename, sync of the folder, removal
of the oldest.
"""


def numbered(number: int) -> Checkpoint:
    tensors = {"w": np.full((3, 4), number, np.float32), "b": np.arange(number + 1.0), "n": np.array(number)}
    return Checkpoint(tensors, {"number": number, "rate": 0.1, "nothing": None})


def assert_equal(found: Checkpoint, expected: Checkpoint) -> None:
    assert found.state == expected.state
    assert found.tensors.keys() == expected.tensors.keys()
    for name, array in expected.tensors.items():
        assert found.tensors[name].dtype == array.dtype
        np.testing.assert_array_equal(found.tensors[name], array)


class Failing(Files):
    """Fails at one operation, as a full disk does: what is written then is cut short."""

    def __init__(self, at: int) -> None:
        self.left = at

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(28, "No space left on device")

    def write(self, path: Path, data: bytes) -> None:
        try:
            self._count()
        except OSError:
            super().write(path, data[: len(data) // 2])
            raise
        super().write(path, data)

    def extend(self, path: Path, nbytes: int) -> None:
        self._count()
        super().extend(path, nbytes)

    def write_at(self, path: Path, start: int, data: bytes | memoryview) -> None:
        try:
            self._count()
        except OSError:
            super().write_at(path, start, data[: len(data) // 2])
            raise
        super().write_at(path, start, data)

    def sync(self, path: Path) -> None:
        self._count()
        super().sync(path)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._count()
        super().sync_folder(folder)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)


class Forgetful(Files):
    """A disk that loses what was not synced: contents until `sync`, names until `sync_folder`."""

    def __init__(self) -> None:
        self.contents: set[Path] = set()
        self.unsafe: list[tuple[Path, Path]] = []
        self.lost: dict[Path, bytes] = {}

    def write(self, path: Path, data: bytes) -> None:
        super().write(path, data)
        self.contents.add(path)

    def write_at(self, path: Path, start: int, data: bytes | memoryview) -> None:
        super().write_at(path, start, data)
        self.contents.add(path)

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.contents.discard(path)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.unsafe.append((source, target))
        if source in self.contents:
            self.contents.remove(source)
            self.contents.add(target)

    def sync_folder(self, folder: Path) -> None:
        super().sync_folder(folder)
        self.unsafe.clear()

    def crash(self) -> None:
        for path in self.contents:
            path.write_bytes(b"")
        for source, target in self.unsafe:
            target.rename(source)


def test_newest_of_two_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "deep" / "run")
    for number in range(1, 5):
        path = folder.save(numbered(number))
        assert_equal(CheckpointFolder(folder.folder).load(), numbered(number))
    assert [path.name for path in folder.paths()] == [
        "checkpoint-000003.safetensors",
        "checkpoint-000004.safetensors",
    ]
    assert path == folder.paths()[-1]
    assert sorted(folder.folder.iterdir()) == folder.paths()


@pytest.mark.parametrize("at", range(1, OPERATIONS + 2))
def test_a_failure_at_any_operation_loses_nothing(tmp_path: Path, at: int) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(numbered(1))
    folder.save(numbered(2))
    folder._files = Failing(at)
    acknowledged = 2
    if at < OPERATIONS:
        with pytest.raises(DataError, match=r"000003.*No space left.*000002\.safetensors is intact"):
            folder.save(numbered(3))
    elif at == OPERATIONS:
        with pytest.warns(UserWarning, match="000001.*cannot be removed"):
            folder.save(numbered(3))
        acknowledged = 3
    else:
        folder.save(numbered(3))
        acknowledged = 3
    found = CheckpointFolder(tmp_path).load()
    assert found.state["number"] >= acknowledged
    assert_equal(found, numbered(found.state["number"]))
    folder._files = Files()
    folder.save(numbered(4))
    assert_equal(CheckpointFolder(tmp_path).load(), numbered(4))
    assert not list(tmp_path.glob(f"*{TEMPORARY}"))
    assert len(folder.paths()) == 2


@pytest.mark.parametrize("stop", ["write", "extend", "write_at", "sync", "rename", "sync_folder"])
def test_a_crash_after_any_operation_loses_nothing(tmp_path: Path, stop: str) -> None:
    CheckpointFolder(tmp_path).save(numbered(1))
    files = Forgetful()

    class Crash(BaseException):
        pass

    operation = getattr(files, stop)

    def then_crash(*arguments: object) -> None:
        operation(*arguments)
        raise Crash

    setattr(files, stop, then_crash)
    with pytest.raises(Crash):
        CheckpointFolder(tmp_path, files).save(numbered(2))
    files.crash()
    expected = 2 if stop == "sync_folder" else 1
    assert_equal(CheckpointFolder(tmp_path).load(), numbered(expected))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data, path = encode(numbered(3)), tmp_path / "checkpoint-000001.safetensors"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match="is damaged"):
            read(path)


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    data, path = encode(numbered(3)), tmp_path / "checkpoint-000001.safetensors"
    for position in range(len(data)):
        for bit in (0, 3, 7):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            with pytest.raises(DataError):
                read(path)


def test_falls_back_to_the_one_before_and_removes_what_is_damaged(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(numbered(1))
    newest = folder.save(numbered(2))
    newest.write_bytes(newest.read_bytes()[:-1])
    again = CheckpointFolder(tmp_path)
    with pytest.warns(UserWarning, match=r"000002.*damaged.*continuing from .*000001"):
        assert_equal(again.load(), numbered(1))
    again.save(numbered(3))
    assert [path.name[:17] for path in again.paths()] == ["checkpoint-000001", "checkpoint-000003"]


def test_one_of_another_version_is_neither_passed_over_nor_removed(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(numbered(1))
    newer = folder.save(numbered(2))
    newer.write_bytes(newer.read_bytes().replace(b'"tofu_format":"2"', b'"tofu_format":"3"'))
    with pytest.raises(DataError, match=r"000002.* has format 3, but this version of Tofu reads 2"):
        CheckpointFolder(tmp_path).load()
    assert CheckpointFolder(tmp_path).paths()[-1] == newer


def test_a_state_that_is_not_an_object_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-000001.safetensors"
    for state in (None, [], 5, "state"):
        path.write_bytes(encode(Checkpoint({"w": np.ones(2)}, state)))  # type: ignore[arg-type]
        with pytest.raises(DataError, match="its state is not an object"):
            read(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-000001.safetensors"
    objects = np.array([{"a": 1}], object)
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 1 << 40]}}).encode()
    for content in (
        b"",
        pickle.dumps({"w": [1.0]}),
        objects.dumps(),
        len(header).to_bytes(8, "little") + header,
        (1 << 62).to_bytes(8, "little"),
        encode(numbered(1)).replace(b'"tofu_format":"2"', b'"tofu_format":"1"'),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is damaged|has format 1, but this version of Tofu reads 2"):
            read(path)
    with pytest.raises(DataError, match="000001"):
        CheckpointFolder(tmp_path).load()
    with pytest.raises(DataError, match="there is no checkpoint in"):
        CheckpointFolder(tmp_path / "nowhere").load()


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "a/../../escaped", "C:\\\\escaped"])
def test_names_that_are_paths_lead_nowhere(tmp_path: Path, name: str) -> None:
    """A tensor's name is a key and nothing else: no file but the checkpoint is read or written."""
    folder = tmp_path / "outer" / "run"
    folder.mkdir(parents=True)
    kept = Checkpoint({name: np.ones(3, np.float32)}, {})
    saved = CheckpointFolder(folder).save(kept)
    assert_equal(CheckpointFolder(folder).load(), kept)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [saved]


def test_a_tensor_does_not_replace_the_entry_of_the_file(tmp_path: Path) -> None:
    kept = CheckpointFolder(tmp_path).save(numbered(1))
    with pytest.raises(DataError, match="no checkpoint can hold a tensor named '__metadata__'"):
        CheckpointFolder(tmp_path).save(Checkpoint({"__metadata__": np.ones(3, np.float32)}, {}))
    assert list(tmp_path.iterdir()) == [kept]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with CheckpointFolder(tmp_path).exclusive(create=True):
        second = CheckpointFolder(tmp_path).exclusive(create=False)
        with pytest.raises(DataError, match="another run writes"):
            second.__enter__()
    with CheckpointFolder(tmp_path).exclusive(create=False):
        pass


def without_locks(handle: int, operation: int) -> None:
    """Fail as `flock` does where the file system has no locks."""
    raise OSError(95, "Operation not supported")


def test_a_folder_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", without_locks)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(DataError, match=r"run cannot be locked.*: Operation not supported; name a folder of"):
        CheckpointFolder(tmp_path / "run").exclusive(create=True).__enter__()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_removed_folder_is_made_and_locked_again(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run")
    with folder.exclusive(create=True):
        folder.save(numbered(1))
        shutil.rmtree(tmp_path / "run")
        with pytest.warns(UserWarning, match="was removed with its checkpoints; it is made again"):
            folder.save(numbered(2))
        with pytest.raises(DataError, match="another run writes"):
            CheckpointFolder(tmp_path / "run").exclusive(create=True).__enter__()
        folder.save(numbered(3))
    assert [path.name for path in folder.paths()] == [
        "checkpoint-000001.safetensors",
        "checkpoint-000002.safetensors",
    ]
    assert_equal(CheckpointFolder(tmp_path / "run").load(), numbered(3))


def test_two_runs_never_write_to_one_folder(tmp_path: Path) -> None:
    first, second = CheckpointFolder(tmp_path / "run"), CheckpointFolder(tmp_path / "run")
    with first.exclusive(create=True):
        first.save(numbered(1))
        shutil.rmtree(tmp_path / "run")
        with second.exclusive(create=True):
            second.save(numbered(2))
            with pytest.raises(DataError, match="another folder has taken its place"):
                first.save(numbered(3))
    assert_equal(second.load(), numbered(2))


@pytest.mark.parametrize("folder", ["file", "file/run"])
def test_what_is_no_folder_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match=rf"no checkpoints can be kept in .*{folder}: "):
        CheckpointFolder(tmp_path / folder).exclusive(create=True).__enter__()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_that_no_folder_can_have_is_refused() -> None:
    with pytest.raises(DataError, match=r"no checkpoints can be kept in .* null .*; name another"):
        CheckpointFolder(Path("a\0b")).exclusive(create=True).__enter__()


def test_strange_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("checkpoint-x.safetensors", "notes.txt", f"checkpoint-000009.safetensors{TEMPORARY}"):
        (tmp_path / name).write_text("mine")
    CheckpointFolder(tmp_path).save(numbered(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000001.safetensors",
        "checkpoint-x.safetensors",
        "notes.txt",
    ]

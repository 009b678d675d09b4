"""Checkpoints that several processes write into one file, or the first one if they share no folder."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.runtime.checkpoint import CheckpointFolder, TensorWriter
from tofu.runtime.checkpoint_file import Checkpoint, FileForm, Form, encode
from tofu.runtime.checkpoint_reading import SavedFile
from tofu.runtime.distributed.kept_folder import SharedFolder
from tofu.runtime.distributed.processes import Processes

from .forked import results

TENSORS = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.arange(5.0),
    "n": np.array(7),
    "empty": np.zeros((0, 3), np.float16),
}


@dataclass
class Held:
    """Tensors that a process has only if it is the one that is asked for."""

    number: int
    state: dict[str, Any]
    written: list[str] = field(default_factory=list)

    @property
    def forms(self) -> dict[str, Form]:
        return Checkpoint(TENSORS, {}).forms

    def read(self, name: str, process: int = 0) -> Any:
        if process != self.number:
            return None
        self.written.append(name)
        return TENSORS[name]


def saved(processes: Processes, path: Path) -> tuple[int, list[str]]:
    """Save twice; return how many processes wrote, and the tensors that this one did."""
    folder, held = SharedFolder(path, processes), Held(processes.number, {"seconds": processes.number})
    with folder.exclusive(create=True):
        folder.save(held)
        folder.save(held)
        assert folder.load().state == {"seconds": 0}
        return folder.writers, held.written


def test_all_processes_write_the_file_of_one(tmp_path: Path) -> None:
    found = results(3, lambda processes: saved(processes, tmp_path / "run"))
    assert [writers for writers, _ in found] == [3] * 3
    written = [set(names) for _, names in found]
    assert set.union(*written) == set(TENSORS)
    assert sum(map(len, written)) == len(TENSORS)
    assert all(written)
    paths = sorted((tmp_path / "run").iterdir())
    assert [path.name for path in paths] == [f"checkpoint-00000{n}.safetensors" for n in (1, 2)]
    for path in paths:
        assert path.read_bytes() == encode(Checkpoint(TENSORS, {"seconds": 0}))


def test_the_first_process_writes_if_another_one_sees_no_such_folder(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second", tmp_path / "first"]
    folders[1].mkdir()
    found = results(3, lambda processes: saved(processes, folders[processes.number]))
    assert [writers for writers, _ in found] == [1] * 3
    assert [sorted(set(names)) for _, names in found] == [sorted(TENSORS), [], []]
    assert not list(folders[1].iterdir())
    newest = sorted(folders[0].iterdir())[-1]
    assert newest.read_bytes() == encode(Checkpoint(TENSORS, {"seconds": 0}))


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("operation", ["write", "sync"])
def test_what_one_process_cannot_write_is_not_saved(tmp_path: Path, failing: int, operation: str) -> None:
    def work(processes: Processes) -> str:
        folder, held = SharedFolder(tmp_path, processes), Held(processes.number, {})
        with folder.exclusive(create=True):
            folder.save(held)
            before = getattr(TensorWriter, operation)

            def full(*arguments: Any) -> None:
                raise OSError(28, "No space left on device")

            if processes.number == failing:
                setattr(TensorWriter, operation, full)
            with pytest.raises(tofu.DataError, match=f"process {failing}: .*No space.*000001.* is intact"):
                folder.save(held)
            assert CheckpointFolder(tmp_path).paths() == [tmp_path / "checkpoint-000001.safetensors"]
            processes.exchange("go on", b"")
            setattr(TensorWriter, operation, before)
            folder.save(held)
        return "done"

    assert results(2, work) == ["done"] * 2
    assert len(list(tmp_path.iterdir())) == 2
    assert CheckpointFolder(tmp_path).load().state == {}


ROWS = ((0, 2), (1, 4))


def assert_restored(folder: SharedFolder, expected: float) -> None:
    """Load, and compare regions of tensors, of which each process reads others."""
    found = folder.load()
    assert found.state == {"number": expected}
    assert set(found.forms) == {"w", "b", "n", "empty"}
    w = TENSORS["w"] + expected
    own = [((row, row + 1), (0, 4)) for row in range(3) if row % 2 == folder.writers % 2]
    for region, part in zip([ROWS, *own], found.parts("w", [ROWS, *own]), strict=True):
        assert part.tobytes() == w[tuple(slice(*each) for each in region)].tobytes()
    assert found.parts("n", [()])[0] == 7 + expected
    assert found.parts("empty", [((0, 0), (0, 3))])[0].shape == (0, 3)
    assert found.parts("b", []) == []


def numbered(number: float) -> Checkpoint:
    tensors = {name: (array + number).astype(array.dtype) for name, array in TENSORS.items()}
    return Checkpoint(tensors, {"number": number})


def saved_alone(path: Path) -> None:
    folder = CheckpointFolder(path)
    for number in (1, 2):
        folder.save(numbered(number))


def test_every_process_checks_some_tensors_and_reads_its_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_alone(tmp_path)

    def work(processes: Processes) -> list[str]:
        checked, digest = [], SavedFile.digest

        def noted(file: SavedFile, name: str) -> str:
            checked.append(name)
            return digest(file, name)

        monkeypatch.setattr(SavedFile, "digest", noted)
        folder = SharedFolder(tmp_path, processes)
        with folder.exclusive(create=False):
            assert_restored(folder, 2)
        return checked

    found = results(3, work)
    assert sorted(name for names in found for name in names) == sorted(TENSORS)
    assert all(found)


@pytest.mark.parametrize("tensor", ["w", "b", "n"])
def test_damage_that_any_process_finds_is_left_out_by_all(tmp_path: Path, tensor: str) -> None:
    saved_alone(tmp_path)
    newest = CheckpointFolder(tmp_path).paths()[-1]
    content = bytearray(newest.read_bytes())
    content[FileForm.of(numbered(2)).places[tensor]] ^= 1
    newest.write_bytes(content)

    def work(processes: Processes) -> int:
        folder = SharedFolder(tmp_path, processes)
        with folder.exclusive(create=False), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert_restored(folder, 1)
        return sum("000002.safetensors is damaged" in str(each.message) for each in said)

    assert results(3, work) == [1, 0, 0]


@pytest.mark.parametrize("shared", [True, False])
def test_none_that_is_good_is_an_error_in_all(tmp_path: Path, shared: bool) -> None:
    (tmp_path / "second").mkdir()
    saved_alone(tmp_path / "first")
    for path in CheckpointFolder(tmp_path / "first").paths():
        path.write_bytes(path.read_bytes()[:-1])

    def work(processes: Processes) -> str:
        second = processes.number and not shared
        folder = SharedFolder(tmp_path / ("second" if second else "first"), processes)
        with (
            folder.exclusive(create=False),
            pytest.raises(tofu.DataError, match=r"2\.safe.*1\.safe") as found,
        ):
            folder.load()
        return type(found.value).__name__

    assert results(2, work) == ["DataError"] * 2


def test_one_of_another_version_is_an_error_in_all(tmp_path: Path) -> None:
    saved_alone(tmp_path)
    newest = CheckpointFolder(tmp_path).paths()[-1]
    newest.write_bytes(newest.read_bytes().replace(b'"tofu_format":"2"', b'"tofu_format":"3"'))

    def work(processes: Processes) -> str:
        folder = SharedFolder(tmp_path, processes)
        with folder.exclusive(create=False), pytest.raises(tofu.DataError, match="has format 3") as found:
            folder.load()
        return type(found.value).__name__

    assert results(2, work) == ["OtherVersion"] * 2


@pytest.mark.parametrize("transport", ["tcp", "gloo"])
def test_the_first_process_sends_regions_if_the_folder_is_not_shared(tmp_path: Path, transport: str) -> None:
    if transport == "gloo":
        pytest.importorskip("torch")
    saved_alone(tmp_path / "first")
    (tmp_path / "second").mkdir()

    def work(processes: Processes) -> int:
        folder = SharedFolder(tmp_path / ("second" if processes.number else "first"), processes)
        with folder.exclusive(create=False):
            assert_restored(folder, 2)
        return sum(processes.transport.sent_bytes.values())

    asked = 4 * 2 * 3 + 4 * 4 * 1 + 8
    assert results(3, work, transport=transport) == [2 * asked, 0, 0]

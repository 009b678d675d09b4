"""Checkpoints that several processes write into one file, or the first one if they share no folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.runtime.checkpoint import CheckpointFolder, TensorWriter
from tofu.runtime.checkpoint_file import Checkpoint, Form, encode
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

"""Kills aimed at every write: `kill -9` at each operation on files, after any byte of what is written.

A forked process saves over an earlier file and is killed at an operation: while it writes, before it syncs,
renames, syncs the folder, or removes the file before. Afterwards the file is the one before or the new one,
whole, and the next save works.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import numpy as np

import tofu
from tests.machines.test_profile_file import MACHINE, profile
from tofu.errors import TofuError
from tofu.machines.profile_file import save_profile
from tofu.machines.write_machine import save_machine
from tofu.mx import nd
from tofu.partitioner import lower
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.checkpoint_file import Checkpoint
from tofu.runtime.checkpoint_reading import read
from tofu.simulator import simulate
from tofu.support.atomic_files import Files

from .files import graph, network
from .guard import Guard

OPERATIONS = ("write", "sync", "rename", "sync_folder", "remove")
"""The operations on files. Only the oldest checkpoint is removed, so others have no such moment."""

Save = Callable[[Path, int], object]
"""Saves one of two contents."""


def content(path: Path) -> object:
    """Return the bytes of a file, or its arrays: two files of the same arrays differ in their order."""
    return [array.shape for array in nd.load(path)] if path.suffix == ".params" else path.read_bytes()


def kills(numbers: Iterable[int], seed: int, limit: float) -> Guard:
    """Kill one process for each number, at every operation of every writer in turn."""
    guard = Guard(limit)
    guard.counts.update({"torn": 0, "lost": 0})
    writers = all_writers()
    moments = [
        *((name, save, operation) for name, save in writers.items() for operation in OPERATIONS[:-1]),
        *(("checkpoints", None, operation) for operation in OPERATIONS),
    ]
    with tempfile.TemporaryDirectory() as name:
        for number in numbers:
            random = Random(f"{seed} {number}")
            what, save, operation = moments[number % len(moments)]
            folder = Path(name) / str(number)
            folder.mkdir()
            with guard.trial("kill", f"{what} at {operation}"):
                if save is None:
                    _checkpoints(guard, folder, operation, random)
                else:
                    _file(guard, folder / what, save, operation, random)
    return guard


def all_writers() -> dict[str, Save]:
    """Return everything that is saved in one file, by the name of the file."""
    plans = [tofu.partition(graph(), workers) for workers in (2, 4)]
    lines = [simulate(lower(graph(), plan), tofu.machines.load("pcie-8")) for plan in plans]
    symbols = [network(), tofu.sym.Variable("data") + 1]
    arrays = [[nd.ones((size,))] for size in (3, 5000)]
    values = {"fc_weight": np.ones((3, 5), np.float32), "fc_bias": np.ones(3, np.float32)}
    net = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=3, name="fc")
    return {
        "plan.json": lambda path, which: plans[which].save(path),
        "net.json": lambda path, which: symbols[which].save(path),
        "trace.json": lambda path, which: lines[which].save_trace(path),
        "net.params": lambda path, which: nd.save(path, arrays[which]),
        "box.yaml": lambda path, which: save_machine(MACHINE, path),
        "box.profile.json": lambda path, which: save_profile(profile(Path(str(which))), path),
        "net.onnx": lambda path, which: tofu.export_onnx(net, values, path, {"data": (2 + which, 5)}),
    }


def _killed(save: Callable[[], object], operation: str, random: Random) -> bool:
    """Save in a forked process that is killed at an operation; tell whether the moment came."""
    part = random.random()
    child = os.fork()
    if not child:
        _kill_at(operation, part)
        save()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _kill_at(operation: str, part: float) -> None:
    """Kill this process at an operation on files, in the middle of it if it writes."""

    def write(files: Files, path: Path, data: bytes) -> None:
        path.write_bytes(data[: int(len(data) * part)])
        os.kill(os.getpid(), signal.SIGKILL)

    def other(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(Files, operation, write if operation == "write" else other)


def _file(guard: Guard, path: Path, save: Save, operation: str, random: Random) -> None:
    """Kill the saving of a file, and look at what is there."""
    contents = []
    for which in (1, 0):
        save(path, which)
        contents.append(content(path))
    guard.counts["kills"] += _killed(lambda: save(path, 1), operation, random)
    if content(path) not in contents:
        guard.fail("torn", f"{path.name} at {operation}", "neither the file before nor the new one")
    save(path, 1)
    if content(path) != contents[0]:
        guard.fail("lost", f"{path.name} at {operation}", "the next save did not work")


def _checkpoints(guard: Guard, folder: Path, operation: str, random: Random) -> None:
    """Kill the saving of the fourth checkpoint, and continue from what is there."""

    def numbered(number: int) -> Checkpoint:
        return Checkpoint({"w": np.full(4000, number)}, {"number": number})

    kept = CheckpointFolder(folder)
    for number in (1, 2, 3):
        kept.save(numbered(number))
    guard.counts["kills"] += _killed(lambda: kept.save(numbered(4)), operation, random)
    try:
        found = CheckpointFolder(folder).load().state["number"]
        whole = [read(path) for path in CheckpointFolder(folder).paths()]
    except TofuError as error:
        guard.fail("torn", f"checkpoints at {operation}", str(error))
        return
    if found < 3 or len(whole) < 2:
        guard.fail("lost", f"checkpoints at {operation}", f"the newest is number {found}")
    again = CheckpointFolder(folder)
    again.save(numbered(5))
    left = list(folder.glob("*.temporary"))
    if again.load().state["number"] != 5 or left:
        guard.fail("lost", f"checkpoints at {operation}", f"the next save did not work, {left} are left")

"""Everything that is saved is whole, or as it was before, with an error of Tofu's that names the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import DataError, GraphError, MachineError, PlanError, TofuError
from tofu.machines.machine import Level, Machine
from tofu.machines.profile import Host, Profile
from tofu.machines.profile_file import save_profile
from tofu.machines.write_machine import save_machine
from tofu.mx import nd
from tofu.partitioner import Plan, lower, partition
from tofu.partitioner.methods.placement.result import Placement
from tofu.runtime.checkpoint import Checkpoint, CheckpointFolder

from ..file_sizes import files_of_at_most
from ..machines.test_profile_file import KIND

MOST_BYTES = 40
"""Fewer than any of the files has."""


@cache
def graph() -> Graph:
    return tofu.models.get("mlp", batch=4).training_graph()


@cache
def plan() -> Plan:
    return partition(graph(), 2)


def network() -> tofu.Symbol:
    return tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=3, name="fc")


@cache
def placement() -> Placement:
    nodes: networkx.DiGraph[Any] = networkx.DiGraph()
    nodes.add_node("one", seconds=0.1, bytes=1)
    return tofu.place(nodes, "dgx-1-v100", 2)


def exported(path: Path) -> None:
    pytest.importorskip("onnx")
    values = {"fc_weight": np.ones((3, 5), np.float32), "fc_bias": np.ones(3, np.float32)}
    tofu.export_onnx(network(), values, path, {"data": (2, 5)})


MACHINE = Machine("box", (Level("core", 1e9, 1e-6),), ("core0", "core1"), ((0, 1),), 10**9, (KIND,) * 2)

WRITERS: list[tuple[str, Callable[[Path], object], type[TofuError]]] = [
    ("plan.json", lambda path: plan().save(path), PlanError),
    ("net.json", lambda path: network().save(path), GraphError),
    ("box.yaml", lambda path: save_machine(MACHINE, path), MachineError),
    (
        "box.profile.json",
        lambda path: save_profile(Profile("box", Host("p", 2, "2.0", "b", "k"), (), str(path)), path),
        MachineError,
    ),
    (
        "trace.json",
        lambda path: tofu.simulate(lower(graph(), plan()), tofu.machines.load("pcie-8")).save_trace(path),
        TofuError,
    ),
    ("placement.json", lambda path: placement().save(path), PlanError),
    ("net.onnx", exported, DataError),
    ("arrays.params", lambda path: nd.save(path, [nd.ones((20,))]), DataError),
]


@pytest.mark.parametrize(("name", "write", "error"), WRITERS, ids=[name for name, _, _ in WRITERS])
def test_a_full_disk_leaves_the_file_before(
    tmp_path: Path, name: str, write: Callable[[Path], object], error: type[TofuError]
) -> None:
    write(tmp_path / name)  # loops are compiled and kept before the disk is full
    path = tmp_path / name
    path.write_text("the one before")
    with files_of_at_most(MOST_BYTES), pytest.raises(error, match=rf"{name}.*File too large"):
        write(path)
    assert path.read_text() == "the one before"
    assert list(tmp_path.iterdir()) == [path]
    write(path)
    assert path.stat().st_size > MOST_BYTES
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "write", "error"), WRITERS, ids=[name for name, _, _ in WRITERS])
@pytest.mark.parametrize("kind", ["pipe", "folder", "nul"])
def test_only_files_are_replaced(
    tmp_path: Path, name: str, write: Callable[[Path], object], error: type[TofuError], kind: str
) -> None:
    """A pipe, a device or a folder of that name stays; the error says why nothing was written."""
    path = tmp_path / (f"nul\0{name}" if kind == "nul" else name)
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "folder":
        path.mkdir()
    with pytest.raises(error, match=r"pipe, socket or device|directory|not a name of a file"):
        write(path)
    assert kind == "nul" or path.is_fifo() or path.is_dir()
    assert list(tmp_path.iterdir()) == ([] if kind == "nul" else [path])


@pytest.mark.parametrize("most_bytes", [0, 10, 500, 900])
def test_a_full_disk_keeps_the_checkpoint_before(tmp_path: Path, most_bytes: int) -> None:
    """The end comes at any byte of the next one, and does not stay on the disk either."""
    kept = Checkpoint({"w": np.arange(100.0)}, {"number": 1})
    folder = CheckpointFolder(tmp_path)
    first = folder.save(kept)
    assert first.stat().st_size > 900
    with files_of_at_most(most_bytes), pytest.raises(DataError, match="File too large"):
        folder.save(Checkpoint({"w": np.zeros(100)}, {"number": 2}))
    assert list(tmp_path.iterdir()) == [first]
    assert CheckpointFolder(tmp_path).load().state == {"number": 1}
    assert folder.save(kept).name == "checkpoint-000002.safetensors"

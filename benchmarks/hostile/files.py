"""Damaged files of every format: each reader accepts a file or refuses it with one of Tofu's errors, soon.

The same number of files is made of every format. Nothing but the file is opened, and nothing is executed. The
memory of the process is limited, so that what would expand without bound is an error of the system.
"""

from __future__ import annotations

import gzip
import json
import pickle
import resource
import struct
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import networkx
import numpy as np

import tofu
from tests.machines.test_profile_file import MACHINE, profile
from tests.partitioner.methods.autodist.embedded import embedded as embedded_network
from tests.partitioner.methods.autodist.test_autodist_text import TEXT
from tofu.dataflow.graph import Graph
from tofu.errors import TofuError
from tofu.machines.machine import Machine
from tofu.machines.machine_file import load_machine
from tofu.machines.profile_file import load_profile, save_profile
from tofu.machines.write_machine import save_machine
from tofu.models.files import read
from tofu.models.files.idx import read_idx
from tofu.mx import nd
from tofu.partitioner.methods.autodist.strategy_file import read_strategy
from tofu.partitioner.methods.placement.graph_file import read_graph
from tofu.runtime import checkpoint_file, checkpoint_reading

from .damage import changed, damaged
from .guard import Guard

MOST_MEMORY_BYTES = 6 << 30
WORKERS = 4

LEVELS = (
    b"machine: m\nlevels: [{name: gpu, bandwidth: 1 GB/s, latency: 2 us}]\n"
    b"devices: [a0, a1, b0, b1]\nmemory: 16 GB\n"
)
STRATEGIES = (
    b'strategy: 1\nvariables:\n  "*_bias": {sync: all-reduce}\n  "*_weight": {sync: ps, worker: 1}\n',
    b'strategy: 1\nvariables:\n  "*": {sync: all-reduce, cut: {axis: 0, parts: 2}}\n',
)
WRITTEN = (
    b'operations: {"*": everywhere}\ntensors: {"*": everywhere}\n',
    b'operations: {"*": {worker: 1}}\ntensors: {"*": {worker: 1}}\n',
    b'operations: {"fc1*": n, "*": everywhere}\ntensors: {data: 0, "*": {workers: [0, 1, 2, 3]}}\n',
)
"""Plans that a person writes."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, with files of it that are whole."""

    name: str
    """The name of a file."""

    whole: tuple[bytes, ...]
    """Contents of whole files."""

    reader: Callable[[Path], object]
    """Reads a file."""


def files(numbers: Iterable[int], seed: int, limit: float) -> Guard:
    """Damage one file of every format for each number."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # arrays in text and headers of .npz are compiled, as literals, and not executed
        guard = Guard(limit, folder, allowed=frozenset({"compile"}))
        formats = all_formats(folder)
        for each in formats:
            for whole in each.whole:
                path = folder / each.name
                path.write_bytes(whole)
                each.reader(path)  # modules are imported before they are watched
                path.write_bytes(whole[:1])
                _outcome(each, path)
                path.unlink()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        for number in numbers:
            random = Random(f"{seed} {number}")
            for each in formats:
                content = _content(random, random.choice(each.whole))
                path = folder / each.name
                path.write_bytes(content)
                with guard.trial(each.name, repr(content[:2000])), guard.watching():
                    guard.counts[f"{_outcome(each, path)} {each.name}"] += 1
                path.unlink()
    return guard


def _outcome(found: Format, path: Path) -> str:
    try:
        found.reader(path)
    except TofuError:
        return "refused"
    return "accepted"


def _content(random: Random, whole: bytes) -> bytes:
    """Damage bytes, or entries if the file is JSON."""
    if whole.startswith(b"{") and random.random() < 0.6:
        return json.dumps(changed(random, json.loads(whole))).encode()
    return damaged(random, whole)


def all_formats(folder: Path) -> list[Format]:
    """Return every format that users name files of."""
    net = network()
    values = {"fc_weight": np.ones((3, 5), np.float32), "fc_bias": np.ones(3, np.float32)}

    def saved(name: str, save: Callable[[Path], object]) -> bytes:
        path = folder / name
        save(path)
        content = path.read_bytes()
        path.unlink()
        return content

    data = np.arange(40, dtype=np.float32).reshape(10, 4)
    arrays = saved("data.npz", lambda path: np.savez(path, data=data, label=np.arange(10) % 2))
    packed = saved("data.npz", lambda path: np.savez_compressed(path, data=data, label=np.arange(10) % 2))
    batch = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
    state = {"settings": {}, "standing": {"batch": 0}}
    kept = checkpoint_file.encode(checkpoint_file.Checkpoint(values, state))
    idx = struct.pack(">BBBBII", 0, 0, 8, 2, 4, 4) + bytes(range(16))
    placed: networkx.DiGraph[Any] = networkx.DiGraph()
    placed.add_node("one", seconds=0.1, bytes=10, persistent_bytes=5)
    placed.add_node("two", seconds={"v100": 0.1}, colocate="a")
    placed.add_edge("one", "two", bytes=4)
    nodes = json.dumps(networkx.node_link_data(placed, edges="edges")).encode()
    fc = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=3, name="fc")
    onnx = saved("net.onnx", lambda path: tofu.export_onnx(fc, values, path, {"data": (2, 5)}))
    box = saved("box.yaml", lambda path: save_machine(MACHINE, path))
    times = saved("box.profile.json", lambda path: save_profile(profile(path), path))
    written = saved_plans(folder)
    return [
        Format("data.npz", (arrays, packed), read),
        Format("images-idx2-ubyte", (idx,), read_idx),
        Format("images-idx2-ubyte.gz", (gzip.compress(idx, mtime=0),), read_idx),
        Format("data_batch_1", (pickle.dumps(batch, 2),), read),
        Format("tale.txt", ("It was a dark and stormy night, and \u00f6ther tales.\n".encode() * 9,), read),
        Format("checkpoint-000001.safetensors", (kept,), checkpoint_reading.read),
        Format("net.params", (saved("net.params", lambda path: nd.save(path, [nd.ones((3,))])),), nd.load),
        Format("net.json", (net.tojson().encode(), net.tojson(dialect="1.x").encode()), tofu.sym.load),
        Format("text.tdl", (b"def f(a):\n    return lambda i, j: Sum(lambda k: a[i, k + j])\n",), tofu.load),
        Format("plan.json", written, lambda path: tofu.Plan.load(path).verify(graph())),
        Format("box.yaml", (box, LEVELS), lambda path: load_machine(str(path))),
        Format("box.profile.json", (times,), lambda path: load_profile(path, "box")),
        Format("strategy.yaml", STRATEGIES, lambda path: read_strategy(path, embedded(), 3)),
        Format("strategy.pbtxt", (TEXT.encode(),), lambda path: read_strategy(path, embedded(), 4)),
        Format("written.yaml", WRITTEN, composed),
        Format("graph.json", (nodes,), place_file),
        Format("net.onnx", (onnx,), tofu.from_onnx),
    ]


embedded = cache(embedded_network)


@cache
def graph() -> Graph:
    """Return the training graph of the network."""
    return tofu.training_graph(network(), {"data": (8, 5), "softmax_label": (8,)}, "adam")


def network() -> tofu.Symbol:
    """Return a network of two layers."""
    first = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=4, name="fc1")
    active = tofu.sym.Activation(first, act_type="relu", name="act")
    second = tofu.sym.FullyConnected(active, num_hidden=4, name="fc2")
    return tofu.sym.SoftmaxOutput(second, name="softmax")


def composed(path: Path) -> tofu.Plan:
    """Return the plan that a file of a person states."""
    return tofu.partition(graph(), WORKERS, method="manual", layouts=path)


def saved_plans(folder: Path) -> tuple[bytes, ...]:
    """Return plan files: plans in steps, and plans in other forms."""
    path = folder / "written.yaml"
    plans = [tofu.partition(graph(), WORKERS), tofu.partition(graph(), WORKERS, "data-parallel")]
    for text in WRITTEN:
        path.write_bytes(text)
        plans.append(composed(path))
    path.unlink()
    found = []
    for plan in plans:
        plan.save(folder / "plan.json")
        found.append((folder / "plan.json").read_bytes())
    (folder / "plan.json").unlink()
    return tuple(found)


def place_file(path: Path) -> object:
    """Place the nodes of a graph file."""
    return tofu.place(read_graph(path), machine(), 2)


@cache
def machine() -> Machine:
    """Return the machine that nodes are placed on."""
    return tofu.machines.load("dgx-1-v100")

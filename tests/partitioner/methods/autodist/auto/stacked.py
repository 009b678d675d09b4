"""Equal layers, and a machine one of whose links is slow and all others of which limit each message."""

from __future__ import annotations

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.training import training_graph
from tofu.machines.machine import Machine
from tofu.machines.machine_file import decode_machine


def stacked(layers: int = 8, width: int = 1024, batch: int = 2048) -> Graph:
    """Return the training graph of products of equal size."""
    with NameScope():
        net = sym.Variable("data")
        for number in range(layers):
            net = sym.FullyConnected(net, num_hidden=width, no_bias=True, name=f"fc{number}")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (batch, width), "label": (batch, width)}
    return training_graph(net, shapes, sgd(momentum=0))


def star(
    workers: int, slow: str | None = "1.25 GB/s", rails: int = 4, latency: str | int = "7 us"
) -> Machine:
    """Return devices around a switch; the link of the last one is slow, and others have rails."""
    links = []
    for number in range(workers):
        link: dict[str, object] = {
            "between": [f"d{number}", "switch"],
            "bandwidth": "10 GB/s",
            "latency": latency,
        }
        is_slow = slow is not None and number == workers - 1
        links.append({**link, "bandwidth": slow} if is_slow else {**link, "rails": rails})
    devices = [f"d{number}" for number in range(workers)]
    return decode_machine({"machine": "star", "kind": "p100", "devices": devices, "links": links})

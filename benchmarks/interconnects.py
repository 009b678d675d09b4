"""TensorOpt's figures 6 to 8: frontiers over four interconnects, by devices, and data-parallel memory.

    python -m benchmarks.interconnects [--only links] [--save benchmarks/results/frontiers.json]

`links` are the rows of `benchmarks.frontiers` over 8 devices, each a V100, whose links are those of four
machines: PCIe switches and QPI, two nodes of NVLinks with 100 Gb/s between them, NVLinks, and NVSwitch.
`devices` has the least time, and the least time within 16 GB, over several numbers of devices of dgx-1-v100,
next to data parallelism. `data_parallel` has its memory on several numbers of devices next to the model
`p + (M - p) / n`, where `p` are the bytes that last and that every device has whole, and `M` is the memory of
one device. `error` is how far the model is from the memory, relative to the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import tofu
from tofu.analyzer.indices.region import volume
from tofu.dataflow.graph import Graph
from tofu.partitioner import Plan, lower, partition, peak_bytes

from .frontiers import row
from .record import Row, record_parts

MODELS = {"wresnet-16-4": 64, "rnn-2-4096": 256, "gpt-2-512": 32}
"""The models, and the batch of each."""

LINKS = ("pcie-8", "2x-p100-node", "dgx-1-v100", "dgx-a100")
"""The machines that have the links, slow ones first."""

DEVICES = {2: "dgx-1-v100", 4: "dgx-1-v100", 8: "dgx-1-v100", 16: "2x-dgx-1-v100"}
"""The machine with each number of devices."""

SEVERAL = "wresnet-16-4"
"""The model that is searched over all numbers of devices."""

MEMORY = 16 * 10**9
"""The memory of a V100."""


def links() -> Iterator[Row]:
    """Yield the frontier of each model over each interconnect."""
    device = tofu.machines.load("dgx-1-v100").kinds[0]
    for model, batch in MODELS.items():
        for name in LINKS:
            machine = tofu.machines.load(name)
            equal = replace(machine, kinds=(device,) * len(machine.devices), memory_bytes=MEMORY)
            yield row(model, batch, equal, 8)


def devices() -> Iterator[Row]:
    """Yield the least times over several numbers of devices."""
    graph = tofu.models.get(SEVERAL, MODELS[SEVERAL]).training_graph()
    for workers, name in DEVICES.items():
        found = tofu.frontier(graph, workers, name, "unlimited")
        fitting = [point.seconds for point in found.points if point.peak_bytes <= MEMORY]
        plan = partition(graph, workers, "data-parallel")
        yield {
            "model": SEVERAL,
            "workers": workers,
            "machine": name,
            "seconds": found.points[-1].seconds,
            "peak_bytes": found.points[-1].peak_bytes,
            "fitting_seconds": min(fitting, default=None),
            "data_parallel_seconds": tofu.simulate(lower(graph, plan), name).seconds,
            "data_parallel_bytes": peak_bytes(graph, plan),
        }


def data_parallel() -> Iterator[Row]:
    """Yield the memory of data parallelism next to its model."""
    for model, batch in MODELS.items():
        graph = tofu.models.get(model, batch).training_graph()
        alone = peak_bytes(graph, partition(graph, 1))
        for workers in DEVICES:
            plan = partition(graph, workers, "data-parallel")
            taken, whole = peak_bytes(graph, plan), replicated_bytes(graph, plan)
            modelled = whole + (alone - whole) / workers
            yield {
                "model": model,
                "workers": workers,
                "peak_bytes": taken,
                "modelled_bytes": round(modelled),
                "error": round(modelled / taken - 1, 4),
            }


def replicated_bytes(graph: Graph, plan: Plan) -> int:
    """Return the bytes of the tensors that live across iterations and that every worker holds whole."""
    return sum(
        tensor.itemsize * prod(tensor.shape)
        for tensor in graph.tensors
        if tensor.role.persistent and tensor.alias is None
        if (volume(plan.layouts[tensor.name].regions) == prod(tensor.shape)).all()
    )


if __name__ == "__main__":
    record_parts({"links": links, "devices": devices, "data_parallel": data_parallel}, __doc__)

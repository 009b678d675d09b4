"""Search time next to TensorOpt's table 3: frontiers at 16 devices of models of its table 1.

python -m benchmarks.table3 [--only models] --save benchmarks/results/table3.json

The paper's table 1 has the size of the parameters, in GiB (VGG16 has 0.52), and a batch of 256. It does not
state depths, widths and lengths of sequences. The models here are of these sizes, and from the zoo:

    WideResNet    7.3 GiB    `wresnet-28-73`, images of 32 x 32 pixels as in the publication that it cites
    RNN           108 GiB    `rnn-4-32128`, four layers of LSTM cells and 20 steps
    Transformer   9.7 GiB    `transformer-6-3840`, a translator of six layers each, sentences of 128 words

`models` are these at 16 devices, two machines as in the paper. `modelled` are the same by the cost model of
the paper, which adds up estimates, and without computing activations again: the work that the paper times.
A row's `taken` is the simulated time and the arena of each point, whose seconds are included. `devices` and
`layers` have the time of the search at several sizes, and its exponent: the slope of the logarithms. Seconds
are those of the processor, of all processes together. The paper's are those of 48 cores, by its linear
dynamic program and by elimination alone, and those of one core, by the former.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

import tofu
from tofu.dataflow.graph import Graph, Role

from .frontiers import gaps, searched
from .record import Row, record_parts

BATCH = 256

PAPER = {
    "WideResNet": ("wresnet-28-73", 7.3, (1292, 19666, 17432)),
    "RNN": ("rnn-4-32128", 108, (0.28, 1.78, 0.40)),
    "Transformer": ("transformer-6-3840", 9.7, (201, 3030, 1535)),
}
"""For each model of the paper the one of the zoo, the GiB of its parameters, and the paper's seconds."""

MACHINES = {4: "dgx-1-v100", 8: "dgx-1-v100", 16: "2x-dgx-1-v100", 32: "4x-dgx-1-v100"}
"""The machine with each number of devices."""

MODELLED: dict[str, Any] = {"cost_model": "tensoropt", "recompute": (1,)}
"""The paper's cost model; it computes no activations again."""

SMALL = "wresnet-10-10"
"""The model that is searched over all numbers of devices."""

DEPTHS = tuple(f"wresnet-{depth}-10" for depth in (10, 16, 28))
"""Models that differ in their depth."""


def models() -> Iterator[Row]:
    """Yield the frontier of each model, next to the paper's figures."""
    yield from _next_to_paper()


def modelled() -> Iterator[Row]:
    """Yield the frontier of each model by the paper's cost model, next to the paper's figures."""
    yield from _next_to_paper(**MODELLED)


def _next_to_paper(**settings: Any) -> Iterator[Row]:
    for name, (model, size, seconds) in PAPER.items():
        graph, row = _row(model, 16, **settings)
        own = [t for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None]
        row["parameter_gib"] = round(sum(t.itemsize * prod(t.shape) for t in own) / 2**30, 2)
        row["paper"] = {
            "model": name,
            "parameter_gib": size,
            "seconds_48_cores": seconds[0],
            "seconds_elimination": seconds[1],
            "seconds_1_core": seconds[2],
        }
        yield row


def devices() -> Iterator[Row]:
    """Yield the seconds over several numbers of devices."""
    rows = [_row(SMALL, workers)[1] for workers in MACHINES]
    yield from rows
    yield _exponent(rows, "workers")


def layers() -> Iterator[Row]:
    """Yield the seconds over several depths, on 8 devices."""
    rows = [_row(model, 8)[1] for model in DEPTHS]
    yield from rows
    yield _exponent(rows, "operations")


def _row(model: str, workers: int, **settings: Any) -> tuple[Graph, Row]:
    machine = tofu.machines.load(MACHINES[workers])
    graph, found, seconds = searched(model, BATCH, machine, workers, **settings)
    taken = [point.taken for point in found.points if point.taken is not None]
    return graph, {
        "model": model,
        "batch": BATCH,
        "workers": workers,
        "machine": machine.name,
        "operations": len(graph.operations),
        "seconds": round(seconds, 1),
        "points": [[p.seconds, p.peak_bytes] for p in found.points],
        "lower": [[p.seconds, p.peak_bytes] for p in found.lower],
        "gap": gaps(found),
        **({"taken": [[each.seconds, each.peak_bytes] for each in taken]} if taken else {}),
    }


def _exponent(rows: list[Row], size: str) -> Row:
    logs = [np.log([row[key] for row in rows]) for key in (size, "seconds")]
    return {"in": size, "exponent": round(float(np.polyfit(*logs, 1)[0]), 2)}


if __name__ == "__main__":
    for settings in ({}, MODELLED):
        searched("mlp", None, tofu.machines.load("dgx-1-v100"), 2, **settings)  # compiles loops
    record_parts({"models": models, "modelled": modelled, "devices": devices, "layers": layers}, __doc__)

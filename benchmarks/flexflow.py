"""FlexFlow's models on the clusters of its figure 5, simulated: its search and ours next to other plans.

python -m benchmarks.flexflow [--model AlexNet] [--cluster P100] [--devices 16] [--method anneal]
                              [--seconds 30] [--proposals N] [--save benchmarks/results/flexflow.json]

Models are those of its Table 4 with 64 samples a device (AlexNet: 256), as far as they are known: recurrent
networks have 20 steps, where the paper has 40, and vocabularies of 10,000 words; NMT has 32,000, and
attention by products. Chains of both searches have the same budget, seconds or proposals, and their rows say
which. Rows that the file has already are passed over. `search_seconds` is the processor time of the whole
search, starts included. `compute_ms` is the time of all tasks together. All times are simulated, from
estimated times of operators.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.rnn import LSTMCell, SequentialRNNCell
from tofu.errors import TofuError
from tofu.machines.machine import Machine
from tofu.models import recurrent
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.simulation import simulation
from tofu.simulator.times import NANOSECONDS, task_times

from .machine import described
from .record import keep

STEPS = 20
WORDS = 10_000
NMT_WORDS = 32_000
CLUSTERS = {"P100": "p100-node", "K80": "k80-node"}
BASELINES = ("data-parallel", "one-weird-trick", "wu-2016", "recursive", "refine")
SEARCHES = ("flexflow", "anneal")
CELL = ("model", "cluster", "devices", "method")


def zoo(name: str) -> Callable[[int], Any]:
    return lambda batch: tofu.models.get(name, batch=batch).training_graph()


def text_classifier(batch: int) -> Any:
    """RNNTC: four LSTM layers of 1,024, and a softmax of the last output."""
    net = recurrent.rnn(layers=4, hidden=1024, steps=STEPS, classes=2)
    return tofu.training_graph(net, {"data": (batch, STEPS, 1024), "softmax_label": (batch,)})


def language_model(batch: int) -> Any:
    """RNNLM: two LSTM layers of 2,048, and a softmax at each step."""
    net = recurrent.language_model(recurrent.lstm, 2, 2048, STEPS, 2048, WORDS)
    return tofu.training_graph(net, {"data": (batch, STEPS), "softmax_label": (batch, STEPS)})


def translation(batch: int) -> Any:
    """NMT: two LSTM layers of 1,024 for each language, attention, and a softmax at each step."""
    hidden = 1024
    read, spoken = (
        sym.Embedding(sym.Variable(name), input_dim=NMT_WORDS, output_dim=hidden, name=f"{name}_embed")
        for name in ("data", "target")
    )
    encoder, decoder = SequentialRNNCell(), SequentialRNNCell()
    for layer in range(2):
        encoder.add(LSTMCell(hidden, prefix=f"encoder_l{layer}_"))
        decoder.add(LSTMCell(hidden, prefix=f"decoder_l{layer}_"))
    heard, states = encoder.unroll(STEPS, read, merge_outputs=True)
    said, _ = decoder.unroll(STEPS, spoken, begin_state=states, merge_outputs=True)
    scores = sym.batch_dot(said, heard, transpose_b=True, name="scores")
    weights = sym.softmax(scores, axis=-1, name="attention")
    context = sym.batch_dot(weights, heard, name="context")
    rows = sym.Reshape(sym.Concat(said, context, dim=2, name="both"), shape=(-1, 2 * hidden), name="rows")
    mixed = sym.FullyConnected(rows, num_hidden=hidden, name="mix")
    mixed = sym.Activation(mixed, act_type="tanh", name="mixed")
    words = sym.FullyConnected(mixed, num_hidden=NMT_WORDS, name="pred")
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,), name="label")
    shapes = dict.fromkeys(("data", "target", "softmax_label"), (batch, STEPS))
    return tofu.training_graph(sym.SoftmaxOutput(words, label, name="softmax"), shapes)


MODELS: dict[str, tuple[Callable[[int], Any], int]] = {
    "AlexNet": (zoo("alexnet"), 256),
    "Inception-v3": (zoo("inception-v3"), 64),
    "ResNet-101": (zoo("resnet-101"), 64),
    "RNNTC": (text_classifier, 64),
    "RNNLM": (language_model, 64),
    "NMT": (translation, 64),
}
"""The models, and the samples of a device."""


def cluster_of(cluster: str, devices: int) -> Machine:
    """Return a cluster with some of its devices."""
    nodes = devices // 4
    return tofu.machines.load(CLUSTERS[cluster] if nodes == 1 else f"{nodes}x-{CLUSTERS[cluster]}")


def computing_seconds(graph: Graph, plan: Plan, machine: Machine) -> float:
    """Return the time of all tasks together."""
    times, found = task_times(graph, machine, plan.workers), 0
    for operation in graph.operations:
        listed = plan.tasks[operation.name]
        boxes = np.array([task.box for task in listed], np.int64).reshape(len(listed), -1, 2)
        found += int(times(operation, np.array([task.worker for task in listed]), boxes).sum())
    return found / NANOSECONDS


@functools.lru_cache(maxsize=1)
def graph_of(model: str, devices: int) -> Graph:
    make, samples = MODELS[model]
    return make(samples * devices)


@functools.lru_cache(maxsize=len(BASELINES))
def baseline(model: str, devices: int, method: str) -> tuple[Plan, float]:
    """Return a plan that needs no machine, and the seconds in which it was found."""
    begin = time.process_time()
    plan = tofu.partition(graph_of(model, devices), devices, method, memory="unlimited")
    return plan, time.process_time() - begin


def searched(
    model: str, devices: int, method: str, machine: Machine, budget: dict[str, Any]
) -> tuple[Plan, float]:
    """Return the plan of a search on a machine, and the seconds in which it was found."""
    begin = time.process_time()
    plan = tofu.partition(
        graph_of(model, devices), devices, method, memory="unlimited", machine=machine, **budget
    )
    return plan, time.process_time() - begin


def row(model: str, cluster: str, devices: int, method: str, budget: dict[str, Any]) -> dict[str, Any]:
    """Return what one method finds; raise `TofuError` if it cannot make a plan."""
    machine, of_search = cluster_of(cluster, devices), method in SEARCHES
    if of_search:
        plan, spent = searched(model, devices, method, machine, budget)
    else:
        plan, spent = baseline(model, devices, method)
    graph = graph_of(model, devices)
    timeline = simulation(graph, plan, machine)
    return {
        "model": model,
        "cluster": cluster,
        "devices": devices,
        "operations": len(graph.operations),
        "method": method,
        **(budget if of_search else {}),
        "step_ms": round(timeline.seconds * 1e3, 3),
        "bound_ms": round(timeline.bound_seconds * 1e3, 3),
        "moved_mb": round(plan.cost_bytes / 1e6, 1),
        "compute_ms": round(computing_seconds(graph, plan, machine) * 1e3, 3),
        "search_seconds": round(spent, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--cluster", choices=CLUSTERS, action="append")
    parser.add_argument("--devices", type=int, action="append")
    parser.add_argument("--method", choices=(*BASELINES, *SEARCHES), action="append")
    parser.add_argument("--seconds", type=float, help="for the chains of each search; 30 by default")
    parser.add_argument("--proposals", type=int, help="of each chain, instead of seconds")
    parser.add_argument("--save", type=Path, help="add the results to this file, after each row")
    asked = parser.parse_args()
    given = {"seconds": asked.seconds, "proposals": asked.proposals}
    budget = {name: each for name, each in given.items() if each is not None} or {"seconds": 30.0}
    found: list[dict[str, Any]] = []
    if asked.save is not None and asked.save.exists():
        found = json.loads(asked.save.read_text(encoding="utf-8"))["results"]
    known = {tuple(each[name] for name in CELL) for each in found}
    cells = itertools.product(
        asked.devices or (4, 16, 64),
        asked.model or MODELS,
        asked.cluster or CLUSTERS,
        asked.method or (*BASELINES, *SEARCHES),
    )
    for devices, model, cluster, method in cells:
        if (model, cluster, devices, method) in known:
            continue
        try:
            made = row(model, cluster, devices, method, budget)
        except TofuError as error:
            print(model, devices, method, error, flush=True)
            continue
        print(json.dumps(made), flush=True)
        found.append(made)
        keep({**described(), "results": found}, asked.save)


if __name__ == "__main__":
    main()

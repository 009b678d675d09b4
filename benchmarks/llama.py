"""LLaMA-like models of 1 and 8 billion parameters on 8 and 64 H100: plans of Tofu, ZeRO and Megatron.

Run from the root of the checkout, where the extra `torch` is installed:

    python -m benchmarks.llama benchmarks/results/llama.json [SIZE WORKERS]

The module is plain PyTorch on the meta device, so no weight has memory. A device has one sequence of 2,048
words. For each plan: the bytes that move in one iteration, the largest arena, the simulated step, and the
processor seconds of the search, of this machine. Times of operators are estimated from counts of operations
and bytes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

import tofu
from tofu.models.torch_module import of_module
from tofu.partitioner.lowering.arenas import Arenas

MACHINE = "dgx-h100"
DEVICES = 8
"""The devices of one machine; more workers are on several, joined by their network."""

WORDS = 2048
METHODS = ("zero-3", "megatron", "recursive", "refine", "recursive time", "refine time")
"""Methods, with the objective if that is not the bytes that move: the time over the links."""

ONE_MACHINE = ("exact",)
"""Methods that are tried on the devices of one machine alone."""


@dataclass(frozen=True)
class Size:
    """The sizes of a model."""

    width: int
    """The elements of a position."""

    hidden: int
    """The elements of a position inside the feed-forward layers."""

    layers: int
    """The number of layers."""

    heads: int
    """The heads of queries."""

    groups: int
    """The heads of keys and values."""

    vocabulary: int = 128256
    """The number of tokens."""


SIZES = {"1B": Size(2048, 8192, 16, 32, 8), "8B": Size(4096, 14336, 32, 32, 8)}
"""The sizes of LLaMA 3.2 1B, whose output layer is of its own here, and of LLaMA 3.1 8B."""


class Attention(torch.nn.Module):
    """Causal attention with rotary positions; several heads share keys and values."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size, self.head = size, size.width // size.heads
        self.query = torch.nn.Linear(size.width, size.width, bias=False)
        self.key = torch.nn.Linear(size.width, size.groups * self.head, bias=False)
        self.value = torch.nn.Linear(size.width, size.groups * self.head, bias=False)
        self.out = torch.nn.Linear(size.width, size.width, bias=False)

    def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
        batch, words, width = x.shape
        q, k, v = (
            layer(x).view(batch, words, -1, self.head).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        q, k = (rotated(each, cosine, sine) for each in (q, k))
        times = self.size.heads // self.size.groups
        k, v = (each.repeat_interleave(times, dim=1) for each in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, words, width))


def rotated(x: Any, cosine: Any, sine: Any) -> Any:
    """Turn pairs of features by the angles of their positions."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class Block(torch.nn.Module):
    """Attention and a gated layer, each on top of a normalisation."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = torch.nn.RMSNorm(size.width)
        self.attention = Attention(size)
        self.gated_norm = torch.nn.RMSNorm(size.width)
        self.gate = torch.nn.Linear(size.width, size.hidden, bias=False)
        self.up = torch.nn.Linear(size.width, size.hidden, bias=False)
        self.down = torch.nn.Linear(size.hidden, size.width, bias=False)

    def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        y = self.gated_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    """A decoder that returns its loss."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.head = size.width // size.heads
        self.embed = torch.nn.Embedding(size.vocabulary, size.width)
        self.layers = torch.nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = torch.nn.RMSNorm(size.width)
        self.scores = torch.nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, words: Any, label: Any) -> Any:
        angles = 500000.0 ** (-torch.arange(0, self.head, 2) / self.head)
        turned = torch.outer(torch.arange(words.shape[1]).float(), angles)
        cosine, sine = (f(torch.cat((turned, turned), -1)) for f in (torch.cos, torch.sin))
        x = self.embed(words)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        scores = self.scores(self.norm(x))
        return functional.cross_entropy(scores.flatten(0, 1), label.flatten())


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its processor seconds."""
    start = time.process_time()
    return work(), round(time.process_time() - start, 1)


def measure(size: str, workers: int, words: int = WORDS) -> dict[str, Any]:
    """Read one model, and plan it by each method."""
    with torch.device("meta"):
        module = Llama(SIZES[size])
    batch = torch.zeros(workers, words, dtype=torch.long)
    model, read = timed(lambda: of_module(f"llama-{size}", module, (batch, batch)))
    graph, made = timed(model.training_graph)
    found: dict[str, Any] = {
        "parameters": sum(p.numel() for p in module.parameters()),
        "operations": len(graph.operations),
        "read_seconds": read,
        "graph_seconds": made,
        "plans": {},
    }
    print(size, workers, found, flush=True)
    machine = MACHINE if workers <= DEVICES else f"{workers // DEVICES}x-{MACHINE}"
    arenas = Arenas(graph)
    for label in (*METHODS, *(ONE_MACHINE if workers <= DEVICES else ())):
        method, *objective = label.split()
        others = {"machine": machine, "objective": objective[0]} if objective else {}
        plan, seconds = timed(
            lambda: tofu.partition(graph, workers, method, memory="unlimited", **others)  # noqa: B023
        )
        peak, measured = timed(lambda: arenas.largest(plan))  # noqa: B023
        step, simulated = timed(lambda: tofu.partitioner.simulation(graph, plan, machine).seconds)  # noqa: B023
        found["plans"][label] = {
            "method": plan.method,
            "bytes": plan.cost_bytes,
            "bound_bytes": plan.lower_bound_bytes,
            "peak_bytes": peak,
            "step_seconds": step,
            "search_seconds": seconds,
            "memory_seconds": measured,
            "simulation_seconds": simulated,
        }
        print(label, found["plans"][label], flush=True)
    return found


def main(path: str, *only: str) -> None:
    results: dict[str, Any] = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    results |= {"machine": MACHINE, "words": WORDS, "torch": torch.__version__}
    for size in SIZES:
        for workers in (8, 64):
            if not only or only == (size, str(workers)):
                results[f"{size} {workers}"] = measure(size, workers)
                Path(path).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

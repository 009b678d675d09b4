"""Training steps compared with those of MXNet and PyTorch, one thread each, in one run.

python -m benchmarks.peers [--mxnet PYTHON] [--torch PYTHON] [--numpy PYTHON] [--workers 1 8]
                           [--native] [--merge] [--rounds 15] [--instructions avx2] [--save FILE]

Every contender is a separate process on the same core, with one BLAS and one OpenMP thread; all start
from the same weights, train on the same batch and say their losses, which must agree. They take turns, so
that whatever else the machine does meets all alike, and processor time is compared, since wall time would
count what others do. Several workers of Tofu share its one thread. A peer is a Python interpreter that has
it installed; one that is not named is left out, and said to be. `--numpy` names one that has Tofu without the
extra `cpu`. With `--native` Tofu also takes turns with itself, computing by kernels in C. With `--merge` it
does so with merged operations as well, without a limit of memory.

Variables that tell libraries how to compute are removed from the environment of the contenders. Each says
for which core or instructions its library chose code, if the library tells.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environment import INSTRUCTIONS, compared, limited_compiler
from benchmarks.machine import described
from benchmarks.record import keep

ROOT = Path(__file__).resolve().parents[1]
WARM_UP = 2
AGREEMENT = 1e-3
"""How much the first losses may differ, relatively: more, and the steps would not be the same."""

BENCHMARKS: dict[str, dict[str, Any]] = {
    "GPT-2": {
        "model": "gpt-4-256",
        "batch": 8,
        "family": "transformer",
        "options": {"steps": 128, "vocabulary": 4096, "heads": 4, "dropout": 0.0},
        "output": "softmax",
        "peers": {"torch": ("plain", "fused")},
    },
    "LSTM": {
        "model": "rnn-2-512",
        "batch": 32,
        "family": "recurrent",
        "hidden": 512,
        "layers": 2,
        "steps": 20,
        "output": "softmax",
        "peers": {"mxnet": ("graph", "fused"), "torch": ("plain",)},
    },
    "ResNet-50": {
        "model": "wresnet-50-1",
        "batch": 8,
        "family": "residual",
        "output": "softmax",
        "peers": {"mxnet": ("graph",), "torch": ("plain", "channels_last")},
    },
    "WRN-16-4": {
        "model": "wresnet-16-4",
        "batch": 16,
        "family": "residual",
        "output": "softmax",
        "peers": {"mxnet": ("graph",), "torch": ("plain", "channels_last")},
    },
}
WORDS = {"native": "C", "merge": "merged"}
"""Further options of Tofu's process, and their names in tables."""

ALONE = "Tofu, 1 worker, NumPy alone"
NAMES = {
    ("mxnet", "graph"): "MXNet",
    ("mxnet", "fused"): "MXNet, RNN operator",
    ("torch", "plain"): "PyTorch",
    ("torch", "channels_last"): "PyTorch, channels last",
    ("torch", "fused"): "PyTorch, attention in one",
}


@dataclass
class Contender:
    """A process that runs a training step when asked to."""

    name: str
    """The name in the table."""

    process: subprocess.Popen[str]
    """The process, which reads commands and writes answers, one per line."""

    facts: dict[str, Any] = field(default_factory=dict)
    """The facts that the process reports when it starts, such as versions."""

    processor: list[float] = field(default_factory=list)
    """The processor time of each step, in seconds."""

    wall: list[float] = field(default_factory=list)
    """The wall time of each step, in seconds."""

    losses: list[float] = field(default_factory=list)
    """The loss of each step."""

    def hear(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended early, with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, command: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.hear()

    def step(self) -> None:
        answer = self.ask("step")
        self.processor.append(answer["processor_seconds"])
        self.wall.append(answer["wall_seconds"])
        self.losses.append(answer["loss"])

    def result(self, reference: list[float]) -> dict[str, Any]:
        """Medians after the first rounds; ratios are medians of the rounds' ratios."""
        ratios = [tofu / own for own, tofu in zip(self.processor, reference, strict=True)][WARM_UP:]
        return {
            **self.facts,
            "processor_seconds": median(self.processor[WARM_UP:]),
            "least_processor_seconds": min(self.processor),
            "wall_seconds": median(self.wall[WARM_UP:]),
            "tofu_to_this": median(ratios),
            "first_loss": self.losses[0],
            "last_loss": self.losses[-1],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Time training steps compared with MXNet's and PyTorch's.")
    parser.add_argument("--mxnet", metavar="PYTHON", help="an interpreter that has MXNet")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--numpy", metavar="PYTHON", help="one that has Tofu without the extra cpu")
    parser.add_argument("--native", action="store_true", help="also Tofu with kernels in C")
    parser.add_argument("--merge", action="store_true", help="also Tofu with merged operations")
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="worker counts of Tofu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--core", type=int, default=0, help="the processor core that all stay on")
    parser.add_argument("--models", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument(
        "--instructions", choices=INSTRUCTIONS, default="all", help="vector instructions that all may use"
    )
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    options = parser.parse_args()
    results = {name: measured(BENCHMARKS[name], options) for name in options.models}
    absent = [peer for peer in ("mxnet", "torch", "numpy") if getattr(options, peer) is None]
    print("".join(report(name, result) for name, result in results.items()))
    for peer in absent:
        print(f"{peer} was not measured: name an interpreter that has it with --{peer}")
    keep(
        {
            **described(),
            "threads": 1,
            "instructions": options.instructions,
            "not_measured": absent,
            "results": results,
        },
        options.save,
    )


def measured(benchmark: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return all contenders of one model, in turns."""
    environment = compared(os.environ, options.instructions)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        environment["PATH"] = limited_compiler(options.instructions, Path(folder), environment["PATH"])
        prepare(Path(folder), benchmark)
        contenders = []
        for name, command in commands(folder, benchmark, options):
            contenders.append(stack.enter_context(started(name, command, environment)))
        for contender in contenders:
            contender.facts = contender.hear()
        for _ in range(WARM_UP + options.rounds):
            for contender in contenders:
                contender.step()
        check(contenders)
        profiles = {c.name: c.ask("profile") for c in contenders if c.name.startswith("Tofu")}
    results = {c.name: c.result(contenders[0].processor) for c in contenders}
    for name, ratio in overheads(contenders).items():
        results[name]["to_one_worker"] = ratio
    for name, profile in profiles.items():
        results[name].update(profile)
    return results


def overheads(contenders: list[Contender]) -> dict[str, float]:
    """Return the median ratio of the time of several workers to that of one, which computes alike."""
    several = re.compile(r"^Tofu, \d+ workers")
    alone = {each.name: each for each in contenders}
    return {
        each.name: median(
            [own / one for own, one in zip(each.processor, alone[name].processor, strict=True)][WARM_UP:]
        )
        for each in contenders
        if (name := several.sub("Tofu, 1 worker", each.name)) != each.name and name in alone
    }


@contextmanager
def started(name: str, command: list[str], environment: Mapping[str, str]) -> Iterator[Contender]:
    """Start a contender in a separate process with this environment, which ends with the context."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Contender(name, process)
    finally:
        process.kill()
        process.wait()


def prepare(folder: Path, benchmark: dict[str, Any]) -> None:
    """Write the graph, start values and a batch for all contenders."""
    from tofu import models

    model = models.get(benchmark["model"], batch=benchmark["batch"], **benchmark.get("options", {}))
    generator = np.random.default_rng(0)
    _, _, auxiliary = model.symbol.infer_shape(**model.shapes)
    states = dict(zip(model.symbol.list_auxiliary_states(), auxiliary, strict=True))
    tensors = {}
    for name, shape in {**model.parameters, **states, **model.data}.items():
        match name.rsplit("_", 1)[-1]:
            case "gamma" | "var":
                value = np.ones(shape)
            case "beta" | "bias" | "mean":
                value = np.zeros(shape)
            case "weight":
                value = generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            case "data" if benchmark["family"] == "transformer":
                value = generator.integers(0, benchmark["options"]["vocabulary"], shape)
            case _:
                value = generator.standard_normal(shape)
        tensors[name] = value.astype(np.float32)
    for name, shape in model.labels.items():
        tensors[name] = generator.integers(0, 10, shape).astype(np.float32)
    np.savez(folder / "tensors.npz", **tensors)
    (folder / "facts.json").write_text(json.dumps(benchmark), encoding="utf-8")
    (folder / "graph.json").write_text(model.symbol.tojson(), encoding="utf-8")


def commands(
    folder: str, benchmark: dict[str, Any], options: argparse.Namespace
) -> Iterator[tuple[str, list[str]]]:
    """Yield every contender's name and command, Tofu's first worker count at the head."""
    core = str(options.core)
    for workers in options.workers:
        module = "benchmarks.steps.tofu_step"
        name = f"Tofu, {workers} worker{'s' * (workers > 1)}"
        command = [sys.executable, "-m", module, folder, core, str(workers)]
        yield name, command
        for words in chosen(options):
            yield ", ".join([name, *(WORDS[word] for word in words)]), [*command, *words]
    if options.numpy is not None:
        yield ALONE, [options.numpy, "-m", "benchmarks.steps.tofu_step", folder, core, "1"]
    for peer, forms in benchmark["peers"].items():
        interpreter = getattr(options, peer)
        for form in forms if interpreter is not None else ():
            module = f"benchmarks.steps.{peer}_step"
            yield NAMES[peer, form], [interpreter, "-m", module, folder, core, form]


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the options of further contenders of Tofu."""
    if options.native:
        yield ("native",)
    if options.merge:
        yield ("native", "merge") if options.native else ("merge",)


def check(contenders: list[Contender]) -> None:
    """Contenders that do not compute the same are not compared."""
    first = contenders[0]
    for other in contenders[1:]:
        if abs(other.losses[0] - first.losses[0]) > AGREEMENT * abs(first.losses[0]):
            raise SystemExit(f"{other.name} has a loss of {other.losses[0]}, {first.name} {first.losses[0]}")
        if other.facts["parameters"] != first.facts["parameters"]:
            raise SystemExit(f"{other.name} has {other.facts['parameters']} parameters")
        if other.name == ALONE and "oneDNN" in other.facts["code_for"]:
            raise SystemExit(f"{ALONE}: the interpreter has oneDNN; name one without the extra cpu")


def report(name: str, results: dict[str, dict[str, Any]]) -> str:
    """Return a table of the contenders, and where Tofu's time goes."""
    lines = [f"{name}\n", f"  {'':28}{'processor s':>12}{'least':>8}{'wall s':>8}{'Tofu/this':>11}\n"]
    for contender, result in results.items():
        times = "".join(
            f"{result[key]:{width}.3f}"
            for key, width in (("processor_seconds", 12), ("least_processor_seconds", 8), ("wall_seconds", 8))
        )
        lines.append(f"  {contender:28}{times}{result['tofu_to_this']:11.2f}  {result['version']}, ")
        lines.append(f"{result['code_for'] or 'code for an unknown core'}\n")
    profiled = {contender: result for contender, result in results.items() if "operator_seconds" in result}
    for contender, result in profiled.items():
        lines.append(f"  {contender}, {1 / result['tofu_to_this']:.2f} of the first: ")
        if "to_one_worker" in result:
            lines.append(f"{result['to_one_worker']:.2f} of one worker, ")
        lines.append(
            f"{result['instructions']} instructions, {result['fetched_bytes'] / 1e6:.0f} MB fetched, "
        )
        lines.append(
            f"{result['operations'] / 1e9:.1f} GFLOP, {result['product_seconds']:.3f} s in large products\n"
        )
        total = sum(result["operator_seconds"].values())
        for operator, seconds in list(result["operator_seconds"].items())[:12]:
            lines.append(f"    {operator:36}{seconds:8.4f} s{seconds / total:7.1%}\n")
    return "".join(lines)


if __name__ == "__main__":
    main()

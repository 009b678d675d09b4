"""How much memory each process takes to train and to go on from a checkpoint, besides what it holds.

    python -m benchmarks.process_memory [--processes 4] [--width 2048] [--save FILE]

A network of five square layers is trained with Adam by several processes on this machine, for one epoch with
start values that a seed draws. `trained_mb` is how far the highest resident set of each is above the one
before, without its arena and the workspace of its kernels, and `evaluated_mb` is that of a run that evaluates
the network afterwards, as `tofu train` does.

Then the network is saved, and new processes make the same executor, run an iteration so that all of its
memory is touched, and resume. `grown_mb` is how far the memory of each rose meanwhile (the highest resident
set, with mapped pages of files, less the resident set before). *Shared* is a folder that all processes see.
If it is *apart*, only the first process sees it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tofu
from tofu.runtime.distributed.processes import Processes
from tofu.runtime.progress import Standing
from tofu.runtime.run_checkpoints import Keeper, run_settings

from .machine import described
from .record import keep

LAYERS = 5
BATCH = 16
EVALUATE = "evaluate"
TRAINING = {"train": "trained_mb", EVALUATE: "evaluated_mb"}
"""The parts of training, and the names of their results."""

SMALL = 64
"""The width of a network that is trained before anything is measured."""

MEGABYTE = 1e6
ADAM = tofu.optimizer.adam()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--member", nargs=2, help="be one of the processes: a folder, and a part")
    arguments = parser.parse_args()
    if arguments.member is not None:
        member(Path(arguments.member[0]), arguments.member[1], arguments.width)
        return
    found = cases(arguments.processes, arguments.width)
    print(keep({**described(), "processes": arguments.processes, **found}, arguments.save))


def cases(processes: int, width: int) -> dict[str, Any]:
    """Return the sizes of weights and checkpoint, and the memory of each process in each case."""
    with TemporaryDirectory() as place:
        beyond = {name: several(processes, width, Path(place), part) for part, name in TRAINING.items()}
        shared, apart = Path(place, "shared"), Path(place, "apart-%n")
        several(processes, width, shared, "save")
        (saved,) = shared.iterdir()
        grown = {"shared": several(processes, width, shared, "resume")}
        for number in range(processes):
            folder = Path(str(apart).replace("%n", str(number)))
            folder.mkdir()
            if not number:
                (folder / saved.name).hardlink_to(saved)
        grown["apart"] = several(processes, width, apart, "resume")
        return {
            "weights_mb": round(4 * LAYERS * width**2 / MEGABYTE, 1),
            **beyond,
            "checkpoint_mb": round(saved.stat().st_size / MEGABYTE, 1),
            "grown_mb": grown,
        }


def several(processes: int, width: int, folder: Path, part: str) -> list[float]:
    """Run a part in several processes, and return how far the memory of each rose."""
    code = (
        "import sys; from tofu.runtime.distributed.launch import launch; "
        "sys.exit(launch([sys.executable, *sys.argv[2:]], int(sys.argv[1])))"
    )
    command = ["-m", "benchmarks.process_memory", "--width", str(width), "--member", str(folder), part]
    done = subprocess.run(
        [sys.executable, "-c", code, str(processes), *command],
        check=True,
        stdout=subprocess.PIPE,
        timeout=600,
    )
    found: list[float] = json.loads(done.stdout)
    return found


def member(folder: Path, part: str, width: int) -> None:
    """Be one of several processes; the first one prints how far the memory of each rose."""
    from tofu.runtime.distributed.launch import end_with_parent

    end_with_parent(os.environ)
    with tofu.distributed() as processes:
        if part in TRAINING:
            trained(processes, SMALL, part)  # imports what training needs
            grown = trained(processes, width, part)
        else:
            grown = kept(processes, width, folder, part)
        all_grown = processes.exchange("compare memory", str(round(grown / MEGABYTE, 1)).encode())
        if not processes.number:
            print(json.dumps([float(each) for each in all_grown]))


def trained(processes: Processes, width: int, part: str) -> int:
    """Train, and evaluate in that part; return how far memory rose besides arenas and workspace."""
    data = batches(width)
    before = measured_from_here()
    module = tofu.Module(network(width), context=processes)
    held = module.bind(data.shapes, ADAM).held_bytes[processes.number]
    module.fit(data, optimizer=ADAM)
    if part == EVALUATE:
        module.score(data)
        held += module.evaluator(data.shapes).held_bytes[processes.number]
    module.close(keep=False)
    return resident("VmHWM") - before - held


def kept(processes: Processes, width: int, folder: Path, part: str) -> int:
    """Save or resume; return how far memory rose."""
    data = batches(width)
    with tofu.Module(network(width), context=processes) as module:
        executor = module.bind(data.shapes, ADAM)
        shared = processes.folder(Path(str(folder).replace("%n", str(processes.number))))
        keeper, standing = Keeper(shared, executor, run_settings(data, ADAM, [])), Standing([], 0)
        executor.run()
        with shared.exclusive(create=True):
            before = measured_from_here()
            if part == "save":
                keeper.save(standing)
            else:
                keeper.resume(standing)
            return resident("VmHWM") - before


def measured_from_here() -> int:
    """Begin to measure the highest resident set, and return the one at this moment."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def batches(width: int) -> tofu.ArrayIterator:
    """Return a batch."""
    samples = np.zeros((BATCH, width), np.float32)
    return tofu.ArrayIterator(samples, samples[:, 0], batch_size=BATCH)


def network(width: int) -> tofu.sym.Symbol:
    """Return the network."""
    net = tofu.sym.Variable("data")
    for layer in range(LAYERS):
        net = tofu.sym.FullyConnected(net, num_hidden=width, no_bias=True, name=f"fc{layer}")
    return tofu.sym.SoftmaxOutput(net, name="softmax")


def resident(field: str) -> int:
    """Return a size of this process in bytes, as the kernel states it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()

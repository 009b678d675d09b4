"""How much memory each process takes to go on from a checkpoint, besides what it holds.

    python -m benchmarks.resume_memory [--processes 4] [--width 2048] [--save FILE]

A network of five square layers, trained with Adam, is saved by several processes on this machine. Then new
processes make the same executor, run an iteration so that all of its memory is touched, and resume.
`grown_mb` is how far the memory of each rose meanwhile (the highest resident set, with mapped pages of
files, less the resident set before). *Shared* is a folder that all processes see. If it is *apart*, only the
first process sees it.
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
from tofu.runtime.progress import Standing
from tofu.runtime.run_checkpoints import Keeper, run_settings

from .machine import described
from .record import keep

LAYERS = 5
BATCH = 16
MEGABYTE = 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--member", nargs=2, help="be one of the processes: a folder, and save or resume")
    arguments = parser.parse_args()
    if arguments.member is not None:
        member(Path(arguments.member[0]), arguments.member[1] == "save", arguments.width)
        return
    found = cases(arguments.processes, arguments.width)
    print(keep({**described(), "processes": arguments.processes, **found}, arguments.save))


def cases(processes: int, width: int) -> dict[str, Any]:
    """Return the size of the checkpoint, and the memory of each process, for both kinds of folders."""
    with TemporaryDirectory() as place:
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
        return {"checkpoint_mb": round(saved.stat().st_size / MEGABYTE, 1), "grown_mb": grown}


def several(processes: int, width: int, folder: Path, part: str) -> list[float]:
    """Run a part in several processes, and return how far the memory of each rose."""
    code = (
        "import sys; from tofu.runtime.distributed.launch import launch; "
        "sys.exit(launch([sys.executable, *sys.argv[2:]], int(sys.argv[1])))"
    )
    command = ["-m", "benchmarks.resume_memory", "--width", str(width), "--member", str(folder), part]
    done = subprocess.run(
        [sys.executable, "-c", code, str(processes), *command],
        check=True,
        stdout=subprocess.PIPE,
        timeout=600,
    )
    found: list[float] = json.loads(done.stdout)
    return found


def member(folder: Path, saves: bool, width: int) -> None:
    """Be one of several processes; the first one prints how far the memory of each rose."""
    from tofu.runtime.distributed.launch import end_with_parent

    end_with_parent(os.environ)
    samples = np.zeros((BATCH, width), np.float32)
    train = tofu.ArrayIterator(samples, samples[:, 0], batch_size=BATCH)
    adam = tofu.optimizer.adam()
    with tofu.distributed() as processes, tofu.Module(network(width), context=processes) as module:
        executor = module.bind(train.shapes, adam)
        kept = processes.folder(Path(str(folder).replace("%n", str(processes.number))))
        keeper, standing = Keeper(kept, executor, run_settings(train, adam, [])), Standing([], 0)
        executor.run()
        with kept.exclusive(create=True):
            Path("/proc/self/clear_refs").write_text("5")
            before = resident("VmRSS")
            if saves:
                keeper.save(standing)
            else:
                keeper.resume(standing)
            grown = round((resident("VmHWM") - before) / MEGABYTE, 1)
        all_grown = processes.exchange("compare memory", str(grown).encode())
        if not processes.number:
            print(json.dumps([float(each) for each in all_grown]))


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

"""Whole commands as a user runs them, from process start to exit, compared with what they aim at.

    python -m benchmarks.commands --runs 5 --save benchmarks/results/commands.json

Seconds are those that the command used of a processor, so that other work on the machine counts little. The
interpreter keeps compiled modules, as an installation does, in a folder of the benchmark's own; a first run
that does not count fills it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

from benchmarks.machine import described
from benchmarks.record import Row, keep, printed

COMMANDS = {
    "import tofu": (["-c", "import tofu"], 0.3),
    "import tofu, then touch tofu.sym": (["-c", "import tofu; tofu.sym"], None),
    "tofu plan mlp": (["-m", "tofu", "plan", "mlp"], 2.0),
    "tofu plan wresnet-50-4": (["-m", "tofu", "plan", "wresnet-50-4"], 2.0),
    "tofu plan wresnet-152-10 --batch 8": (["-m", "tofu", "plan", "wresnet-152-10", "-b", "8"], 2.0),
    "tofu plan wresnet-152-10": (["-m", "tofu", "plan", "wresnet-152-10"], 2.0),
    "tofu plan rnn-10-8k": (["-m", "tofu", "plan", "rnn-10-8k"], 2.0),
}
"""The arguments of Python, and the seconds aimed at, if any."""


def seconds(arguments: list[str], environment: Mapping[str, str]) -> float:
    """Run Python with these arguments; return the seconds of a processor that it used."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd="/", env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measured(command: str, runs: int, environment: Mapping[str, str]) -> Row:
    """Return the seconds of several runs of a command."""
    arguments, aim = COMMANDS[command]
    seconds(arguments, environment)
    times = [seconds(arguments, environment) for _ in range(runs)]
    found = {"median": statistics.median(times), "least": min(times), "most": max(times)}
    return {"command": command, **{name: round(each, 2) for name, each in found.items()}, "aim": aim}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time whole commands, in seconds of a processor.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        rows = printed(measured(command, asked.runs, environment) for command in COMMANDS)
    keep({**described(), "runs": asked.runs, "processor seconds": rows}, asked.save)


if __name__ == "__main__":
    main()

"""Whole commands as a user runs them, from process start to exit, compared with what they aim at.

python -m benchmarks.commands [--runs 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "import tofu": (["-c", "import tofu"], 0.3),
    "import tofu, then touch tofu.sym": (["-c", "import tofu; tofu.sym"], None),
    "tofu plan wresnet-50-4": (["-m", "tofu", "plan", "wresnet-50-4", "--json"], 3.0),
    "tofu plan wresnet-152-10 --batch 8": (
        ["-m", "tofu", "plan", "wresnet-152-10", "-b", "8", "--json"],
        None,
    ),
    "tofu plan rnn-10-8k": (["-m", "tofu", "plan", "rnn-10-8k", "--json"], None),
}


def seconds(arguments: list[str]) -> float:
    """Wall seconds of one run of Python with these arguments."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd="/")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(f"{'command':40} {'median':>8} {'min':>8} {'max':>8}  aim")
    for name, (arguments, aim) in COMMANDS.items():
        seconds(arguments)
        times = [seconds(arguments) for _ in range(runs)]
        figures = f"{statistics.median(times):7.2f}s {min(times):7.2f}s {max(times):7.2f}s"
        print(f"{name:40} {figures}  {'' if aim is None else f'{aim} s'}")


if __name__ == "__main__":
    main()

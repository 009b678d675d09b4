"""Run all benchmarks on the cards of this machine: python -m benchmarks.gpu [--list] [--torch PYTHON].

Prints the results and writes them, with card and date, to benchmarks/results/gpu.json. `--list` makes all
commands on a machine without cards and runs none. The report names the benchmarks that were left out, for
lack of time or of a package, and those that failed. The exit status is 1 if any failed, or if contenders
disagree.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.machine import described
from benchmarks.record import keep
from tofu.errors import ExecutionError, TofuError
from tofu.runtime.cuda.inspection import inspect

from . import moving, step_race
from .bench_device import Stand
from .report import Results, line

RESULTS = Path(__file__).resolve().parents[1] / "results" / "gpu.json"
SECONDS = 400.0
"""No measurement begins later; the last one to begin takes less than a minute."""


def main(arguments: list[str] | None = None) -> None:
    options = parsed(arguments)
    facts: Results = {"cards": [], "parts": {}} if options.list else found()
    stand = Stand(len(facts["cards"]), time.monotonic(), options.seconds)
    print(", ".join(facts["cards"]) or "No cards: commands are made, none is run.", flush=True)
    moved, wrong = moved_bytes(stand, options.small)
    models = step_race.SMALL_MODELS if options.small else step_race.MODELS
    training = step_race.trained(stand, models, options.torch)
    results = {**described(), **facts, "moving": moved, "training": training.results}
    results |= {"not_measured": training.omitted, "wrong": wrong | training.wrong}
    for name, reason in {**training.omitted, **results["wrong"]}.items():
        print(f"{name}: {reason}")
    keep(results, options.save or (None if options.list else RESULTS))
    if results["wrong"]:
        raise SystemExit(1)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Time the CUDA engine.")
    parser.add_argument("--list", action="store_true", help="make all commands, without a card, and run none")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument(
        "--torch", metavar="PYTHON", default=sys.executable, help="an interpreter that has PyTorch"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin nothing later than this")
    parser.add_argument("--save", type=Path, help=f"write results here, not to {RESULTS.name}")
    return parser.parse_args(arguments)


def found() -> Results:
    """Name the cards and the versions that are installed. Ends the program where something is missing."""
    try:
        inspection = inspect(measure=False)
    except ExecutionError as error:
        raise SystemExit(f"{error}\n--list runs without a card") from error
    if not inspection.ready:
        lacks = [f"  {part.name}: {part.problem}; {part.remedy}" for part in inspection.parts if part.problem]
        raise SystemExit("\n".join(["There is nothing to measure here; --list runs without a card.", *lacks]))
    return {
        "cards": [card.name for card in inspection.cards],
        "parts": {part.name: part.version for part in inspection.parts},
    }


def moved_bytes(stand: Stand, small: bool) -> tuple[list[Results], dict[str, str]]:
    """Results of moving data, each printed as soon as it is there, and what went wrong."""
    results = []
    try:
        for result in moving.measured(stand, small):
            print(line(result["case"], result), flush=True)
            results.append(result)
    except TofuError as error:
        return results, {"moving data": str(error)}
    return results, {}


if __name__ == "__main__":
    main()

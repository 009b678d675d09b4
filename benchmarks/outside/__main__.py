"""Operators of outside users: are they right, do parts make the whole, and how fast are they?

python -m benchmarks.outside [--checks] [--speed] [--only NAME ...] [--seed 0] [--save FILE]

Needs PyTorch. Without --checks and --speed both are done.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks.machine import described
from benchmarks.record import keep

from .apart import Row, apart
from .catalogue import OUTSIDERS
from .checks import check
from .peer import missing, torch
from .speed import race
from .table import check_head, check_line, race_head, race_line, summary

SECONDS = {"checks": 120, "speed": 60}
"""Work that takes longer is stopped."""


def kept(path: Path | None) -> dict[str, dict[str, Row]]:
    """Return the results that a file has already, by operator and by what was examined."""
    if path is None or not path.exists():
        return {}
    results: dict[str, dict[str, Row]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return results


def libraries() -> Row:
    """PyTorch's version, and the cores whose kernels OpenBLAS has chosen."""
    cores = {info["architecture"] for info in threadpool_info() if "architecture" in info}
    return {"torch": torch.__version__, "openblas": sorted(cores)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(OUTSIDERS), choices=OUTSIDERS)
    parser.add_argument("--checks", action="store_true", help="compare and audit at small sizes")
    parser.add_argument("--speed", action="store_true", help="time at large sizes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    if missing():
        parser.error("PyTorch is not installed; pip install torch")
    results = kept(arguments.save)
    both = not arguments.checks and not arguments.speed
    stages = [("checks", check, check_head, check_line)] if arguments.checks or both else []
    stages += [("speed", race, race_head, race_line)] if arguments.speed or both else []
    for stage, work, head, line in stages:
        print(head())
        for name in arguments.only:
            job = partial(work, OUTSIDERS[name], arguments.seed)
            results.setdefault(name, {})[stage] = apart(job, SECONDS[stage])
            print(line(name, results[name][stage]), flush=True)
            keep({**described(), **libraries(), "seed": arguments.seed, "results": results}, arguments.save)
    done = [stage for stage, *_ in stages]
    now = {name: {stage: results[name][stage] for stage in done} for name in arguments.only}
    print(*summary(now), sep="\n")


if __name__ == "__main__":
    main()

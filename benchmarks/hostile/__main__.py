"""Hostile input, drawn by a seed, and what became of it.

    python -m benchmarks.hostile texts --count 1000000 --seed 1
    python -m benchmarks.hostile nesting
    python -m benchmarks.hostile files --count 10000
    python -m benchmarks.hostile plans --count 10000
    python -m benchmarks.hostile kills --count 200
    python -m benchmarks.hostile texts --seconds 300 --save hostile.json --resume

`files` takes the count for each format. Each part ends after `--seconds`, and its result says how many were
tried. `--resume` goes on after the trials in the file that `--save` names, and adds the result to theirs. A
trial is drawn from the seed and its number alone, so any can be repeated with `--first` and `--count`.

A trial that takes longer than `--limit` seconds of processor time counts as a hang. An audit hook watches for
execution, imports, connections and files elsewhere. The exit status is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.machine import described
from benchmarks.record import keep

from .files import files
from .guard import Guard
from .kills import kills
from .nesting import nesting
from .plans import plans
from .texts import texts
from .totals import added

PARTS: dict[str, tuple[Callable[[Iterable[int], int, float], Guard], int]] = {
    "texts": (texts, 1_000_000),
    "nesting": (nesting, 1_000_000),
    "files": (files, 10_000),
    "plans": (plans, 10_000),
    "kills": (kills, 200),
}
"""Each part, and how many trials it has if nothing else is said."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--count", type=int, help="the number after the last trial")
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds of the part")
    parser.add_argument("--limit", type=float, default=1.0, help="processor seconds for one trial")
    parser.add_argument("--save", type=Path, help="add the result to this file")
    parser.add_argument("--resume", action="store_true", help="go on after the trials of that file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.save is not None and arguments.save.exists():
        results = json.loads(arguments.save.read_text(encoding="utf-8"))
    before = results.get(arguments.part) if arguments.resume else None
    if before is not None and before["seed"] != arguments.seed:
        parser.error(f"{arguments.save} was made with --seed {before['seed']}, this is {arguments.seed}")
    part, usual = PARTS[arguments.part]
    first = arguments.first if before is None else before["count"]
    numbers = Numbers(first, arguments.count or usual, arguments.seconds)
    guard = part(numbers, arguments.seed, arguments.limit)
    result: dict[str, Any] = {
        **described(),
        "seed": arguments.seed,
        "count": numbers.given,
        "seconds": round(numbers.seconds, 1),
        **guard.result(),
    }
    results[arguments.part] = result if before is None else added(before, result)
    keep(results, arguments.save)
    print(json.dumps(result, indent=2))
    sys.exit(guard.failed)


class Numbers:
    """Numbers from `first` up to `end`, and none after `seconds`."""

    def __init__(self, first: int, end: int, seconds: float) -> None:
        self._first = first
        self._end = end
        self._seconds = seconds
        self._begun = monotonic()
        self.given = 0

    def __iter__(self) -> Iterator[int]:
        while self._first + self.given < self._end and self.seconds < self._seconds:
            self.given += 1
            yield self._first + self.given - 1

    @property
    def seconds(self) -> float:
        """Return the seconds since the beginning."""
        return monotonic() - self._begun


if __name__ == "__main__":
    main()

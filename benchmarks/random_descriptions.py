"""Claims about random descriptions: scans, automatic stages, calls, starred variables, choices.

    python -m benchmarks.random_descriptions --operators 100 --seed 0

Every stage and every gradient of every operator is audited: regions are proven by isl or tried by brute
force, strategies by laws or trials, kernels by comparison. A claim that is *refuted* is unsound.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from random import Random
from time import process_time

import tofu
from benchmarks.machine import described
from benchmarks.record import keep
from tests.operators.random_descriptions import Drawn, random_description


def main() -> None:
    parser = argparse.ArgumentParser(description="Audit random descriptions of the whole language.")
    parser.add_argument("--operators", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    started = process_time()
    counts: Counter[str] = Counter({"claims refuted": 0})
    for number in range(arguments.operators):
        counts.update(audited(random_description(Random(f"{arguments.seed} {number}"))))
    result = {
        **described(),
        "operators": arguments.operators,
        "seed": arguments.seed,
        **dict(sorted(counts.items())),
        "processor seconds": round(process_time() - started, 1),
    }
    print(keep(result, arguments.save))


def audited(drawn: Drawn) -> Counter[str]:
    """Return counts of what was drawn and of the verdicts; refuted claims are printed."""
    audit = tofu.audit(drawn.operator, shapes=drawn.shapes, attributes=drawn.attributes, workers=(2, 3))
    counts = Counter(f"operators with {feature}" for feature in drawn.features)
    counts.update(f"claims {finding.verdict.value}" for finding in audit.findings)
    if audit.refuted:
        print(f"refuted: {drawn.operator}\n{drawn.shapes} {drawn.attributes}\n{audit.refuted}")
    return counts


if __name__ == "__main__":
    main()

"""Measured transfers against two estimates: bytes over bandwidth, and a model fitted to other transfers.

    python -m benchmarks.transfers [--save benchmarks/results/transfers.json] [--rounds 15]

TensorOpt (section 5.2) states that bytes over bandwidth miss the time of transfers by 74.8%, and that its own
estimates, interpolated between profiled sizes, miss it by 6% to 7%. Here the models and plans of
`benchmarks.accuracy` run on the NumPy engine with two workers, and every transfer that reads from the other
worker is measured. `bandwidth` is the error of its bytes over the measured bandwidth of the machine file.
`fitted` is that of the simulator's model, fitted to all other sizes of the same kind. Errors are absolute,
relative to the measured time; `of_the_time` is that of the sum of all transfers in one iteration.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import tofu
from tofu.machines.machine import Machine
from tofu.machines.profile import MeasuredTime, Sizes
from tofu.programs.instruction_work import transfers
from tofu.runtime.processor import host
from tofu.simulator.fitted import fit

from .accuracy import MODELS, PLANS, WORKERS
from .machine import described
from .record import keep, printed


def rows(folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the errors for every model."""
    for name, options in MODELS.items():
        graph = tofu.models.get(name, **options).training_graph()
        programs = [tofu.lower(graph, plan(graph)) for plan in PLANS.values()]
        machine = tofu.machines.measure(programs, folder / f"{name}.yaml", rounds=rounds)
        used = Counter((each.kind, each.sizes) for program in programs for each in transfers(program))
        yield {"model": name, **_errors(machine, used)}


def _errors(machine: Machine, used: Counter[tuple[str, Sizes]]) -> dict[str, Any]:
    assert machine.profile is not None
    measured = machine.profile.times(WORKERS)
    kind = machine.kind(0)
    width = machine.path(0, 1).bytes_per_second
    units = (kind.start_seconds, 1 / kind.bytes_per_second, 1 / width)
    found: dict[str, list[float]] = {"bandwidth": [], "fitted": []}
    sums = {"measured": 0.0, "bandwidth": 0.0, "fitted": 0.0}
    for (name, sizes), count in used.items():
        known = measured.kinds[name]
        own, remote = known[sizes], known[sizes].amounts[-1]
        if not remote or len(known) < 2:
            continue
        estimates = {"bandwidth": remote / width, "fitted": _without(known, sizes, units)}
        sums["measured"] += count * own.seconds
        for each, seconds in estimates.items():
            found[each].append(abs(seconds / own.seconds - 1))
            sums[each] += count * seconds
    return {
        "transfers": len(found["fitted"]),
        **{
            each: {
                "median": round(median(errors), 4),
                "mean": round(sum(errors) / len(errors), 4),
                "of_the_time": round(abs(sums[each] / sums["measured"] - 1), 4),
            }
            for each, errors in found.items()
        },
    }


def _without(known: Any, sizes: Sizes, units: tuple[float, ...]) -> float:
    """Return the time of a transfer as fitted to all others of its kind."""
    others: list[MeasuredTime] = [each for other, each in known.items() if other != sizes]
    fitted = fit([each.amounts for each in others], [each.seconds for each in others], units)
    return fitted.seconds(known[sizes].amounts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="write the results to this file")
    parser.add_argument("--rounds", type=int, default=15, help="iterations of each plan that are profiled")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = printed(rows(Path(folder), arguments.rounds))
    keep({**described(), "blas": host().blas, "results": found}, arguments.save)


if __name__ == "__main__":
    main()

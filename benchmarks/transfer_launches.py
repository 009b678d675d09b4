"""How many commands move data in an iteration on cards, with gradients apart and together. Needs no card.

    python -m benchmarks.transfer_launches [--save FILE]

Four workers, all-reduces in groups of 128 variables. `transfers` are the instructions of all workers that
fetch or reduce, `apart` and `together` the commands that the CUDA engine issues for them, each of which
launches a kernel or copies memory. `arena_apart` and `arena_together` are the bytes of the largest arena.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import tofu
from tofu.operators.cuda.launch.commands import Command
from tofu.programs import plan_memory, schedule
from tofu.programs.program import Compute, Lane, PartitionedGraph
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.engine import Watch
from tofu.sync import builders

from .gpu.dry_machine import DryMachine
from .record import Row, record_parts

WORKERS = 4
MODELS = ("mlp", "lenet", "alexnet", "wresnet-10-2", "resnet-50", "lstm")


def launches() -> Iterator[Row]:
    for name in MODELS:
        graph = tofu.models.get(name, batch=32).training_graph()
        strategy = builders.all_reduce(graph, WORKERS)
        row: Row = {"model": name}
        for label, together in (("apart", False), ("together", True)):
            plan = tofu.sync.compile(graph, WORKERS, replace(strategy, together=together))
            program = tofu.lower(graph, plan)
            instructions = (each for one in program.programs for each in one.instructions)
            row["transfers"] = sum(not isinstance(each, Compute) for each in instructions)
            row[label] = commands_of_transfers(program)
            row[f"arena_{label}"] = max(plan_memory(program).arena_bytes)
        yield row


class CountingMachine(DryMachine):
    """Counts the commands that move data."""

    transfers = 0

    def issue(self, worker: int, command: Command, lane: Lane = Lane.COMPUTE) -> None:
        self.transfers += lane is Lane.TRANSFER


def commands_of_transfers(program: PartitionedGraph) -> int:
    memory = plan_memory(program)
    machine = CountingMachine(program.workers)
    engine = CudaEngine(program, memory, schedule(program, memory), machine, watch=Watch(60.0))
    engine.run()
    engine.close()
    return machine.transfers


if __name__ == "__main__":
    record_parts({"launches": launches}, __doc__)

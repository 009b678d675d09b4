"""Training steps on the CUDA engine: one worker and eight, graph and eager, and the memory they take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.steps.serving import RATE, given, loss_of
from tofu import models, partition
from tofu.partitioner import lower
from tofu.programs.memory import MemoryPlan
from tofu.programs.schedule import schedule
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.engine import Engine, Watch
from tofu.runtime.executor import Executor

from .bench_device import Stand
from .dry_machine import DryMachine

WARM_UP, STEPS = 3, 10


@dataclass(frozen=True)
class Setting:
    """How a model's step is run."""

    workers: int = 1
    eager: bool = False
    tf32: bool = False

    @property
    def title(self) -> str:
        workers = f"{self.workers} worker{'s' * (self.workers > 1)}"
        return f"Tofu, {workers}, {'eager' if self.eager else 'graph'}, {precision(self.tf32)}"


SETTINGS = (Setting(), Setting(tf32=True), Setting(workers=8), Setting(eager=True))
"""The most telling first: time may run out."""


def precision(tf32: bool) -> str:
    return "TF32" if tf32 else "float32"


def step(stand: Stand, folder: str, setting: Setting) -> dict[str, Any]:
    """Seconds of a step, its first losses, and memory; without cards what would be issued.

    The folder holds the model's facts, start values and batch. `engine_bytes` is how much less the cards
    have left for the engine, all workers together, compared with the arenas' `planned_bytes`.
    """
    facts, tensors = given(folder)
    graph = models.get(facts["model"], batch=facts["batch"], **facts["options"]).training_graph()
    partitioned = lower(graph, partition(graph, workers=setting.workers))
    machine = stand.machine(setting.workers, setting.tf32)
    free = stand.free_bytes()

    def make(partitioned: Any, memory: MemoryPlan, watch: Watch) -> Engine:
        plan = schedule(partitioned, memory)
        return CudaEngine(partitioned, memory, plan, machine, watch=watch, eager=setting.eager)

    begun = time.perf_counter()
    try:
        with Executor(partitioned, make_engine=make) as executor:
            for name in tensors:
                if executor.has(name):
                    executor.write(name, tensors[name])
            executor.write("learning_rate", np.full(1, RATE, np.float32))
            result = {
                "arena_bytes": list(executor.memory.arena_bytes),
                "planned_bytes": sum(executor.held_bytes),
                "instructions": sum(len(program.instructions) for program in partitioned.programs),
                "preparation_seconds": time.perf_counter() - begun,
            }
            if isinstance(machine, DryMachine):
                executor.run()
                return {**result, "commands": dict(machine.issued), "kernels": len(machine.sources)}
            label, losses, taken = tensors["softmax_label"], [], []
            for _ in range(WARM_UP + STEPS):
                begun = time.perf_counter()
                executor.run()
                losses.append(loss_of(executor.read(f"{facts['output']}_output"), label))
                taken.append(time.perf_counter() - begun)
            used = {"engine_bytes": free - stand.free_bytes(), "process_bytes": stand.taken_bytes()}
            return {**result, **used, "seconds": median(taken[WARM_UP:]), "losses": losses[:3]}
    finally:
        machine.close()

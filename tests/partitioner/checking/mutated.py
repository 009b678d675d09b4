"""The subject of mutations: a valid plan with the programs and the memory plan that follow from it.

Every mutation is one that cannot be right. A family takes a subject and a generator of random choices; it
raises `Nothing` where the subject has nothing of the kind to change.
"""

from __future__ import annotations

import dataclasses
import json

from tofu.partitioner import lower, partition
from tofu.partitioner.checking.check_plan import verify
from tofu.partitioner.plans.plan import decode_plan, encode_plan
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.memory import plan_memory
from tofu.programs.schedule import schedule


class Nothing(Exception):
    """A plan has nothing that a family could change."""


class Subject:
    """A valid plan with all that follows from it; whatever a family changes replaces one of these."""

    def __init__(self, graph, workers):
        self.graph = graph
        self.plan = partition(graph, workers)
        self.document = json.loads(encode_plan(self.plan))
        self.program = lower(graph, self.plan)
        memory = plan_memory(self.program)
        self.offsets = [list(offsets) for offsets in memory.offsets]
        self.arenas = list(memory.arena_bytes)
        self.waits = [[list(waits) for waits in listed] for listed in schedule(self.program, memory).waits]

    def check(self):
        verify(self.graph, decode_plan(json.dumps(self.document).encode()))
        check_program(self.graph, self.plan.workers, self.plan.cost_bytes, self.program)
        check_memory(self.program, self.offsets, self.arenas, self.waits)

    def replace_instruction(self, worker, place, *instead):
        one = self.program.programs[worker]
        instructions = (*one.instructions[:place], *instead, *one.instructions[place + 1 :])
        programs = list(self.program.programs)
        programs[worker] = dataclasses.replace(one, instructions=instructions)
        self.program = dataclasses.replace(self.program, programs=tuple(programs))

    def instructions(self, *kinds):
        """(worker, place, instruction) of all instructions of these kinds."""
        return [
            (worker, place, instruction)
            for worker, program in enumerate(self.program.programs)
            for place, instruction in enumerate(program.instructions)
            if isinstance(instruction, kinds)
        ]

    def buffers(self):
        """(worker, buffer) of all buffers that hold anything, with whether each is a lasting shard."""
        lasting = {
            (worker, shard)
            for tensor in self.graph.tensors
            if tensor.role.persistent
            for worker, shard in self.program.homes[tensor.index]
        }
        return [
            (worker, buffer, (worker, buffer.index) in lasting)
            for worker, program in enumerate(self.program.programs)
            for buffer in program.buffers
            if buffer.nbytes
        ]


def families(namespace):
    """The functions of a module that change a subject."""
    return [
        value
        for value in namespace.values()
        if callable(value)
        and getattr(value, "__module__", None) == namespace["__name__"]
        and getattr(value, "__code__", None) is not None
        and value.__code__.co_varnames[: value.__code__.co_argcount] == ("subject", "draw")
    ]

"""The subject of mutations: a valid plan with the programs and the memory plan that follow from it.

Every mutation is one that cannot be right. A family takes a subject and a generator of random choices; it
raises `Nothing` where the subject has nothing of the kind to change.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from unittest import mock

from tofu.partitioner import lower
from tofu.partitioner.checking.check_plan import verify
from tofu.partitioner.layouts.step_split import Layout
from tofu.partitioner.plans.plan import decode_plan
from tofu.partitioner.plans.plan_file import encode_plan
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.clock import reads, writes
from tofu.programs.memory import plan_memory
from tofu.programs.schedule import schedule


class Nothing(Exception):
    """A plan has nothing that a family could change."""


def some(draw, found):
    """Any of what was found; raises `Nothing` if that is nothing."""
    if not found:
        raise Nothing
    return draw.choice(found)


class Subject:
    """A valid plan with all that follows from it; whatever a family changes replaces one of these."""

    def __init__(self, graph, plan):
        self.graph = graph
        self.plan = plan
        self.file = encode_plan(plan)
        self.document = json.loads(self.file)
        self.program = lower(graph, plan)
        memory = plan_memory(self.program)
        self.offsets = [list(offsets) for offsets in memory.offsets]
        self.arenas = list(memory.arena_bytes)
        self.waits = [[list(waits) for waits in listed] for listed in schedule(self.program, memory).waits]

    def fresh(self):
        """The same once more, for a family to change."""
        found = copy.copy(self)
        found.document = json.loads(self.file)
        found.offsets = [list(offsets) for offsets in self.offsets]
        found.arenas = list(self.arenas)
        found.waits = [[list(waits) for waits in listed] for listed in self.waits]
        return found

    def check_plan(self):
        """Check the plan of the document; layouts that reading a file refuses are left to the checker."""
        with mock.patch.object(Layout, "check", return_value=None):
            plan = decode_plan(json.dumps(self.document).encode())
        verify(self.graph, plan)

    def check_program(self):
        check_program(self.graph, self.plan.workers, self.plan.cost_bytes, self.program)

    def check_memory(self):
        check_memory(self.program, self.offsets, self.arenas, self.waits)

    def replace_instruction(self, worker, place, *instead):
        one = self.program.programs[worker]
        self.replace_instructions(
            worker, (*one.instructions[:place], *instead, *one.instructions[place + 1 :])
        )

    def replace_instructions(self, worker, instructions):
        programs = list(self.program.programs)
        programs[worker] = dataclasses.replace(programs[worker], instructions=tuple(instructions))
        self.program = dataclasses.replace(self.program, programs=tuple(programs))

    def retime(self, tick_of):
        """Give every instruction another tick, a number or a tuple of them, and sort the lists by it."""
        times = sorted({tick_of(w, i, each) for w, i, each in self.instructions(object)})
        ticks = {time: tick for tick, time in enumerate(times)}
        for worker, program in enumerate(self.program.programs):
            timed = [
                dataclasses.replace(each, tick=ticks[tick_of(worker, place, each)])
                for place, each in enumerate(program.instructions)
            ]
            self.replace_instructions(worker, sorted(timed, key=lambda each: each.tick))

    def instructions(self, *kinds):
        """(worker, place, instruction) of all instructions of these kinds."""
        return [
            (worker, place, instruction)
            for worker, program in enumerate(self.program.programs)
            for place, instruction in enumerate(program.instructions)
            if isinstance(instruction, kinds)
        ]

    def needed_instructions(self, *kinds):
        """Those of `instructions` that write what another reads, or a home."""
        used = {held for homes in self.program.homes for held in homes}
        used.update(held for worker, _, each in self.instructions(object) for held in reads(worker, each))
        return [
            (worker, place, each)
            for worker, place, each in self.instructions(*kinds)
            if not used.isdisjoint((worker, buffer) for buffer in writes(each))
        ]

    def dependences(self):
        """((worker, place, instruction), the same of the one that wrote what it reads) of all reads."""
        written, found = {}, []
        for worker, place, each in sorted(
            self.instructions(object), key=lambda entry: (entry[2].tick, entry[:2])
        ):
            here = worker, place, each
            found += [(here, written[held]) for held in reads(worker, each) if held in written]
            written |= {(worker, buffer): here for buffer in writes(each)}
        return found

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

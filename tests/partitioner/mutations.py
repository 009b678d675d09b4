"""A corpus of valid plans, programs and memory plans with one thing changed: the checker refuses them all.

Every change is one that cannot be right. Families take a plan (or what follows from it) and a generator of
random choices; they raise `Nothing` where the plan has nothing of the kind to change.
"""

from __future__ import annotations

import dataclasses
import json

from tofu.dataflow.partitioned import Compute, MultiFetch, Reduce
from tofu.partitioner import lower, partition
from tofu.partitioner.explain import explain
from tofu.partitioner.plan_file import decode_plan, encode_plan
from tofu.partitioner.verify import verify
from tofu.partitioner.verify_memory import verify_memory
from tofu.partitioner.verify_program import verify_program
from tofu.runtime.memory import plan_memory
from tofu.runtime.schedule import schedule
from tofu.tdl.ast import Reducer


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
        verify_program(self.graph, self.plan.workers, self.plan.cost_bytes, self.program)
        verify_memory(self.program, self.offsets, self.arenas, self.waits)

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
            for worker, shard in enumerate(self.program.shards[tensor.index])
        }
        return [
            (worker, buffer, (worker, buffer.index) in lasting)
            for worker, program in enumerate(self.program.programs)
            for buffer in program.buffers
            if buffer.nbytes
        ]


def states_other_bytes(subject, draw):
    amount = draw.choice([-4, 1, 4, 4096])
    subject.document["cost_bytes"] += amount
    subject.document["step_cost_bytes"][draw.randrange(len(subject.plan.factors))] += amount


def moves_bytes_to_another_step(subject, draw):
    subject.document["step_cost_bytes"][0] += 4
    subject.document["step_cost_bytes"][-1] -= 4


def claims_a_bound_above_its_cost(subject, draw):
    subject.document["lower_bound_bytes"] = subject.document["cost_bytes"] + draw.choice([1, 1000])


def is_for_another_graph(subject, draw):
    place = draw.randrange(64)
    text = subject.document["fingerprint"]
    subject.document["fingerprint"] = text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]


def leaves_something_out(subject, draw):
    entries = subject.document[draw.choice(["tensors", "operations"])]
    del entries[draw.choice(sorted(entries))]


def names_something_else(subject, draw):
    entries = subject.document[draw.choice(["tensors", "operations"])]
    entries["stranger"] = entries.pop(draw.choice(sorted(entries)))


def has_another_shape(subject, draw):
    entry = subject.document["tensors"][draw.choice(sorted(subject.document["tensors"]))]
    entry["shape"][draw.randrange(len(entry["shape"]))] += draw.choice([1, 8])


def is_for_other_workers(subject, draw):
    subject.document["workers"] = draw.choice([1, 2, 3, 5, 16])


def has_other_steps(subject, draw):
    subject.document["factors"] = [subject.plan.workers * 2]


def is_of_another_version(subject, draw):
    subject.document["version"] = draw.choice([0, 2, "1", None])


def splits_along_a_missing_dimension(subject, draw):
    entry = subject.document["tensors"][draw.choice(sorted(subject.document["tensors"]))]
    entry["dimensions"][draw.randrange(len(entry["dimensions"]))] = draw.choice([-1, 7, len(entry["shape"])])


def splits_along_a_missing_variable(subject, draw):
    choices = subject.document["operations"][draw.choice(sorted(subject.document["operations"]))]
    choices[draw.randrange(len(choices))] = draw.choice(["q", "", "0"])


def splits_too_small_an_extent(subject, draw):
    small = [e for e in subject.document["tensors"].values() if min(e["shape"]) < subject.plan.workers]
    if not small:
        raise Nothing
    entry = draw.choice(small)
    entry["dimensions"] = [entry["shape"].index(min(entry["shape"]))] * len(subject.plan.factors)


def chooses_otherwise_at_the_same_price(subject, draw):
    """Another legal choice, whose bytes differ from what the plan goes on stating."""
    what = draw.choice(["operator", "tensor"])
    names = subject.plan.strategies if what == "operator" else subject.plan.layouts
    explanation = explain(subject.graph, subject.plan, draw.choice(sorted(names)), what)
    dearer = [a for a in explanation.alternatives if a.held_bytes != subject.plan.cost_bytes]
    if not dearer:
        raise Nothing
    choice = list(draw.choice(dearer).choice)
    for name in explanation.decided_together:
        if what == "operator":
            subject.document["operations"][name] = choice
        else:
            subject.document["tensors"][name]["dimensions"] = choice


def parts_what_shares_storage(subject, draw):
    aliases = [t for t in subject.graph.tensors if t.alias is not None and len(t.shape) > 1]
    if not aliases:
        raise Nothing
    entry = subject.document["tensors"][draw.choice(aliases).name]
    entry["dimensions"] = [None if d is not None else 0 for d in entry["dimensions"]]


def leaves_out_an_instruction(subject, draw):
    worker, place, _ = draw.choice(subject.instructions(Compute, MultiFetch, Reduce))
    subject.replace_instruction(worker, place)


def repeats_an_instruction(subject, draw):
    worker, place, instruction = draw.choice(subject.instructions(Compute, MultiFetch, Reduce))
    subject.replace_instruction(worker, place, instruction, instruction)


def puts_instructions_in_another_order(subject, draw):
    program = subject.program.programs[0].instructions
    places = [i for i in range(len(program) - 1) if program[i].operation != program[i + 1].operation]
    if not places:
        raise Nothing
    place = draw.choice(places)
    first, second = program[place], program[place + 1]
    subject.replace_instruction(0, place, second)
    subject.replace_instruction(0, place + 1, first)


def changed_piece(subject, draw, change):
    """One piece of one fetch or reduction changed; `change` gives the pieces instead of it."""
    moving = subject.instructions(MultiFetch, Reduce)
    if not moving:
        raise Nothing
    worker, place, instruction = draw.choice(moving)
    parts = [instruction.pieces] if isinstance(instruction, MultiFetch) else list(instruction.parts)
    number = draw.randrange(len(parts))
    pieces = parts[number]
    which = draw.randrange(len(pieces))
    parts[number] = (*pieces[:which], *change(pieces[which]), *pieces[which + 1 :])
    instead = (
        dataclasses.replace(instruction, pieces=parts[0])
        if isinstance(instruction, MultiFetch)
        else dataclasses.replace(instruction, parts=tuple(parts))
    )
    subject.replace_instruction(worker, place, instead)


def moved_region(piece, lower, upper):
    (start, stop), *rest = piece.region
    return dataclasses.replace(piece, region=((start + lower, stop + upper), *rest))


def fetches_too_little(subject, draw):
    changed_piece(subject, draw, lambda piece: (moved_region(piece, 0, -1),))


def fetches_too_much(subject, draw):
    changed_piece(subject, draw, lambda piece: (moved_region(piece, 0, 1),))


def fetches_from_elsewhere(subject, draw):
    changed_piece(subject, draw, lambda piece: (moved_region(piece, 1, 1),))


def fetches_nothing(subject, draw):
    changed_piece(subject, draw, lambda piece: ())


def fetches_twice(subject, draw):
    changed_piece(subject, draw, lambda piece: (piece, piece))


def fetches_from_a_missing_worker(subject, draw):
    workers = subject.plan.workers
    changed_piece(subject, draw, lambda piece: (dataclasses.replace(piece, worker=workers),))


def fetches_from_another_buffer(subject, draw):
    """A buffer of another tensor on the same worker."""

    def change(piece):
        buffers = subject.program.programs[piece.worker].buffers
        others = [b.index for b in buffers if b.tensor != buffers[piece.buffer].tensor]
        return (dataclasses.replace(piece, buffer=draw.choice(others)),)

    changed_piece(subject, draw, change)


def reduces_a_term_less(subject, draw):
    reductions = subject.instructions(Reduce)
    if not reductions:
        raise Nothing
    worker, place, reduce = draw.choice(reductions)
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, parts=reduce.parts[:-1]))


def reduces_a_term_twice(subject, draw):
    reductions = subject.instructions(Reduce)
    if not reductions:
        raise Nothing
    worker, place, reduce = draw.choice(reductions)
    parts = (*reduce.parts[:-1], reduce.parts[0])
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, parts=parts))


def computes_another_box(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    axis = draw.randrange(len(compute.box))
    lower, upper = compute.box[axis]
    box = (*compute.box[:axis], (lower, upper + draw.choice([-1, 1])), *compute.box[axis + 1 :])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, box=box))


def computes_into_another_buffer(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    outputs = (compute.outputs[0] + 1, *compute.outputs[1:])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, outputs=outputs))


def computes_from_another_buffer(subject, draw):
    """A buffer of another tensor."""
    worker, place, compute = draw.choice(subject.instructions(Compute))
    buffers = subject.program.programs[worker].buffers
    read = [position for position, buffer in enumerate(compute.inputs) if buffer is not None]
    if not read:
        raise Nothing
    position = draw.choice(read)
    others = [b.index for b in buffers if b.tensor != buffers[compute.inputs[position]].tensor]
    inputs = (*compute.inputs[:position], draw.choice(others), *compute.inputs[position + 1 :])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, inputs=inputs))


def reads_elsewhere(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    read = [position for position, buffer in enumerate(compute.inputs) if buffer is not None]
    if not read:
        raise Nothing
    position = draw.choice(read)
    (lower, upper), *rest = compute.input_regions[position]
    regions = list(compute.input_regions)
    regions[position] = ((lower + 1, upper + 1), *rest)
    subject.replace_instruction(worker, place, dataclasses.replace(compute, input_regions=tuple(regions)))


def writes_an_output_less(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    subject.replace_instruction(worker, place, dataclasses.replace(compute, outputs=compute.outputs[:-1]))


def reduces_otherwise(subject, draw):
    reductions = subject.instructions(Reduce)
    if not reductions:
        raise Nothing
    worker, place, reduce = draw.choice(reductions)
    other = Reducer.PROD if reduce.reducer is not Reducer.PROD else Reducer.MIN
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, reducer=other))


def fetches_what_is_to_be_reduced(subject, draw):
    reductions = subject.instructions(Reduce)
    if not reductions:
        raise Nothing
    worker, place, reduce = draw.choice(reductions)
    fetch = MultiFetch(reduce.operation, reduce.target, reduce.parts[0])
    subject.replace_instruction(worker, place, fetch)


def reduces_before_it_computes(subject, draw):
    reductions = subject.instructions(Reduce)
    if not reductions:
        raise Nothing
    worker, place, reduce = draw.choice(reductions)
    subject.replace_instruction(worker, place)
    first = next(
        (index, instruction)
        for index, instruction in enumerate(subject.program.programs[worker].instructions)
        if instruction.operation == reduce.operation
    )
    subject.replace_instruction(worker, first[0], reduce, first[1])


def goes_on_after_the_last_operation(subject, draw):
    worker = draw.randrange(subject.plan.workers)
    instructions = subject.program.programs[worker].instructions
    after = dataclasses.replace(instructions[-1], operation=len(subject.graph.operations))
    subject.replace_instruction(worker, len(instructions) - 1, instructions[-1], after)


def has_a_program_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, programs=subject.program.programs[:-1])


def has_shards_of_a_tensor_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, shards=subject.program.shards[:-1])


def has_a_buffer_of_another_size(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    one = subject.program.programs[worker]
    changed = dataclasses.replace(buffer, nbytes=buffer.nbytes + draw.choice([-1, 4]))
    buffers = (*one.buffers[: buffer.index], changed, *one.buffers[buffer.index + 1 :])
    programs = list(subject.program.programs)
    programs[worker] = dataclasses.replace(one, buffers=buffers)
    subject.program = dataclasses.replace(subject.program, programs=tuple(programs))


def writes_an_update_into_another_tensor(subject, draw):
    """The shards of another tensor of the same shape, cut alike."""
    tensors, shards = subject.graph.tensors, list(subject.program.shards)

    def regions(tensor):
        buffers = [program.buffers for program in subject.program.programs]
        return [buffers[worker][shard].region for worker, shard in enumerate(shards[tensor])]

    fitting = [
        (alias, other.index)
        for alias in range(len(tensors))
        for other in tensors
        if tensors[alias].alias is not None
        and other.alias is None
        and other.index != tensors[alias].alias
        and regions(alias) == regions(other.index)
    ]
    if not fitting:
        raise Nothing
    alias, other = draw.choice(fitting)
    shards[alias] = shards[other]
    subject.program = dataclasses.replace(subject.program, shards=tuple(shards))


def says_it_fetches_other_bytes(subject, draw):
    planned = subject.program.planned_bytes + draw.choice([-4, 4])
    subject.program = dataclasses.replace(subject.program, planned_bytes=planned)


def swaps_two_shards(subject, draw):
    """Of tensors of which the worker owns other regions or numbers of bytes."""
    shards = [list(owners) for owners in subject.program.shards]
    worker = draw.randrange(subject.plan.workers)
    first, second = draw.sample(range(len(shards)), 2)
    if shards[first] == shards[second]:
        raise Nothing
    shards[first][worker], shards[second][worker] = shards[second][worker], shards[first][worker]
    subject.program = dataclasses.replace(subject.program, shards=tuple(map(tuple, shards)))


def has_a_memory_plan_for_fewer_workers(subject, draw):
    del draw.choice([subject.offsets, subject.arenas, subject.waits])[-1]


def has_an_offset_less(subject, draw):
    del draw.choice(subject.offsets)[-1]


def has_the_waits_of_an_instruction_less(subject, draw):
    del draw.choice(subject.waits)[-1]


def puts_two_outputs_into_one_place(subject, draw):
    several = [
        (worker, compute)
        for worker, _, compute in subject.instructions(Compute)
        if len(set(compute.outputs)) > 1
    ]
    if not several:
        raise Nothing
    worker, compute = draw.choice(several)
    first, second = draw.sample(compute.outputs, 2)
    subject.offsets[worker][first] = subject.offsets[worker][second]
    subject.arenas[worker] += subject.program.programs[worker].buffers[first].nbytes


def lies_outside_its_arena(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    subject.offsets[worker][buffer.index] = draw.choice([-64, subject.arenas[worker], 1 << 40])


def has_too_small_an_arena(subject, draw):
    worker, _, _ = draw.choice(subject.buffers())
    ends = [subject.offsets[w][b.index] + b.nbytes for w, b, _ in subject.buffers() if w == worker]
    subject.arenas[worker] = max(ends) - draw.choice([1, 4])


def writes_over_what_lasts(subject, draw):
    """Any other buffer of the worker that is used, put where a shard lies that lives across iterations."""
    worker, lasting, _ = draw.choice([entry for entry in subject.buffers() if entry[2]])
    used = {b for i in subject.program.programs[worker].instructions for b in written(i)}
    others = [b for w, b, lasts in subject.buffers() if w == worker and not lasts and b.index in used]
    if not others:
        raise Nothing
    buffer = draw.choice(others)
    subject.offsets[worker][buffer.index] = subject.offsets[worker][lasting.index]
    subject.arenas[worker] += buffer.nbytes


def shares_what_lasts(subject, draw):
    worker = draw.randrange(subject.plan.workers)
    lasting = [b for w, b, lasts in subject.buffers() if w == worker and lasts]
    if len(lasting) < 2:
        raise Nothing
    first, second = draw.sample(lasting, 2)
    subject.offsets[worker][first.index] = subject.offsets[worker][second.index]
    subject.arenas[worker] += first.nbytes


def writes_over_what_it_reads(subject, draw):
    """An output put where an input lies of which other elements are read."""
    fitting = []
    for worker, _, compute in subject.instructions(Compute):
        bound = subject.graph.operations[compute.operation].bound
        buffers = subject.program.programs[worker].buffers
        for name, buffer in zip(bound.description.tensor_names, compute.inputs, strict=True):
            if buffer is not None and name not in bound.in_place and buffers[buffer].nbytes:
                fitting += [(worker, buffer, o) for o in compute.outputs if o != buffer and buffers[o].nbytes]
    if not fitting:
        raise Nothing
    worker, source, output = draw.choice(fitting)
    subject.offsets[worker][output] = subject.offsets[worker][source]
    subject.arenas[worker] += subject.program.programs[worker].buffers[output].nbytes


def waits(subject):
    """(worker, index, position) of every wait."""
    return [
        (worker, index, position)
        for worker, listed in enumerate(subject.waits)
        for index, each in enumerate(listed)
        for position in range(len(each))
    ]


def does_not_wait(subject, draw):
    if not waits(subject):
        raise Nothing
    worker, index, position = draw.choice(waits(subject))
    del subject.waits[worker][index][position]


def waits_for_too_little(subject, draw):
    if not waits(subject):
        raise Nothing
    worker, index, position = draw.choice(waits(subject))
    other, last = subject.waits[worker][index][position]
    if not last:
        raise Nothing
    subject.waits[worker][index][position] = (other, last - 1)


def waits_for_what_comes_later(subject, draw):
    worker = draw.randrange(subject.plan.workers)
    index = draw.randrange(len(subject.waits[worker]))
    other = (worker + 1) % subject.plan.workers
    subject.waits[worker][index].append((other, len(subject.waits[other]) - 1))


def waits_for_what_there_is_not(subject, draw):
    worker = draw.randrange(subject.plan.workers)
    index = draw.randrange(len(subject.waits[worker]))
    other = (worker + 1) % subject.plan.workers
    missing = draw.choice([(other, len(subject.waits[other])), (other, -1), (subject.plan.workers, 0)])
    subject.waits[worker][index].append(missing)


def written(instruction):
    return instruction.outputs if isinstance(instruction, Compute) else (instruction.target,)


FAMILIES = [
    value
    for value in list(globals().values())
    if callable(value)
    and getattr(value, "__module__", None) == __name__
    and getattr(value, "__code__", None) is not None
    and value.__code__.co_varnames[: value.__code__.co_argcount] == ("subject", "draw")
]

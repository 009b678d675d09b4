"""Memory plans and schedules with one thing changed."""

from __future__ import annotations

from tofu.programs.program import Compute

from .mutated import Nothing, families


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


FAMILIES = families(globals())

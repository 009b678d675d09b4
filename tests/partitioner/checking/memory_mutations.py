"""Memory plans and schedules with one thing changed."""

from __future__ import annotations

import dataclasses

from tofu.programs.clock import reads, writes
from tofu.programs.program import BufferKind, Compute, lane_of

from .mutated import families, some


def has_a_memory_plan_for_fewer_workers(subject, draw):
    del draw.choice([subject.offsets, subject.arenas, subject.waits])[-1]


def has_an_offset_less(subject, draw):
    del draw.choice(subject.offsets)[-1]


def has_the_waits_of_an_instruction_less(subject, draw):
    del draw.choice(subject.waits)[-1]


def puts_two_outputs_into_one_place(subject, draw):
    several = []
    for worker, _, compute in subject.instructions(Compute):
        buffers = subject.program.programs[worker].buffers
        outputs = sorted({output for output in compute.outputs if buffers[output].nbytes})
        several += [(worker, outputs)] if len(outputs) > 1 else []
    worker, outputs = some(draw, several)
    first, second = draw.sample(outputs, 2)
    subject.offsets[worker][first] = subject.offsets[worker][second]
    subject.arenas[worker] += subject.program.programs[worker].buffers[first].nbytes


def lies_outside_its_arena(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    subject.offsets[worker][buffer.index] = draw.choice([-64, subject.arenas[worker], 1 << 40])


def lies_between_elements(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    subject.offsets[worker][buffer.index] += 1
    subject.arenas[worker] += 1


def has_too_small_an_arena(subject, draw):
    worker, _, _ = draw.choice(subject.buffers())
    ends = [subject.offsets[w][b.index] + b.nbytes for w, b, _ in subject.buffers() if w == worker]
    subject.arenas[worker] = max(ends) - draw.choice([1, 4])


def writes_over_what_lasts(subject, draw):
    """Any other buffer of the worker that is used, put where a shard lies that no instruction writes."""
    written = {(w, buffer) for w, _, each in subject.instructions(object) for buffer in writes(each)}
    lasting = [(w, b) for w, b, lasts in subject.buffers() if lasts and (w, b.index) not in written]
    others = [(w, b) for w, b, lasts in subject.buffers() if not lasts and (w, b.index) in written]
    worker, shard, buffer = some(
        draw, [(w, shard, other) for w, shard in lasting for holder, other in others if holder == w]
    )
    subject.offsets[worker][buffer.index] = subject.offsets[worker][shard.index]
    subject.arenas[worker] += buffer.nbytes


def shares_what_lasts(subject, draw):
    lasting = [
        [b for w, b, lasts in subject.buffers() if w == worker and lasts]
        for worker in range(subject.plan.workers)
    ]
    worker = some(draw, [worker for worker, held in enumerate(lasting) if len(held) > 1])
    first, second = draw.sample(lasting[worker], 2)
    subject.offsets[worker][first.index] = subject.offsets[worker][second.index]
    subject.arenas[worker] += first.nbytes


def puts_two_inputs_into_one_place(subject, draw):
    """Two buffers that one computation reads, such as a copy and what another instruction made meanwhile."""
    several = []
    for worker, _, compute in subject.instructions(Compute):
        buffers = subject.program.programs[worker].buffers
        inputs = sorted({b for b in compute.inputs if b is not None and buffers[b].nbytes})
        several += [(worker, inputs)] if len(inputs) > 1 else []
    worker, inputs = some(draw, several)
    first, second = draw.sample(inputs, 2)
    subject.offsets[worker][first] = subject.offsets[worker][second]
    subject.arenas[worker] += subject.program.programs[worker].buffers[first].nbytes


def writes_over_what_it_reads(subject, draw):
    """An output put where an input lies of which other elements are read."""
    fitting = []
    for worker, _, compute in subject.instructions(Compute):
        bound = subject.graph.operations[compute.operation].bound
        buffers = subject.program.programs[worker].buffers
        for name, buffer in zip(bound.description.tensor_names, compute.inputs, strict=True):
            if buffer is not None and name not in bound.in_place and buffers[buffer].nbytes:
                fitting += [(worker, buffer, o) for o in compute.outputs if o != buffer and buffers[o].nbytes]
    worker, source, output = some(draw, fitting)
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


def drops_a_wait(subject, draw, fits):
    """Leave out a wait that fits: `fits` takes the worker and the instruction that waits, then the others."""
    programs, fitting = subject.program.programs, []
    for worker, index, position in waits(subject):
        other, last = subject.waits[worker][index][position]
        if fits(worker, programs[worker].instructions[index], other, programs[other].instructions[last]):
            fitting.append((worker, index, position))
    worker, index, position = some(draw, fitting)
    del subject.waits[worker][index][position]


def does_not_wait(subject, draw):
    drops_a_wait(subject, draw, lambda worker, each, other, awaited: True)


def does_not_wait_for_its_other_lane(subject, draw):
    drops_a_wait(
        subject,
        draw,
        lambda worker, each, other, awaited: worker == other and lane_of(each) is not lane_of(awaited),
    )


def updates_without_waiting_for_readers(subject, draw):
    """An instruction that overwrites a tensor's home does not wait for one that reads the old value."""

    overwritten = {tensor.alias for tensor in subject.graph.tensors}

    def fits(worker, each, other, awaited):
        buffers, homes = subject.program.programs[worker].buffers, subject.program.homes
        written = {
            (worker, buffer)
            for buffer in writes(each)
            for tensor in [buffers[buffer].tensor]
            if tensor in overwritten and (worker, buffer) in homes[tensor]
        }
        return not written.isdisjoint(reads(other, awaited))

    drops_a_wait(subject, draw, fits)


def uses_memory_again_too_early(subject, draw):
    """An instruction does not wait for one that reads a fetched region or a copy, whose memory it takes."""

    def fits(worker, each, other, awaited):
        buffers = subject.program.programs[worker].buffers
        used = {buffers[buffer] for holder, buffer in reads(other, awaited) if holder == worker}
        return any(
            buffer.kind in (BufferKind.FETCHED, BufferKind.COPY)
            and target != buffer.index
            and overlap(subject, worker, buffer, buffers[target])
            for buffer in used
            for target in writes(each)
        )

    drops_a_wait(subject, draw, fits)


def overlap(subject, worker, first, second):
    """Tell whether two buffers have memory in common."""
    offsets = subject.offsets[worker]
    starts = offsets[first.index], offsets[second.index]
    ends = starts[0] + first.nbytes, starts[1] + second.nbytes
    return max(starts) < min(ends)


def waits_for_too_little(subject, draw):
    several = [
        (worker, index, position)
        for worker, index, position in waits(subject)
        if subject.waits[worker][index][position][1]
    ]
    worker, index, position = some(draw, several)
    other, last = subject.waits[worker][index][position]
    subject.waits[worker][index][position] = (other, last - 1)


def waits_for_what_comes_later(subject, draw):
    worker, index, each = draw.choice(subject.instructions(object))
    later = [
        (other, place)
        for other, place, candidate in subject.instructions(object)
        if other != worker and candidate.tick >= each.tick
    ]
    subject.waits[worker][index].append(some(draw, later))


def waits_for_what_there_is_not(subject, draw):
    worker, index, _ = draw.choice(subject.instructions(object))
    other = (worker + 1) % subject.plan.workers
    missing = draw.choice([(other, len(subject.waits[other])), (other, -1), (subject.plan.workers, 0)])
    subject.waits[worker][index].append(missing)


def collects_in_the_tick_of_a_computation(subject, draw):
    """The clock is fast for a transfer: it has the tick of the computation whose output it reads."""
    found = [
        (worker, place, dataclasses.replace(each, tick=source.tick))
        for (worker, place, each), (_, _, source) in subject.dependences()
        if isinstance(source, Compute)
        and not isinstance(each, Compute)
        and all(b.tick <= source.tick for b in subject.program.programs[worker].instructions[:place])
    ]
    worker, place, early = some(draw, found)
    subject.replace_instruction(worker, place, early)


FAMILIES = families(globals())

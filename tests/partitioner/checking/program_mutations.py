"""Programs with one thing changed."""

from __future__ import annotations

import dataclasses

from tofu.programs.program import Compute, MultiFetch, Reduce
from tofu.tdl.ast import Reducer

from .mutated import Nothing, families


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
    fetch = MultiFetch(reduce.operation, reduce.target, reduce.parts[0], reduce.tick)
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
    early = dataclasses.replace(reduce, tick=first[1].tick)
    subject.replace_instruction(worker, first[0], early, first[1])


def goes_on_after_the_last_operation(subject, draw):
    worker = draw.randrange(subject.plan.workers)
    instructions = subject.program.programs[worker].instructions
    after = dataclasses.replace(instructions[-1], operation=len(subject.graph.operations))
    subject.replace_instruction(worker, len(instructions) - 1, instructions[-1], after)


def has_a_program_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, programs=subject.program.programs[:-1])


def has_homes_of_a_tensor_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, homes=subject.program.homes[:-1])


def has_a_buffer_of_another_size(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    one = subject.program.programs[worker]
    changed = dataclasses.replace(buffer, nbytes=buffer.nbytes + draw.choice([-1, 4]))
    buffers = (*one.buffers[: buffer.index], changed, *one.buffers[buffer.index + 1 :])
    programs = list(subject.program.programs)
    programs[worker] = dataclasses.replace(one, buffers=buffers)
    subject.program = dataclasses.replace(subject.program, programs=tuple(programs))


def writes_an_update_into_another_tensor(subject, draw):
    """The home of another tensor of the same shape, cut in the same way."""
    tensors, homes = subject.graph.tensors, list(subject.program.homes)

    def regions(tensor):
        buffers = [program.buffers for program in subject.program.programs]
        return [buffers[worker][number].region for worker, number in homes[tensor]]

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
    homes[alias] = homes[other]
    subject.program = dataclasses.replace(subject.program, homes=tuple(homes))


def says_it_fetches_other_bytes(subject, draw):
    planned = subject.program.planned_bytes + draw.choice([-4, 4])
    subject.program = dataclasses.replace(subject.program, planned_bytes=planned)


def swaps_two_homes(subject, draw):
    """Of tensors of which the worker owns other regions or numbers of bytes."""
    homes = [list(held) for held in subject.program.homes]
    worker = draw.randrange(subject.plan.workers)
    first, second = draw.sample(range(len(homes)), 2)
    if homes[first] == homes[second]:
        raise Nothing
    homes[first][worker], homes[second][worker] = homes[second][worker], homes[first][worker]
    subject.program = dataclasses.replace(subject.program, homes=tuple(map(tuple, homes)))


FAMILIES = families(globals())

"""Programs with one thing changed."""

from __future__ import annotations

import dataclasses
from math import inf

from tofu.programs.clock import reads, transferred
from tofu.programs.plain_regions import inside
from tofu.programs.program import BufferKind, Compute, MultiFetch, Piece, Reduce
from tofu.tdl.ast import Reducer

from .mutated import Nothing, families, some


def leaves_out_an_instruction(subject, draw):
    worker, place, _ = draw.choice(subject.needed_instructions(Compute, MultiFetch, Reduce))
    subject.replace_instruction(worker, place)


def leaves_out_an_operation(subject, draw):
    operation = draw.choice(subject.graph.operations)
    for worker, program in enumerate(subject.program.programs):
        subject.replace_instructions(
            worker, [each for each in program.instructions if each.operation != operation.index]
        )


def computes_an_operation_nowhere(subject, draw):
    """All transfers are left as they are."""
    operation = draw.choice(subject.graph.operations)
    for worker, program in enumerate(subject.program.programs):
        left = [
            each
            for each in program.instructions
            if each.operation != operation.index or not isinstance(each, Compute)
        ]
        subject.replace_instructions(worker, left)


def repeats_an_instruction(subject, draw):
    worker, place, instruction = draw.choice(subject.instructions(Compute, MultiFetch, Reduce))
    subject.replace_instruction(worker, place, instruction, instruction)


def computes_once_more_later(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    again = (compute.tick, 1)
    subject.replace_instruction(worker, place, compute, compute)
    subject.retime(lambda w, i, each: again if (w, i) == (worker, place + 1) else (each.tick, 0))


def computes_what_a_neighbour_computes(subject, draw):
    """The task of another worker, next to a task that then overlaps it."""
    grown = [
        (worker, place, compute, axis)
        for worker, place, compute in subject.instructions(Compute)
        for axis, (lower, _) in enumerate(compute.box)
        if lower
    ]
    worker, place, compute, axis = some(draw, grown)
    lower, upper = compute.box[axis]
    box = (*compute.box[:axis], (lower - 1, upper), *compute.box[axis + 1 :])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, box=box))


def runs_early(subject, draw, reader, writer):
    """Run an instruction before one that writes what it reads; of these kinds."""
    found = [
        pair
        for pair in subject.dependences()
        if isinstance(pair[0][2], reader) and isinstance(pair[1][2], writer)
    ]
    (worker, place, _), (_, _, source) = some(draw, found)
    early = (source.tick, -1)
    subject.retime(lambda w, i, each: early if (w, i) == (worker, place) else (each.tick, 0))


def computes_before_it_has_fetched(subject, draw):
    runs_early(subject, draw, Compute, MultiFetch)


def computes_before_it_has_reduced(subject, draw):
    runs_early(subject, draw, Compute, Reduce)


def computes_before_it_has_computed(subject, draw):
    runs_early(subject, draw, Compute, Compute)


def collects_before_the_last_computation(subject, draw):
    runs_early(subject, draw, (MultiFetch, Reduce), Compute)


def collects_before_the_first_hop(subject, draw):
    runs_early(subject, draw, (MultiFetch, Reduce), (MultiFetch, Reduce))


def ticks(subject, operation):
    return [each.tick for _, _, each in subject.instructions(object) if each.operation == operation.index]


def overwritten_by(subject):
    """The operation that overwrites each tensor that one overwrites."""
    return {
        subject.graph.tensors[tensor].alias: operation
        for operation in subject.graph.operations
        for tensor in operation.outputs
        if subject.graph.tensors[tensor].alias is not None
    }


def updates_before_a_reader(subject, draw):
    """Run an operation that reads the home of an old value after the one that overwrites it.

    Its results are read later still, so nothing else goes wrong. A copy that was made in time may be read
    after the update: it is the value that the graph asks for.
    """
    at_home = {
        (each.operation, tensor)
        for worker, _, each in subject.instructions(object)
        for holder, buffer in reads(worker, each)
        for tensor in [subject.program.programs[holder].buffers[buffer].tensor]
        if (holder, buffer) in subject.program.homes[tensor]
    }
    updates, fitting = overwritten_by(subject), []
    for reader in subject.graph.operations:
        later = [ticks(subject, o)[0] for o in subject.graph.operations if {*o.inputs} & {*reader.outputs}]
        for tensor in reader.inputs:
            update = updates.get(tensor)
            if update in (None, reader) or (reader.index, tensor) not in at_home:
                continue
            if min(later, default=inf) > max(ticks(subject, update)):
                fitting.append((reader, max(ticks(subject, update))))
    reader, last = some(draw, fitting)
    subject.retime(
        lambda w, i, each: (last, each.tick) if each.operation == reader.index else (each.tick, -1)
    )


def reads_a_stale_copy(subject, draw):
    """A reader of a new value takes a copy of the old one, made before the update."""
    tensors, fitting = subject.graph.tensors, []
    for (worker, place, each), (_, _, source) in subject.dependences():
        operation = subject.graph.operations[each.operation]
        made = subject.graph.operations[source.operation]
        if isinstance(each, MultiFetch) and operation is not made and len(transferred(each)):
            buffer = subject.program.programs[worker].buffers[each.target]
            if tensors[buffer.tensor].alias is not None:
                fitting.append((worker, place, min(ticks(subject, made))))
    worker, place, first = some(draw, fitting)
    subject.retime(lambda w, i, each: (first, -1) if (w, i) == (worker, place) else (each.tick, 0))


def keeps_a_copy_after_the_update(subject, draw):
    """The old value is written home again from a copy, after it was overwritten."""
    updates, fitting = overwritten_by(subject), []
    for worker, _, fetch in subject.instructions(MultiFetch):
        buffer = subject.program.programs[worker].buffers[fetch.target]
        if buffer.tensor in updates and buffer.kind in (BufferKind.FETCHED, BufferKind.COPY):
            for holder, number in subject.program.homes[buffer.tensor]:
                home = subject.program.programs[holder].buffers[number]
                if inside(home.region, buffer.region):
                    fitting.append((holder, home, Piece(worker, buffer.index, home.region)))
    holder, home, piece = some(draw, fitting)
    update = updates[home.tensor]
    last = max(ticks(subject, update))
    back = MultiFetch(update.index, home.index, (piece,), last)
    subject.replace_instructions(holder, [*subject.program.programs[holder].instructions, back])
    subject.retime(lambda w, i, each: (last, 1) if each is back else (each.tick, 0))


def reads_one_term_where_it_is_not_linear(subject, draw):
    """A reduction of which only the first term is fetched, for an operation that is not linear in it."""
    fitting = []
    for (_, _, each), (worker, place, source) in subject.dependences():
        operation = subject.graph.operations[each.operation]
        if isinstance(each, Compute) and isinstance(source, Reduce):
            names = operation.bound.description.tensor_names
            read = [n for n, buffer in zip(names, each.inputs, strict=True) if buffer == source.target]
            if not operation.bound.linear_in(read):
                fitting.append((worker, place, source))
    worker, place, reduce = some(draw, fitting)
    fetch = MultiFetch(reduce.operation, reduce.target, reduce.parts[0], reduce.tick)
    subject.replace_instruction(worker, place, fetch)


def reads_another_term(subject, draw):
    """A task that reads a term takes the same region of another one."""
    fitting = []
    for worker, place, fetch in subject.instructions(MultiFetch):
        for piece in fetch.pieces[:1]:
            buffers = subject.program.programs[piece.worker].buffers
            here = buffers[piece.buffer]
            fitting += [
                (worker, place, fetch, dataclasses.replace(piece, worker=holder, buffer=number))
                for holder, number in subject.program.homes[here.tensor]
                if here.kind is BufferKind.PARTIAL
                and (holder, number) != (piece.worker, piece.buffer)
                and subject.program.programs[holder].buffers[number].region == here.region
                and (piece.worker, piece.buffer) in subject.program.homes[here.tensor]
                and terms_differ(subject, (piece.worker, piece.buffer), (holder, number))
            ]
    worker, place, fetch, piece = some(draw, fitting)
    subject.replace_instruction(worker, place, dataclasses.replace(fetch, pieces=(piece, *fetch.pieces[1:])))


def terms_differ(subject, first, second):
    """Tell whether two holdings of a tensor hold different terms, as the plan says."""
    tensor = subject.graph.tensors[subject.program.programs[first[0]].buffers[first[1]].tensor]
    homes = subject.program.homes[tensor.index]
    terms = subject.plan.layouts[tensor.name].expanded.term.tolist()
    return len(terms) == len(homes) and terms[homes.index(first)] != terms[homes.index(second)]


def puts_instructions_in_another_order(subject, draw):
    """An instruction and the next but at its tick, in the clock as in the list."""
    found = [
        (worker, place)
        for (worker, place, _), (owner, source, _) in subject.dependences()
        if owner == worker and source == place - 1
    ]
    worker, place = some(draw, found)
    first, second = subject.program.programs[worker].instructions[place - 1 : place + 1]
    subject.replace_instruction(worker, place - 1, dataclasses.replace(second, tick=first.tick))
    subject.replace_instruction(worker, place, dataclasses.replace(first, tick=second.tick))


def changed_piece(subject, draw, change):
    """One piece of one fetch or reduction changed; `change` gives the pieces instead of it."""
    moving = subject.instructions(MultiFetch, Reduce)
    worker, place, instruction = some(
        draw, [e for e in moving if transferred(e[2]) and transferred(e[2])[0].region]
    )
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
        return (dataclasses.replace(piece, buffer=some(draw, others)),)

    changed_piece(subject, draw, change)


def reduces_a_term_less(subject, draw):
    worker, place, reduce = some(draw, subject.needed_instructions(Reduce))
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, parts=reduce.parts[:-1]))


def reduces_a_term_twice(subject, draw):
    worker, place, reduce = some(draw, subject.needed_instructions(Reduce))
    parts = (*reduce.parts[:-1], reduce.parts[0])
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, parts=parts))


def computes_another_box(subject, draw):
    worker, place, compute = some(draw, [e for e in subject.instructions(Compute) if e[2].box])
    axis = draw.randrange(len(compute.box))
    lower, upper = compute.box[axis]
    box = (*compute.box[:axis], (lower, upper + draw.choice([-1, 1])), *compute.box[axis + 1 :])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, box=box))


def computes_into_another_buffer(subject, draw):
    worker, place, compute = draw.choice(subject.needed_instructions(Compute))
    outputs = (compute.outputs[0] + 1, *compute.outputs[1:])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, outputs=outputs))


def computes_from_another_buffer(subject, draw):
    """A buffer of another tensor."""
    worker, place, compute = draw.choice(subject.instructions(Compute))
    buffers = subject.program.programs[worker].buffers
    read = [position for position, buffer in enumerate(compute.inputs) if buffer is not None]
    position = some(draw, read)
    others = [b.index for b in buffers if b.tensor != buffers[compute.inputs[position]].tensor]
    inputs = (*compute.inputs[:position], some(draw, others), *compute.inputs[position + 1 :])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, inputs=inputs))


def reads_elsewhere(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    read = [position for position, region in enumerate(compute.input_regions) if region]
    position = some(draw, read)
    (lower, upper), *rest = compute.input_regions[position]
    regions = list(compute.input_regions)
    regions[position] = ((lower + 1, upper + 1), *rest)
    subject.replace_instruction(worker, place, dataclasses.replace(compute, input_regions=tuple(regions)))


def writes_an_output_less(subject, draw):
    worker, place, compute = draw.choice(subject.instructions(Compute))
    subject.replace_instruction(worker, place, dataclasses.replace(compute, outputs=compute.outputs[:-1]))


def reduces_otherwise(subject, draw):
    worker, place, reduce = some(draw, subject.needed_instructions(Reduce))
    other = Reducer.PROD if reduce.reducer is not Reducer.PROD else Reducer.MIN
    subject.replace_instruction(worker, place, dataclasses.replace(reduce, reducer=other))


def fetches_what_is_to_be_reduced(subject, draw):
    worker, place, reduce = some(draw, subject.needed_instructions(Reduce))
    fetch = MultiFetch(reduce.operation, reduce.target, reduce.parts[0], reduce.tick)
    subject.replace_instruction(worker, place, fetch)


def reduces_before_it_computes(subject, draw):
    runs_early(subject, draw, Reduce, Compute)


def reads_an_input_less(subject, draw):
    worker, place, compute = some(draw, [e for e in subject.instructions(Compute) if e[2].inputs])
    less = draw.choice([{"inputs": compute.inputs[:-1]}, {"input_regions": compute.input_regions[:-1]}])
    subject.replace_instruction(worker, place, dataclasses.replace(compute, **less))


def goes_on_after_the_last_operation(subject, draw):
    worker, place, last = draw.choice(subject.instructions(object))
    after = dataclasses.replace(last, operation=len(subject.graph.operations))
    subject.replace_instruction(worker, place, last, after)


def has_a_program_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, programs=subject.program.programs[:-1])


def has_homes_of_a_tensor_less(subject, draw):
    subject.program = dataclasses.replace(subject.program, homes=subject.program.homes[:-1])


def has_a_buffer_of_another_size(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    replace_buffer(subject, worker, dataclasses.replace(buffer, nbytes=buffer.nbytes + draw.choice([-1, 4])))


def has_a_buffer_of_a_missing_tensor(subject, draw):
    worker, buffer, _ = draw.choice(subject.buffers())
    missing = draw.choice([-1, len(subject.graph.tensors)])
    replace_buffer(subject, worker, dataclasses.replace(buffer, tensor=missing))


def replace_buffer(subject, worker, buffer):
    one = subject.program.programs[worker]
    buffers = (*one.buffers[: buffer.index], buffer, *one.buffers[buffer.index + 1 :])
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
        and homes[alias] != homes[other.index]
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
    """Of tensors that are not in one place."""
    homes = [list(held) for held in subject.program.homes]
    first, second = draw.sample([tensor for tensor, held in enumerate(homes) if held], 2)
    if homes[first] == homes[second]:
        raise Nothing
    one, other = draw.randrange(len(homes[first])), draw.randrange(len(homes[second]))
    homes[first][one], homes[second][other] = homes[second][other], homes[first][one]
    subject.program = dataclasses.replace(subject.program, homes=tuple(map(tuple, homes)))


FAMILIES = families(globals())

"""The independent checker accepts what the search makes, and refuses whatever is made of it by force."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.errors import PlanError
from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.checking.check_plan import check_workers, verify
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.layouts.forms import Partial, Parts, Spread
from tofu.partitioner.plans.compose import compose
from tofu.partitioner.plans.plan import decode_plan
from tofu.partitioner.plans.plan_file import encode_plan
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.memory import plan_memory
from tofu.programs.program import Compute, MultiFetch, Reduce
from tofu.programs.schedule import schedule

PLAN_SEEDS = 60
PROGRAM_SEEDS = 60


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 2, 6, 7, 8])
def test_valid_plans_are_accepted(graph, method, workers):
    plan = partition(graph, workers, method=method)
    verify(graph, plan)
    check_program(graph, workers, plan.cost_bytes, lower(graph, plan))


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_graphs_are_accepted(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=5))
    plan = partition(graph, data.draw(st.integers(1, 9)))
    verify(graph, plan)
    check_program(graph, plan.workers, plan.cost_bytes, lower(graph, plan))


def mutate_document(document, draw):
    """Change one thing in a plan file; returns what was done."""
    tensors, operations = document["tensors"], document["operations"]
    tensor, operation = draw.choice(sorted(tensors)), draw.choice(sorted(operations))
    step = draw.randrange(len(document["factors"]))
    kind = draw.choice(
        ["dimension", "strategy", "cost", "move", "shape", "print", "drop", "rename", "workers"]
    )
    match kind:
        case "dimension":
            tensors[tensor]["dimensions"][step] = draw.choice([None, 0, 1, 2, 3, -1])
        case "strategy":
            operations[operation][step] = draw.choice([None, "i", "j", "k", "b", "co", "q", "dx"])
        case "cost":
            amount = draw.choice([-8, -4, -1, 1, 4, 1024])
            document["cost_bytes"] += amount
            document["step_cost_bytes"][step] += amount
        case "move":
            amount = draw.choice([1, 4, 400])
            document["step_cost_bytes"][step] += amount
            document["step_cost_bytes"][step - 1] -= amount
        case "shape":
            tensors[tensor]["shape"][draw.randrange(len(tensors[tensor]["shape"]))] += draw.choice([1, 8])
        case "print":
            place = draw.randrange(16)
            text = document["fingerprint"]
            other = "0" if text[place] != "0" else "1"
            document["fingerprint"] = text[:place] + other + text[place + 1 :]
        case "drop":
            entries = draw.choice([tensors, operations])
            del entries[draw.choice(sorted(entries))]
        case "rename":
            entries = draw.choice([tensors, operations])
            entries["stranger"] = entries.pop(draw.choice(sorted(entries)))
        case "workers":
            document["workers"] = draw.choice([1, 2, 3, 12, 16])
    return kind


def refused(check):
    try:
        check()
    except PlanError:
        return True
    return False


def test_mutated_plan_files_are_refused(graph):
    """Where a change leaves a plan that costs the same (another of equal choices), both checkers say so."""
    count = 0
    for seed in range(PLAN_SEEDS):
        draw = random.Random(seed)
        original = encode_plan(partition(graph, draw.choice([4, 6, 8]), keep=False))
        document = json.loads(original)
        mutate_document(document, draw)
        if document == json.loads(original):
            continue
        data = json.dumps(document).encode()
        mine = refused(lambda data=data: verify(graph, decode_plan(data)))
        assert mine == refused(lambda data=data: decode_plan(data).verify(graph)), (seed, document)
        count += mine
    assert count >= PLAN_SEEDS * 2 // 3


def mutate_program(program, draw):
    """The program with one instruction changed, or None if the draw does not apply."""
    worker = draw.randrange(program.workers)
    one = program.programs[worker]
    if not one.instructions:
        return None
    place = draw.randrange(len(one.instructions))
    changed = mutate_instruction(one.instructions[place], draw, program.workers)
    if changed is None:
        return None
    instructions = (*one.instructions[:place], *changed, *one.instructions[place + 1 :])
    programs = list(program.programs)
    programs[worker] = dataclasses.replace(one, instructions=instructions)
    return dataclasses.replace(program, programs=tuple(programs))


def mutate_instruction(instruction, draw, workers):
    kind = draw.choice(["drop", "twice", "piece", "target", "part"])
    if kind == "drop":
        return ()
    if kind == "twice":
        return (instruction, instruction)
    match instruction:
        case MultiFetch(pieces=pieces) if kind == "piece":
            return (dataclasses.replace(instruction, pieces=mutate_pieces(pieces, draw, workers)),)
        case Reduce(parts=parts) if kind == "part":
            return (dataclasses.replace(instruction, parts=parts[:-1]),)
        case Reduce(parts=parts) if kind == "piece":
            pieces = mutate_pieces(parts[0], draw, workers)
            return (dataclasses.replace(instruction, parts=(pieces, *parts[1:])),)
        case Compute(box=box) if kind == "piece" and box:
            (lower, upper), *rest = box
            return (dataclasses.replace(instruction, box=((lower, upper + 1), *rest)),)
        case MultiFetch() | Reduce() if kind == "target":
            return (dataclasses.replace(instruction, target=instruction.target + 1),)
        case Compute() if kind == "target":
            outputs = tuple(output + 1 for output in instruction.outputs)
            return (dataclasses.replace(instruction, outputs=outputs),)
    return None


def mutate_pieces(pieces, draw, workers):
    number = draw.randrange(len(pieces))
    piece = pieces[number]
    (lower, upper), *rest = piece.region
    new = draw.choice(
        [
            (),
            (piece, piece),
            (dataclasses.replace(piece, region=((lower, upper - 1), *rest)),),
            (dataclasses.replace(piece, region=((lower + 1, upper + 1), *rest)),),
            (dataclasses.replace(piece, buffer=piece.buffer + 1),),
            (dataclasses.replace(piece, worker=workers),),
        ]
    )
    return (*pieces[:number], *new, *pieces[number + 1 :])


def test_mutated_programs_are_refused(graph):
    count = 0
    for seed in range(PROGRAM_SEEDS * 2):
        draw = random.Random(seed)
        workers = draw.choice([4, 6, 8])
        plan = partition(graph, workers)
        mutated = mutate_program(lower(graph, plan), draw)
        if mutated is None:
            continue
        count += 1
        with pytest.raises(PlanError):
            check_program(graph, workers, plan.cost_bytes, mutated)
    assert count >= PROGRAM_SEEDS


def test_refusals_are_by_name(toy, texts):
    def build(rows, extra=False):
        builder = toy()
        a = builder.tensor(rows, 4, name="a")
        builder.apply(texts["RELU"], a)
        if extra:
            builder.apply(texts["RELU"], a)
        return builder.graph()

    plan = partition(build(8), 4)
    with pytest.raises(PlanError, match="another graph: tensor 't2' exists only in the graph"):
        verify(build(8, extra=True), plan)
    with pytest.raises(
        PlanError, match=r"other shapes: tensor 'a' has shape \(8, 4\) in the plan and \(16, 4\)"
    ):
        verify(build(16), plan)
    with pytest.raises(PlanError, match="for 4 workers, not for 8"):
        check_workers(plan, 8)
    check_workers(plan, 4)
    newer = encode_plan(plan).replace('"version": 1', '"version": 3')
    with pytest.raises(PlanError, match='"version" is 3; this Tofu reads versions 1 and 2'):
        decode_plan(newer.encode())
    costs = dataclasses.replace(plan, cost_bytes=plan.cost_bytes + 4)
    with pytest.raises(PlanError, match=r"states 4 bytes.*its choices move 0"):
        verify(build(8), costs)


def test_plans_changed_in_python_are_refused(toy, texts):
    """A plan file cannot say these; a plan that a program has changed can."""
    builder = toy()
    builder.apply(texts["MATMUL"], builder.tensor(8, 4, name="a"), builder.tensor(4, 8))
    graph = builder.graph()
    plan = partition(graph, 4)
    layout = plan.layouts["a"]

    def with_layout(**changes):
        layouts = {**plan.layouts, "a": dataclasses.replace(layout, **changes)}
        return dataclasses.replace(plan, layouts=layouts)

    for changed, says in (
        (dataclasses.replace(plan, workers=8), r"factors \(2, 2\) do not multiply to 8 workers"),
        (with_layout(form=(0,)), r"tensor 'a' of shape \(8, 4\) has 1 choices, but the plan has 2 steps"),
        (with_layout(factors=(4,)), r"tensor 'a' is split by \(4,\), but the plan's factors are \(2, 2\)"),
        (
            with_layout(form=(0, 2)),
            r"tensor 'a' of shape \(8, 4\) is split along 2; it can be split along 0, 1",
        ),
        (
            dataclasses.replace(plan, strategies={"matmul0": ("i",)}),
            "operation 'matmul0' has 1 choices, but the plan has 2 steps",
        ),
        (
            dataclasses.replace(plan, lower_bound_bytes=plan.cost_bytes + 1),
            f"lower bound of {plan.cost_bytes + 1} bytes, which is not between 0 and its cost of",
        ),
    ):
        with pytest.raises(PlanError, match=says):
            verify(graph, changed)


@pytest.mark.parametrize("shapes", [((0, 4), (4, 4)), ((4, 0), (0, 4))])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_tensors_without_elements_are_accepted(toy, texts, shapes, workers):
    builder = toy()
    first, second = (builder.tensor(*shape) for shape in shapes)
    builder.apply(texts["RELU"], builder.apply(texts["MATMUL"], first, second))
    graph = builder.graph()
    plan = partition(graph, workers)
    verify(graph, plan)
    program = lower(graph, plan)
    check_program(graph, workers, plan.cost_bytes, program)
    memory = plan_memory(program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (8, 4)])
def test_operations_that_no_worker_computes_are_refused(toy, texts, shape):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(*shape))
    graph = builder.graph()
    nowhere = dataclasses.replace(partition(graph, 2), strategies={"relu0": Parts(())})
    with pytest.raises(PlanError, match="operation 'relu0' is computed by no worker"):
        verify(graph, nowhere)
    with pytest.raises(PlanError, match="operation 'relu0': no worker has a part; give at least one"):
        nowhere.verify(graph)


def test_programs_that_read_greatest_values_as_a_sum_are_refused(toy, texts):
    """Lowering a plan that nothing has verified makes programs that only `check_program` can refuse."""
    builder = toy()
    a = builder.tensor(8, 4)
    maxima = "def maxima(a):\n    return lambda i, u=1: Max(lambda j: a[i, j])"
    builder.apply(texts["TRANSPOSE"], builder.apply(maxima, a))
    graph = builder.graph()
    terms = Spread(((Partial(), 2),), (0, 1))
    plan = compose(graph, 2, {"*": (None,)}, {"*": (None,)})
    layouts = {**plan.layouts, "t1": dataclasses.replace(plan.layouts["t1"], form=terms, via=None)}
    halves = Spread((("j", 2),), (0, 1))
    plan = dataclasses.replace(plan, layouts=layouts, strategies={"maxima0": halves, "transpose1": terms})
    program = lower(graph, plan)
    with pytest.raises(PlanError, match="reads terms of 't1', which are combined by Max"):
        check_program(graph, 2, program.planned_bytes, program)


def test_copies_may_have_only_what_is_read(toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(8, 4, name="a"))
    graph = builder.graph()
    one, other = (0, ((0, 4), (0, 4))), (1, ((4, 8), (0, 4)))

    def plan(*held):
        copies = {"a": [Copy(Parts(held), ("relu0",))]}
        return compose(graph, 2, {"relu0": Parts((one, other))}, {"a": (None,)}, copies=copies)

    verify(graph, plan(one, other))
    with pytest.raises(PlanError, match=r"copy 1 of tensor 'a', which 'relu0' reads: worker 1 needs \[4:8"):
        plan(one)
    lacking = {"a": (Copy(Parts((one,)), ("relu0",)),)}
    with pytest.raises(
        PlanError, match=r"'relu0' reads a copy of 'a': worker 1 needs \[4:8, 0:4\], which no worker holds"
    ):
        verify(graph, dataclasses.replace(plan(one, other), copies=lacking))


def test_memory_of_programs_in_another_order(graph):
    plan = partition(graph, 4)
    program = lower(graph, plan)
    memory = plan_memory(program)
    waits = schedule(program, memory).waits
    first, *rest = program.programs
    turned = dataclasses.replace(first, instructions=first.instructions[::-1])
    with pytest.raises(PlanError, match=r"worker 0: instruction \d+ has tick \d+, after one with tick"):
        check_memory(
            dataclasses.replace(program, programs=(turned, *rest)), memory.offsets, memory.arena_bytes, waits
        )


def test_an_output_in_the_place_of_an_input_is_missed_at_the_end(toy, texts):
    """Both are of one shape and cut alike, and nothing reads the input afterwards."""
    builder = toy()
    a = builder.tensor(8, 4, name="a")
    builder.apply(texts["RELU"], a)
    graph = builder.graph()
    plan = partition(graph, 2)
    program = lower(graph, plan)
    programs = tuple(
        dataclasses.replace(
            one,
            instructions=tuple(
                dataclasses.replace(compute, outputs=(dict(program.homes[a])[worker],))
                for compute in one.instructions
            ),
        )
        for worker, one in enumerate(program.programs)
    )
    changed = dataclasses.replace(program, programs=programs, homes=(program.homes[a],) * 2)
    with pytest.raises(PlanError, match=r"writes .* of 't1' into buffer 0, which is for .* of 'a'"):
        check_program(graph, 2, plan.cost_bytes, changed)


def test_stated_bytes_must_be_those_of_the_programs(graph):
    plan = partition(graph, 4)
    program = lower(graph, plan)
    with pytest.raises(PlanError, match="bytes"):
        check_program(graph, 4, plan.cost_bytes + 1, program)
    with pytest.raises(PlanError, match="bytes"):
        check_program(graph, 4, plan.cost_bytes, dataclasses.replace(program, planned_bytes=1 << 40))

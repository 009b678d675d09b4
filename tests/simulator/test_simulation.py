"""Simulations of boxes: equal to those of programs, and after each change to those that begin again."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.indices.region import split, to_region
from tofu.errors import MachineError, PlanError
from tofu.machines.machine import Machine
from tofu.machines.machine_file import with_profile
from tofu.machines.profile import EngineTimes, MeasuredTime, Profile, WakeTime
from tofu.partitioner import Simulations, simulation
from tofu.partitioner.layouts.partial import is_partial
from tofu.partitioner.layouts.parts import holdings
from tofu.partitioner.layouts.step_split import Layout
from tofu.plans import Holding, Spread, Task, compose
from tofu.runtime.instruction_times import ProgramWork
from tofu.simulator import HeldCopy, check_timeline
from tofu.simulator.block_cache import BlockCache
from tofu.simulator.blocks import NOTES
from tofu.simulator.times import task_times

from ..compiled_loops import same_in_plain_python
from ..machines.test_profile_file import HOST
from ..partitioner.lowering.assignments import MODELS, network, random_form, random_plan
from .boxes import GRAPHS, Assignment, lstm, timeline, whole
from .test_simulate import MACHINES, ON_MACHINES, machine

LINKS: dict[str, Callable[[int], Machine]] = {
    "pairs": lambda workers: machine(workers, link_per_pair=True),
    "paths": lambda workers: tofu.machines.load("4x-p100-node"),
}
"""FlexFlow's links, and links that several pairs of devices share."""


def assert_equal_fronts(graph: Any, plan: tofu.Plan, on: Machine) -> None:
    """The simulation of a plan has the time line of its program."""
    found = simulation(graph, plan, on)
    check_timeline(found.timeline)
    assert timeline(found) == whole(tofu.simulate(tofu.lower(graph, plan), on))


@pytest.mark.parametrize(("name", "seed"), ON_MACHINES)
def test_random_plans_have_the_time_lines_of_their_programs(name: str, seed: int) -> None:
    workers = 2 + seed % 4
    graph = network(name)
    plan = random_plan(graph, workers, seed)
    assert_equal_fronts(graph, plan, MACHINES[list(MACHINES)[seed]](workers))


@pytest.mark.parametrize("name", ["lstm", "gpt-1-16", "wresnet-10-1"])
@pytest.mark.parametrize("method", ["recursive", "refine", "data-parallel"])
def test_plans_of_methods_have_the_time_lines_of_their_programs(name: str, method: str) -> None:
    graph = network(name)
    plan = tofu.partition(graph, 2, method=method)
    assert_equal_fronts(graph, plan, machine(2))


@pytest.mark.parametrize("variable", ["n", "h", "k"])
def test_splits_by_one_step_have_the_time_lines_of_their_programs(variable: str) -> None:
    graph = network("mlp")
    split = {o.name: (variable,) if variable in o.bound.splits else (None,) for o in graph.operations}
    everywhere = {t.name: (None,) for t in graph.tensors if t.alias is None}
    assert_equal_fronts(graph, compose(graph, 2, split, everywhere), machine(2))


@pytest.mark.parametrize("name", MODELS)
def test_whole_operations_on_workers_have_the_time_lines_of_their_programs(name: str) -> None:
    graph = network(name)
    operations = {o.name: Spread((), (o.index * 4 // len(graph.operations),)) for o in graph.operations}
    tensors = {t.name: Spread((), (t.index % 4,)) for t in graph.tensors if t.alias is None}
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    homes = {n: form for n, form in tensors.items() if graph.tensors[_number(graph, n)].index not in made}
    assert_equal_fronts(graph, compose(graph, 4, operations, homes), machine(4))


def _number(graph: Any, name: str) -> int:
    return next(tensor.index for tensor in graph.tensors if tensor.name == name)


def measured(program: Any, on: Machine, seed: int) -> Machine:
    """The machine with a profile that has times of some of the program's work."""
    draw = random.Random(seed)
    kinds: dict[str, dict[Any, MeasuredTime]] = {}
    work = ProgramWork.of(program).amounts
    left_out = {kind for kind, _ in work if draw.random() < 0.2}
    for (kind, sizes), amounts in work.items():
        if kind not in left_out and (kind not in kinds or draw.random() < 0.8):
            kinds.setdefault(kind, {})[sizes] = MeasuredTime(draw.uniform(1e-6, 1e-4), 0.0, amounts)
    wakes = WakeTime(3, 7e-6) if draw.random() < 0.5 else WakeTime(0, 0.0)
    threads = len(set(on.devices_of(program.workers)))
    engine = EngineTimes(on.kinds[0].engine, threads, 1, wakes, kinds)
    return with_profile(on, Profile(on.name, HOST, (engine,), "slow.json"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["levels", "shared", "in turn"])
def test_measured_times_give_the_time_lines_of_programs(name: str, kind: str) -> None:
    graph = network(name)
    plan = random_plan(graph, 3, len(kind))
    on = measured(tofu.lower(graph, plan), MACHINES[kind](3), len(name))
    assert_equal_fronts(graph, plan, on)


@pytest.mark.parametrize("name", ["lenet", "lstm"])
def test_default_plans_have_the_time_lines_of_their_programs(name: str) -> None:
    graph = tofu.models.get(name, batch=16).training_graph()
    plan = tofu.partition(graph, 4)
    assert plan.copies
    assert_equal_fronts(graph, plan, tofu.machines.load("dgx-1-v100"))


@pytest.mark.parametrize("name", MODELS)
def test_copies_change(name: str) -> None:
    """A proposal gives what a new simulation of the changed plan gives, and leaves no trace if refused."""
    graph, on, draw = network(name), MACHINES["in turn"](4), random.Random(0)
    plan = random_plan(graph, 4, 5)
    found = simulation(graph, plan, on)
    before = timeline(found)
    copied = [tensor for tensor in plan.copies if not is_partial(plan.layouts[tensor].form)]
    for _ in range(6):
        tensor = draw.choice(copied)
        layout = plan.layouts[tensor]
        extents: dict[Any, int] = dict(enumerate(layout.shape))
        listed = tuple(replace(c, form=random_form(draw, extents, 4)) for c in plan.copies[tensor])
        changed = replace(plan, copies={**plan.copies, tensor: listed})
        held = [holdings(Layout(layout.shape, copy.form, layout.factors)) for copy in listed]
        found.propose({}, copies={tensor: held})
        after = timeline(found)
        assert after == timeline(simulation(graph, changed, on))
        if draw.random() < 0.5:
            found.accept()
            plan, before = changed, after
        else:
            found.refuse()
            assert timeline(found) == before
    check_timeline(found.timeline)


def test_a_copy_that_is_held_at_home_takes_no_time() -> None:
    graph = network("lenet")
    plan = tofu.partition(graph, 4)
    tensor = next(iter(plan.copies))
    found = simulation(graph, plan, machine(4))
    found.propose({}, copies={tensor: [holdings(plan.layouts[tensor])] * len(plan.copies[tensor])})
    alone = replace(plan, copies={name: each for name, each in plan.copies.items() if name != tensor})
    assert whole(found.timeline)[:5] == whole(simulation(graph, alone, machine(4)).timeline)[:5]


def times(simulation: Any) -> list[Any]:
    """All instructions, their messages and their times, operation by operation."""
    found = []
    for operation, block in sorted(simulation._state.blocks.items()):
        when = simulation._placed.times(operation)
        found.append((*(block.note(which) for which in range(NOTES)), *when))
    return found


def run_proposals(name: str, workers: int, links: str, count: int, seed: int = 0) -> None:
    """Propose at random; compare all times with those of a new simulation; accept or refuse."""
    on = LINKS[links](workers)
    state = Assignment(GRAPHS[name](), workers, seed)
    found = state.simulation(on)
    before = times(found)
    for _ in range(count):
        change = state.change()
        proposed = state.take(change)
        nanoseconds = found.propose(change[0], change[1], stops=change[2])
        again = proposed.simulation(on)
        expected = times(again)
        assert times(found) == expected
        assert nanoseconds == again.nanoseconds
        if state.draw.random() < 0.5:
            found.accept()
            state, before = proposed, expected
        else:
            found.refuse()
            assert times(found) == before
    check_timeline(found.timeline)


@pytest.mark.parametrize("links", LINKS)
def test_a_proposal_may_end_at_its_limit(links: str) -> None:
    state = Assignment(GRAPHS["inception"](), 4, 1)
    found = state.simulation(LINKS[links](4))
    before, cut = times(found), 0
    for number in range(12):
        change = state.change()
        needed = found.propose(change[0], change[1], stops=change[2])
        found.refuse()
        limit = needed * number // 8
        stopped = found.propose(change[0], change[1], stops=change[2], limit=limit)
        if needed <= limit:
            assert stopped == needed
        else:
            assert limit < stopped <= needed
            cut += stopped < needed
            with pytest.raises(PlanError, match="takes longer than its limit"):
                found.accept()
            with pytest.raises(PlanError, match="takes longer than its limit"):
                found.deciding()
        found.refuse()
        assert times(found) == before
    assert cut > 3


CASES = [(name, workers, links) for name in GRAPHS for workers in (4, 16) for links in LINKS]


@pytest.mark.parametrize(("name", "workers", "links"), CASES)
def test_changes_give_what_a_new_simulation_gives(name: str, workers: int, links: str) -> None:
    run_proposals(name, workers, links, 15)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workers", "links"), CASES)
def test_many_changes_give_what_a_new_simulation_gives(
    name: str, workers: int, links: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New simulations share blocks, which the changed one does not use: otherwise it would take an hour."""
    caches: list[BlockCache] = []

    def cache(*arguments: Any) -> BlockCache:
        if len(caches) < 2:
            caches.append(BlockCache(*arguments))
        return caches[-1]

    graph = GRAPHS[name]()
    monkeypatch.setitem(GRAPHS, name, lambda: graph)
    monkeypatch.setattr("tofu.simulator.simulation.BlockCache", cache)
    run_proposals(name, workers, links, 625, seed=1)
    assert len(caches) == 2


@pytest.mark.parametrize("name", MODELS)
def test_simulations_of_many_plans_share_blocks(name: str) -> None:
    graph, on = network(name), MACHINES["levels"](4)
    simulations = Simulations(graph, on)
    for seed in range(4):
        plan = random_plan(graph, 4, seed)
        assert timeline(simulations.of(plan)) == timeline(simulation(graph, plan, on))


def test_a_change_that_changes_nothing_takes_as_long() -> None:
    state = Assignment(lstm(), 4, 2)
    found = state.simulation(machine(4))
    before = timeline(found)
    name = state.graph.operations[3].name
    assert found.propose({name: list(state.tasks[name])}) == before[0]
    found.accept()
    assert timeline(found) == before


def test_blocks_that_were_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from tofu.simulator import block_cache

    monkeypatch.setattr(block_cache, "LIMIT", 2000)
    run_proposals("random", 4, "pairs", 10)


def test_the_times_of_tasks_can_be_given() -> None:
    """Three times as slow as the estimates if nothing moves."""
    graph = network("mlp")
    alone = {o.name: [Task(0, tuple((0, e) for e in o.bound.extents.values()))] for o in graph.operations}
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    held = {
        t.name: [Holding(0, tuple((0, e) for e in t.shape))] for t in graph.tensors if t.index not in made
    }
    estimated = task_times(graph, machine(1), 1)
    slow = tofu.simulator.Simulation(
        graph, machine(1), 1, alone, held, times=lambda *tasks: 3 * estimated(*tasks)
    )
    assert slow.nanoseconds == 3 * tofu.simulator.Simulation(graph, machine(1), 1, alone, held).nanoseconds


def digest() -> str:
    """All times of some proposals on shared links, of which every second one is accepted."""
    state = Assignment(lstm(), 4, 7)
    found = state.simulation(LINKS["paths"](4))
    seen = [timeline(found)]
    for number in range(12):
        change = state.change()
        found.propose(change[0], change[1], stops=change[2])
        seen.append(timeline(found))
        if number % 2:
            found.accept()
            state = state.take(change)
        else:
            found.refuse()
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def test_compiled_loops_give_what_plain_python_gives() -> None:
    same_in_plain_python(digest)


class Toy:
    """A simulation, and parts of its assignment to break."""

    def __init__(self) -> None:
        self.state = Assignment(lstm(), 4, 0)
        self.simulation = self.state.simulation(machine(4))
        self.operation = self.state.graph.operations[2]
        self.bound = self.operation.bound
        self.box = tuple((0, extent) for extent in self.bound.extents.values())
        self.data = [Holding(0, tuple((0, extent) for extent in self.state.sources[0].shape))]

    def tasks(self, *tasks: Task) -> object:
        return self.simulation.propose({self.operation.name: tasks})

    def halves(self, kind: str) -> list[Task]:
        """The operation cut in two along a variable, without terms."""
        axis = next(a for a, v in enumerate(self.bound.variables) if self.bound.kind(v) == kind)
        cut = split(self.bound.full_box, [axis], [2])
        return [Task(number, to_region(box)) for number, box in enumerate(cut)]

    def hold(self, name: str, holdings: list[Holding]) -> object:
        return self.simulation.propose({}, {name: holdings})

    @property
    def source(self) -> str:
        return str(self.state.sources[0].name)


ERRORS: dict[str, tuple[Callable[[Toy], object], str]] = {
    "unknown operation": (lambda t: t.simulation.propose({"lstm": []}), "there is no operation 'lstm'"),
    "unknown tensor": (lambda t: t.hold("datx", []), "there is no tensor 'datx'; did you mean 'data'?"),
    "worker": (lambda t: t.tasks(Task(4, t.box)), "there is no worker 4; workers are numbered 0 to 3"),
    "no tasks": (lambda t: t.tasks(), "the parts cover 0 of the"),
    "gap": (lambda t: t.tasks(t.halves("concat")[0]), "the parts cover"),
    "overlap": (lambda t: t.tasks(Task(1, t.box), t.halves("concat")[0]), "overlap; parts are equal or"),
    "axes": (lambda t: t.tasks(Task(0, ((0, 1),))), "has 1 intervals; give it"),
    "outside": (lambda t: t.tasks(Task(0, tuple((0, b + 1) for _, b in t.box))), "lies outside"),
    "terms": (lambda t: t.tasks(Task(0, t.box, 1)), "no part makes term 0 of 2; number terms from 0"),
    "sum": (lambda t: t.tasks(*t.halves("reduce")), "give each part of a sum a term of its own"),
    "overwriting": (
        lambda t: t.hold("updated(embed_weight)", []),
        "give 'embed_weight' the holdings",
    ),
    "stops": (lambda t: t.simulation.propose({}, stops={"data": []}), "'data' has stops but no holdings"),
    "copies": (lambda t: t.simulation.propose({}, copies={"data": [[]]}), "'data' has 0 copies, but"),
    "twice": (lambda t: t.hold(t.source, 2 * t.data), "twice; name each worker once"),
    "nothing to accept": (lambda t: t.simulation.accept(), "there is no open proposal; call propose first"),
    "nothing to refuse": (lambda t: t.simulation.refuse(), "there is no open proposal; call propose first"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_changes_that_do_not_fit_change_nothing(name: str) -> None:
    change, message = ERRORS[name]
    toy = Toy()
    before = timeline(toy.simulation)
    with pytest.raises(PlanError, match=re.escape(message)):
        change(toy)
    assert timeline(toy.simulation) == before


def test_terms_that_no_one_can_read_are_refused() -> None:
    """The output of the operation follows its tasks, and its reader does not read terms."""
    toy = Toy()
    halves = [replace(task, term=number) for number, task in enumerate(toy.halves("reduce"))]
    with pytest.raises(PlanError, match="reads a tensor in 2 terms, but its tasks read 1"):
        toy.tasks(*halves)


def test_one_proposal_is_open_at_a_time() -> None:
    toy = Toy()
    toy.tasks(Task(1, toy.box))
    with pytest.raises(PlanError, match="accept or refuse it before the next one"):
        toy.tasks(Task(2, toy.box))


def test_what_is_missing_at_the_beginning_is_named() -> None:
    state = Assignment(lstm(), 4, 0)
    name = state.graph.operations[0].name
    some = {other: tasks for other, tasks in state.tasks.items() if other != name}
    with pytest.raises(PlanError, match=f"operation '{name}' has no tasks"):
        tofu.simulator.Simulation(state.graph, machine(4), 4, some, state.held)
    with pytest.raises(PlanError, match=f"tensor '{state.sources[0].name}' has no holdings"):
        tofu.simulator.Simulation(state.graph, machine(4), 4, state.tasks, {})
    with pytest.raises(MachineError, match="4 workers need 4 devices"):
        state.simulation(machine(2))
    with pytest.raises(PlanError, match="name each once"):
        state.simulation(machine(4), order=[name])
    backwards = [operation.name for operation in reversed(state.graph.operations)]
    with pytest.raises(PlanError, match="cannot run at place"):
        state.simulation(machine(4), order=backwards)
    with pytest.raises(PlanError, match="give one for each"):
        state.simulation(machine(4), times=lambda *tasks: np.zeros(0))


COPY_ERRORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "tensor": ("datx", {}, "there is no tensor 'datx' to copy; did you mean 'data'?"),
    "source": ("data", {"source": 1}, "copy 1 of tensor 'data' is made from version 1; choose one of 0 to 0"),
    "readers": ("data", {"readers": ()}, "copy 1 of tensor 'data' has no readers; name the operations"),
    "operation": ("data", {"readers": ("lstm",)}, "there is no operation 'lstm'"),
    "not read": ("learning_rate", {}, "does not read it"),
    "gap": ("data", {"holdings": ()}, "tensor 'data': the parts cover 0 of"),
}


@pytest.mark.parametrize("name", COPY_ERRORS)
def test_copies_that_cannot_be_are_refused(name: str) -> None:
    tensor, changes, message = COPY_ERRORS[name]
    state = Assignment(lstm(), 4, 0)
    graph = state.graph
    data = next(t for t in graph.tensors if t.name == "data")
    reader = next(o.name for o in graph.operations if data.index in o.inputs)
    held = [Holding(0, tuple((0, extent) for extent in data.shape))]
    copy = replace(HeldCopy(held, (reader,)), **changes)
    with pytest.raises(PlanError, match=re.escape(message)):
        state.simulation(machine(4), copies={tensor: [copy]})


def test_a_copy_is_made_after_its_source_and_read_instead_of_others() -> None:
    state = Assignment(lstm(), 4, 0)
    graph = state.graph
    tensor = max(graph.tensors, key=lambda t: sum(t.index in o.inputs for o in graph.operations))
    first, second, *_ = [o.name for o in graph.operations if tensor.index in o.inputs]
    held = [Holding(0, tuple((0, extent) for extent in tensor.shape))]
    for copies, message in (
        ([HeldCopy(held, (second,)), HeldCopy(held, (first,), 1)], "is made before version 1"),
        ([HeldCopy(held, (first,)), HeldCopy(held, (first, second))], "reads another version"),
    ):
        with pytest.raises(PlanError, match=message):
            state.simulation(machine(4), copies={tensor.name: copies})

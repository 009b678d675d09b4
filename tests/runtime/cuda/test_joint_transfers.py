"""Transfers of a tick share launches: fewer of them, the same bits, and never if memory is touched twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.operators.cuda.launch.view import DeviceView
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.merging import merge
from tofu.programs.program import Compute, PartitionedGraph
from tofu.runtime.buffer_views import BufferViews
from tofu.runtime.cuda.joint_transfers import joint_transfers
from tofu.runtime.executor import Executor
from tofu.runtime.thread_tasks import Place

from .bench import Bench, agree, learned, same, start
from .graphs import graph
from .guards import intact

WORKERS = 3


def apart_and_together(name: str) -> tuple[PartitionedGraph, PartitionedGraph]:
    """Return programs in which gradients are summed one by one, and all at the same ticks."""
    trained = graph(name)
    strategy = all_reduce(trained, WORKERS)
    apart = tofu.lower(trained, compile_strategy(trained, WORKERS, strategy))
    return apart, merge(trained, apart, strategy).program


def commands_of_transfers(bench: Bench) -> int:
    return sum(
        len(commands)
        for prepared, program in zip(bench.engine._prepared, bench.engine._partitioned.programs, strict=True)
        for commands, each in zip(prepared.commands, program.instructions, strict=True)
        if not isinstance(each, Compute)
    )


@pytest.mark.parametrize("name", ["mlp", "residual"])
def test_groups_of_all_reduces_share_launches(name: str, bench: Bench) -> None:
    apart, together = apart_and_together(name)
    values = start(apart.graph)
    with Executor(together) as executor:
        expected = learned(executor, values)
    found, counts = [], []
    for program in (apart, together):
        with bench.executor(program) as executor:
            bench.poison()
            found.append(learned(executor, values))
            counts.append(commands_of_transfers(bench))
            assert executor.fetched_bytes == program.planned_bytes > 0
            assert intact(bench.machine)
    same(found[1], found[0])
    agree(found[1], expected, 2e-3 if bench.on_cards else 2e-5)
    assert counts[1] < 0.7 * counts[0]


def test_workers_apart_stage_what_they_fetch_together(bench: Bench) -> None:
    """No two scratch copies of a joint launch lie over each other."""
    if bench.on_cards:
        pytest.skip("cards that do not reach each other are the stand-in's")
    apart, together = apart_and_together("mlp")
    values, found = start(apart.graph), []
    for program, islands in ((apart, (0, 0, 0)), (together, (0, 1, 2))):
        with bench.executor(program, islands=islands) as executor:
            bench.poison()
            found.append(learned(executor, values))
            assert intact(bench.machine)
    same(found[1], found[0])


@pytest.mark.parametrize("watched", ["timed", "detect_nan"])
def test_watched_transfers_stay_by_themselves(watched: str, bench: Bench) -> None:
    _, together = apart_and_together("mlp")
    with bench.executor(together, **{watched: True}):
        assert all(len(group) == 1 for group in bench.engine._groups)


def groups(program: PartitionedGraph, views: list[list[DeviceView]], places: list[Place]) -> list[int]:
    return [len(group) for group in joint_transfers(places, BufferViews(program, views))]


def test_memory_that_is_written_twice_parts_transfers(bench: Bench) -> None:
    _, together = apart_and_together("mlp")
    with bench.executor(together):
        views = [list(each) for each in bench.engine.views]
        places = next(list(each) for each in bench.engine._groups if len(each) > 3)
    assert groups(together, views, places) == [len(places)]
    worker, index = places[2]
    targets = [together.programs[worker].instructions[at].target for _, at in places]  # type: ignore[union-attr]
    moved = [list(each) for each in views]
    moved[worker][targets[2]] = replace(views[worker][targets[2]], address=views[worker][targets[1]].address)
    assert groups(together, moved, places) == [2, len(places) - 2]
    source = next(
        piece
        for part in together.programs[worker].instructions[index].parts  # type: ignore[union-attr]
        for piece in part
        if piece.worker != worker
    )
    moved = [list(each) for each in views]
    read = views[source.worker][source.buffer]
    moved[source.worker][source.buffer] = replace(read, address=views[worker][targets[0]].address)
    assert groups(together, moved, places)[0] == 2

from typing import Any

import pytest

from tofu.dataflow.graph import Role
from tofu.errors import ProgramError
from tofu.programs.memory import buffer_lifetimes, in_place_hosts, plan_memory
from tofu.programs.offsets import ALIGNMENT_BYTES
from tofu.programs.program import BufferKind, Compute, PartitionedGraph, Program


def assert_sound(partitioned: PartitionedGraph) -> None:
    """Buffers live at a common tick share no byte, save an output and the input it replaces."""
    plan = plan_memory(partitioned)
    lifetimes = buffer_lifetimes(partitioned)
    hosts = in_place_hosts(partitioned, lifetimes)
    for worker, program in enumerate(partitioned.programs):
        assert plan.arena_bytes[worker] >= plan.lower_bound_bytes[worker]
        births, deaths = lifetimes.births[worker], lifetimes.deaths[worker]
        for a in program.buffers:
            start = plan.offsets[worker][a.index]
            assert start % ALIGNMENT_BYTES == 0
            if births[a.index] <= deaths[a.index]:
                assert start + a.nbytes <= plan.arena_bytes[worker]
            for b in program.buffers[: a.index]:
                if hosts[worker][a.index] == hosts[worker][b.index] or not a.nbytes or not b.nbytes:
                    continue
                if births[a.index] <= deaths[b.index] and births[b.index] <= deaths[a.index]:
                    other = plan.offsets[worker][b.index]
                    assert start + a.nbytes <= other or other + b.nbytes <= start


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(toys: Any, seed: int) -> None:
    assert_sound(toys.random_toy(seed, workers=1 + seed % 5, operations=12)[1])


def chain(toys: Any, workers: int, length: int = 64) -> PartitionedGraph:
    toy = toys.Toy(workers)
    value = toy.tensor("x", length, Role.DATA)
    for number in range(10):
        value = toy.apply(toys.ADD, [value, value], f"t{number}")
    lowered: PartitionedGraph = toy.lower([value])
    return lowered


def test_element_wise_chain_runs_in_place(toys: Any) -> None:
    plan = plan_memory(chain(toys, workers=2))
    assert plan.arena_bytes == (2 * 32 * 8,) * 2
    assert plan.lower_bound_bytes == (2 * 32 * 8,) * 2


def test_an_input_read_at_other_places_is_not_overwritten(toys: Any) -> None:
    toy = toys.Toy(1)
    x = toy.tensor("x", 8, Role.DATA)
    a = toy.apply(toys.ADD, [x, x], "a")
    b = toy.apply(toys.SHIFT, [a], "b")
    c = toy.apply(toys.ADD, [b, b], "c")
    partitioned = toy.lower([c])
    (hosts,) = in_place_hosts(partitioned, buffer_lifetimes(partitioned))
    shards = [dict(partitioned.homes[tensor])[0] for tensor in (a, b, c)]
    assert [hosts[shard] for shard in shards] == [shards[0], shards[1], shards[1]]


def test_memory_per_worker_is_a_share_of_the_whole(toys: Any) -> None:
    single = plan_memory(chain(toys, workers=1)).arena_bytes[0]
    assert plan_memory(chain(toys, workers=4)).arena_bytes == (single // 4,) * 4


def test_an_input_that_a_peer_still_reads_is_not_overwritten(toys: Any) -> None:
    toy = toys.Toy(2)
    x = toy.tensor("x", 8, Role.DATA)
    a = toy.apply(toys.ADD, [x, x], "a")
    b = toy.apply(toys.ADD, [a, a], "b")
    c = toy.apply(toys.ADD, [a, b], "c", work=[(0, 2), (2, 8)])
    partitioned = toy.lower([c])
    hosts = in_place_hosts(partitioned, buffer_lifetimes(partitioned))
    shard_a, shard_b = dict(partitioned.homes[a])[0], dict(partitioned.homes[b])[0]
    assert hosts[0][shard_b] != hosts[0][shard_a]


def test_largest_live_tensors_are_named(toys: Any) -> None:
    plan = plan_memory(chain(toys, workers=2))
    assert {tensor.name for tensor in plan.largest[0]} >= {"x"}
    assert all(tensor.kind is BufferKind.SHARD and tensor.nbytes == 256 for tensor in plan.largest[0])
    assert sum(tensor.nbytes for tensor in plan.largest[0]) == plan.lower_bound_bytes[0]


def test_reading_what_nobody_wrote_is_an_error(toys: Any) -> None:
    partitioned = chain(toys, workers=2)
    programs = tuple(
        Program(p.worker, p.buffers, tuple(i for i in p.instructions if i.operation != 3))
        for p in partitioned.programs
    )
    broken = PartitionedGraph(partitioned.graph, 2, programs, partitioned.homes, 0)
    with pytest.raises(
        ProgramError, match=r"tensor 't3': worker 0 never writes its shard .* operation 'make_t4' reads"
    ):
        plan_memory(broken)


def test_instructions_out_of_order_are_an_error(toys: Any) -> None:
    partitioned = chain(toys, workers=1)
    program = partitioned.programs[0]
    swapped = Program(0, program.buffers, program.instructions[::-1])
    with pytest.raises(ProgramError, match="instructions must be in the order of the clock"):
        plan_memory(PartitionedGraph(partitioned.graph, 1, (swapped,), partitioned.homes, 0))


def test_equal_workers_get_equal_plans(toys: Any) -> None:
    plan = plan_memory(chain(toys, workers=8))
    assert len(set(plan.offsets)) == 1
    assert all(isinstance(i, Compute) for p in chain(toys, 8).programs for i in p.instructions)
    assert len(set(plan.arena_bytes)) == 1

"""Orders in which few vertices are open at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.solvers.linear_order import linear_order


def open_vertices(neighbours, order):
    """The most vertices that are seen with a neighbour still to come."""
    place = {vertex: position for position, vertex in enumerate(order)}
    last = [max((place[o] for o in others), default=-1) for others in neighbours]
    return max(sum(last[v] > i for v in order[: i + 1]) for i in range(len(order)))


def numbered(edges, count):
    neighbours = [set() for _ in range(count)]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    return [sorted(others) for others in neighbours]


@given(st.integers(1, 9), st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_every_vertex_once(count, edges):
    edges = [(a % count, b % count) for a, b in edges if a % count != b % count]
    order = linear_order(numbered(edges, count), [4] * count)
    assert sorted(order) == list(range(count))


def test_a_long_ladder_with_shuffled_numbers_stays_narrow():
    length = 60
    number = [(7 * i) % (2 * length + 1) for i in range(2 * length + 1)]
    edges = [(number[2 * i], number[2 * i + 1]) for i in range(length)]
    edges += [(number[i], number[i + 2]) for i in range(2 * length - 2)]
    edges.append((number[2 * length - 1], number[2 * length]))
    neighbours = numbered(edges, 2 * length + 1)
    assert open_vertices(neighbours, linear_order(neighbours, [8] * (2 * length + 1))) <= 3


def test_parts_that_do_not_touch_follow_each_other():
    triangles = [(0, 2), (2, 4), (4, 0), (1, 3), (3, 5), (5, 1)]
    order = linear_order(numbered(triangles, 6), [2] * 6)
    assert sorted(order[:3]) in ([0, 2, 4], [1, 3, 5])

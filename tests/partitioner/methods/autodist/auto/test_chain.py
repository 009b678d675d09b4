"""Groups of a chain against all ways to cut it."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.autodist.auto.chain import cut_chain

TIMES = st.lists(st.integers(0, 30), min_size=1, max_size=7)


def finished(made: list[int], nbytes: list[int], cuts: tuple[int, ...], costs: tuple[int, int, int]) -> float:
    """Return when the last group is done, if a group ends before each place that is cut."""
    constant, per_byte, per_gradient = costs
    done, group = 0.0, [0]
    for place in range(1, len(made) + 1):
        if place < len(made) and not cuts[place - 1]:
            group.append(place)
            continue
        ready = max(made[: group[-1] + 1])
        done = max(done, ready) + constant + sum(nbytes[g] * per_byte + per_gradient for g in group)
        group = [place]
    return done


@given(st.data(), TIMES, st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)))
def test_no_cut_is_done_earlier(data: st.DataObject, made: list[int], costs: tuple[int, int, int]) -> None:
    made = sorted(made)
    nbytes = data.draw(st.lists(st.integers(0, 9), min_size=len(made), max_size=len(made)))
    done, groups = cut_chain(made, nbytes, *costs)
    every = [finished(made, nbytes, cuts, costs) for cuts in product((0, 1), repeat=len(made) - 1)]
    assert done == pytest.approx(min(every))
    chosen = tuple(int(before != after) for before, after in pairwise(groups))
    assert finished(made, nbytes, chosen, costs) == pytest.approx(done)


def test_latency_merges_and_waiting_cuts() -> None:
    assert len(set(cut_chain([0, 0, 0, 0], [1, 1, 1, 1], 10, 1, 0)[1])) == 1
    assert len(set(cut_chain([0, 100, 200, 300], [50] * 4, 1, 1, 0)[1])) == 4

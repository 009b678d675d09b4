"""Stretches that repeat."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tofu.reports.drawing.repeats import LEAST, Repeat, repeats


def test_layers_are_found_where_they_are() -> None:
    network = [*"in", *"conv-bn-relu|" * 5, *"pool", *"fc|" * 3, *"out"]
    found = repeats(network)
    assert [(r.length, r.times) for r in found] == [(13, 5), (3, 3)]
    assert found[0].begin == 2
    assert repeats("abcabc") == []


@given(st.lists(st.sampled_from("ab"), max_size=40))
def test_what_is_reported_repeats_and_does_not_overlap(entries: list[str]) -> None:
    end = 0
    for repeat in repeats(entries):
        assert repeat.times >= LEAST
        assert end <= repeat.begin
        end = repeat.end
        once = entries[repeat.begin : repeat.begin + repeat.length]
        assert entries[repeat.begin : repeat.end] == once * repeat.times
    assert end <= len(entries)


@given(st.integers(1, 6), st.integers(LEAST, 9))
def test_all_occurrences_are_counted(length: int, times: int) -> None:
    stretch = [f"operator {number}" for number in range(length)]
    assert repeats(["first", *stretch * times, "last"]) == [Repeat(1, length, times)]

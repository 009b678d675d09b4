"""Groups of things that have something in common."""

from __future__ import annotations

from tofu.support.connected_groups import linked


def test_groups_join_through_others_and_keep_their_order() -> None:
    members = {"a": {1, 2}, "b": {3}, "c": set(), "d": {4, 5}, "e": {3, 2}}
    assert linked(members) == [["c"], ["d"], ["a", "b", "e"]]
    assert linked({}) == []

"""Group keys whose members overlap."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

Key = TypeVar("Key")


def linked(members: Mapping[Key, Set[Hashable]]) -> list[list[Key]]:
    """Return keys in groups whose members overlap, directly or through others.

    A key without members is alone in its group.
    """
    groups: list[tuple[list[Key], set[Hashable]]] = []
    for key, own in members.items():
        touching = [group for group in groups if group[1] & own]
        keys = [other for others, _ in touching for other in others]
        joined = ([*keys, key], set(own).union(*(theirs for _, theirs in touching)))
        groups = [*(group for group in groups if group not in touching), joined]
    return [keys for keys, _ in groups]

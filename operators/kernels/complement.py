"""The part of an array around a box inside it."""

from __future__ import annotations

from collections.abc import Sequence

from .kernel import Array


def borders(array: Array, inside: Sequence[slice]) -> tuple[Array, ...]:
    """Return views that together cover everything outside `inside`, each element once.

    `inside` has a slice with both bounds and step one for each of the first dimensions. Empty views are left
    out.
    """
    views, rest = [], array
    for axis, part in enumerate(inside):
        before = (slice(None),) * axis
        views += [rest[(*before, slice(0, part.start))], rest[(*before, slice(part.stop, None))]]
        rest = rest[(*before, part)]
    return tuple(view for view in views if view.size)

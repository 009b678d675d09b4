"""Make sequences of choices, one per step: all that a recursive search can make, or those near a given one.

    variables    c[0], c[1], ...: for every step a label (an index variable, a dimension) or None
    constraints  c[i] splits a label that has at least factor[i] values left in a group
                 c[i] is None only if there is no such label, or if `replicate` is set
                 c[i] is `Partial` only if `partial` is set

Operations repeat what they could split, tensors are replicated, and both have terms, as the problem's space
allows, see `Problem.repeats`, `replicate` and `terms`. These are exactly the sequences that `recursive` can
make, so a bound for all of its plans holds for every choice among them. Implemented in: `all_sequences`,
`is_possible` (the constraints), `near_sequences` and `Near` (those that differ from given ones in one step).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..layouts.forms import Partial

Label = TypeVar("Label", str, int)


def all_sequences(
    extents: Mapping[Label, int], factors: Sequence[int], replicate: bool = False, partial: bool = False
) -> tuple[tuple[Label | Partial | None, ...], ...]:
    """Return every sequence for labels with these extents, in the labels' order, then None and `Partial`.

    >>> all_sequences({"i": 4, "j": 1}, (2, 2, 2))
    (('i', 'i', None),)
    >>> all_sequences({"i": 2}, (2, 2), replicate=True)
    (('i', None), (None, 'i'), (None, None))
    """
    return tuple(_extend((), dict(extents), tuple(factors), replicate, partial))


def _extend(
    sequence: tuple[Label | Partial | None, ...],
    left: dict[Label, int],
    factors: tuple[int, ...],
    replicate: bool,
    partial: bool,
) -> Iterator[tuple[Label | Partial | None, ...]]:
    step = len(sequence)
    if step == len(factors):
        yield sequence
        return
    labels: list[Label | Partial | None] = [
        label for label, extent in left.items() if extent >= factors[step]
    ]
    if replicate or not labels:
        labels.append(None)
    if partial:
        labels.append(Partial())
    for label in labels:
        rest = left
        if label is not None and not isinstance(label, Partial):
            rest = {**left, label: left[label] // factors[step]}
        yield from _extend(_inserted(sequence, step, label), rest, factors, replicate, partial)


def by_batch(shape: tuple[int, ...], factors: Sequence[int]) -> tuple[int | None, ...]:
    """Return the layout in which a loader feeds a tensor: along its first dimension as long as that lasts.

    >>> by_batch((4, 28, 28), (2, 2, 2))
    (0, 0, None)
    """
    left = shape[0] if shape else 1
    sequence: list[int | None] = []
    for factor in factors:
        sequence.append(0 if left >= factor else None)
        left //= factor if left >= factor else 1
    return tuple(sequence)


def sequence_count(
    extents: Mapping[Label, int], factors: Sequence[int], replicate: bool = False, partial: bool = False
) -> int:
    """Return an upper bound on the number of `all_sequences`, without making them."""
    count = 1
    for factor in factors:
        count *= max(sum(extent >= factor for extent in extents.values()) + replicate, 1) + partial
    return count


def near_sequences(
    extents: Mapping[Label, int],
    factors: Sequence[int],
    centre: tuple[Label | Partial | None, ...],
    reorder: bool,
    replicate: bool = False,
    partial: bool = False,
) -> tuple[tuple[Label | Partial | None, ...], ...]:
    """Return `centre`, then the sequences that differ from it in one step.

    With `reorder`, one or two steps may also change places; for up to three steps, this gives every
    permutation.
    """
    labels: list[Label | Partial | None] = list(extents)
    labels.append(None)
    if partial:
        labels.append(Partial())
    found: list[tuple[Label | Partial | None, ...]] = [centre]
    for step, own in enumerate(centre):
        rest = centre[:step] + centre[step + 1 :]
        found += [_inserted(rest, step, label) for label in labels]
        for place in range(len(centre)) if reorder else ():
            swapped = list(centre)
            swapped[step], swapped[place] = centre[place], own
            found += [_inserted(rest, place, own), tuple(swapped)]
    return tuple(
        s for s in dict.fromkeys(found) if s == centre or is_possible(extents, factors, s, replicate, partial)
    )


@dataclass(frozen=True, slots=True)
class Near(Generic[Label]):
    """The sequences near any of the centres, see `near_sequences`, and some others."""

    centres: tuple[tuple[Label | Partial | None, ...], ...]
    """The sequences whose neighbourhoods are meant."""

    others: tuple[tuple[Label | Partial | None, ...], ...] = ()
    """Sequences without their neighbourhoods."""

    reorder: bool = False
    """Whether steps may also change places."""

    replicate: bool = False
    """Whether any step may be None."""

    partial: bool = False
    """Whether any step may be `Partial`."""

    def sequences(
        self, extents: Mapping[Label, int], factors: Sequence[int]
    ) -> tuple[tuple[Label | Partial | None, ...], ...]:
        found: dict[tuple[Label | Partial | None, ...], None] = {}
        for centre in self.centres:
            found.update(dict.fromkeys(self._around(extents, factors, centre)))
        found.update(dict.fromkeys(self.others))
        return tuple(found)

    def _around(
        self, extents: Mapping[Label, int], factors: Sequence[int], centre: tuple[Label | Partial | None, ...]
    ) -> tuple[tuple[Label | Partial | None, ...], ...]:
        return near_sequences(extents, factors, centre, self.reorder, self.replicate, self.partial)


def _inserted(
    sequence: tuple[Label | Partial | None, ...], place: int, label: Label | Partial | None
) -> tuple[Label | Partial | None, ...]:
    longer = list(sequence)
    longer.insert(place, label)
    return tuple(longer)


def is_possible(
    extents: Mapping[Label, int],
    factors: Sequence[int],
    sequence: Sequence[Label | Partial | None],
    replicate: bool = False,
    partial: bool = False,
) -> bool:
    """Tell whether a recursive search can make this sequence."""
    left = dict(extents)
    for label, factor in zip(sequence, factors, strict=True):
        if label is None:
            if not replicate and any(extent >= factor for extent in left.values()):
                return False
        elif isinstance(label, Partial):
            if not partial:
                return False
        elif left[label] < factor:
            return False
        else:
            left[label] //= factor
    return True


def candidates(
    extents: Mapping[Label, int],
    factors: Sequence[int],
    chosen: tuple[Label | Partial | None, ...],
    limit: int,
    replicate: bool = False,
    partial: bool = False,
) -> tuple[tuple[tuple[Label | Partial | None, ...], ...], bool]:
    """Return `chosen`, then every other sequence, or only those near it if there are more than `limit`.

    The second value tells whether these are all that exist.
    """
    complete = sequence_count(extents, factors, replicate, partial) <= limit
    sequences = [chosen]
    if complete:
        sequences += all_sequences(extents, factors, replicate, partial)
    else:
        sequences += near_sequences(extents, factors, chosen, True, replicate, partial)
    return tuple(dict.fromkeys(sequences)), complete

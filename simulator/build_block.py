"""The block of one operation, made from its tasks and from what workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..errors import PlanError
from ..support.compiled import Numbers, numbers, plain, strung
from .assemble import assemble
from .blocks import COUNT, LEGS, MESSAGE_BYTES, OperationBlock
from .message_times import ElementKind, MessageTimes, Transfers
from .part_sets import PartSet
from .task_sets import TaskSet

_NONE = -1


@dataclass(frozen=True, slots=True)
class Touched:
    """The versions that an operation touches: those that others make, each once, and those that it makes.

    A version that it reads comes with the versions that it is made from, since it may be held there.
    """

    read: tuple[int, ...]
    """For each tensor of the description that is read, the place of the version."""

    sources: tuple[int, ...]
    """For each version, the place of the one that it is made from; -1 for a tensor."""

    copies: range
    """The places of the copies that are made for the operation."""

    outputs: range
    """The places of its outputs, which come last."""

    storage: tuple[int, ...]
    """For each version, the place of the first one with the same storage."""

    elements: tuple[ElementKind, ...]
    """The elements of each version."""

    words: Numbers
    """The same, without elements, as loops read it."""

    @classmethod
    def of(
        cls,
        read: Sequence[int],
        sources: Sequence[int],
        copies: int,
        outputs: int,
        storage: Sequence[int],
        elements: Sequence[ElementKind],
    ) -> Touched:
        """Return how an operation touches versions, the last of which are its `copies` and its `outputs`."""
        slots = len(sources)
        inputs = slots - outputs
        words = numbers([len(read), slots, inputs - copies, inputs, *read, *sources, *storage])
        made = range(inputs - copies, inputs), range(inputs, slots)
        return cls(tuple(read), tuple(sources), *made, tuple(storage), tuple(elements), words)


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """Who holds a version. Compared by identity."""

    home: PartSet
    """Between operations."""

    stop: PartSet | None = None
    """Where partial results are reduced on their way home, if they are."""


def build(of: Touched, tasks: TaskSet, held: Sequence[Holdings], messages: MessageTimes) -> OperationBlock:
    """Return the block of an operation; `held` are the holdings of the versions that it touches.

    Raises PlanError if no one holds what a task needs.
    """
    copies = [_copied(of, slot, held, messages) for slot in of.copies]
    needed = [
        _needed(parts, held[slot].home, messages, of.elements[slot])
        for slot, parts in zip(of.read, tasks.needed, strict=True)
    ]
    kept = [_kept(of, slot, source, held, messages) for slot, source in enumerate(of.sources)]
    collected: list[Numbers | None] = []
    for slot, made in zip(of.outputs, tasks.made, strict=True):
        overwrites = of.storage[slot] < of.outputs.start
        collected += _collected(made, held[slot], messages, of.elements[slot], overwrites)
    counts = [len(each.home.workers) for each in held]
    listed = [of.words, tasks.words, *needed, *kept, *copies, *collected]
    parts = [each for each in listed if each is not None]
    begins = accumulate(map(len, parts), initial=0)
    at = [_NONE if each is None else next(begins) for each in listed]
    at[2 + len(needed) : 2 + len(needed)] = counts
    words, notes = assemble(strung(parts), numbers(at), messages.runners, messages.computing)
    moved = sum(plain(notes[notes[MESSAGE_BYTES] : notes[MESSAGE_BYTES + 1]]))
    return OperationBlock(words, notes, int(words[COUNT]), int(words[LEGS]), moved)


def _copied(of: Touched, slot: int, held: Sequence[Holdings], messages: MessageTimes) -> Transfers:
    """Return the transfers that make a copy. A part that its worker holds already is not moved."""
    source, copied = held[of.sources[slot]].home, held[slot].home
    if source.pieces.terms == copied.pieces.terms:
        return messages.fetched(copied, source, of.elements[slot])
    return messages.collected(source, copied, of.elements[slot])


def _kept(
    of: Touched, slot: int, source: int, held: Sequence[Holdings], messages: MessageTimes
) -> Transfers | None:
    """Return how a version would be fetched from what it is made from, if it may be held there."""
    if source == _NONE or held[source].home.pieces.terms != held[slot].home.pieces.terms:
        return None
    return messages.fetched(held[slot].home, held[source].home, of.elements[slot])


def _needed(needed: PartSet, held: PartSet, messages: MessageTimes, element: ElementKind) -> Transfers:
    """Return the transfers of what tasks read."""
    if held.pieces.terms not in (1, needed.pieces.terms):
        raise PlanError(
            f"it reads a tensor in {held.pieces.terms} terms, but its tasks read {needed.pieces.terms}; give "
            f"each task the number of the term that it reads, or hold the tensor reduced"
        )
    return messages.fetched(needed, held, element)


def _collected(
    made: PartSet, held: Holdings, messages: MessageTimes, element: ElementKind, overwrites: bool
) -> tuple[Numbers | None, Transfers | None, Transfers | None]:
    """Return which holdings of an output the tasks may make in place, and its transfers to a stop and home.

    An output that overwrites what the tasks may read is collected even if they make all of it.
    """
    home, stop, matches = held.home, held.stop, None
    if not home.workers:
        return None, None, None
    if made.pieces.terms == home.pieces.terms:
        matches, every = messages.matching(made, home)
        if every and not overwrites:
            return matches, None, None
    if stop is None or made.pieces.terms <= home.pieces.terms:
        return matches, None, messages.collected(made, home, element)
    return matches, messages.collected(made, stop, element), messages.collected(stop, home, element)

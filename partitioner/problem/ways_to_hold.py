"""The ways to hold each tensor of a plan, given the strategies of all operations: bytes moved and bytes live.

    way     a home h, a layout v in which partial results are reduced on their way to h, at most one copy c,
            and for every reader the one of h and c that it reads
    moved   makers -> (v ->) h, h -> c, and what readers fetch because h or c lacks it
    live    h from its maker to its last use, c from its first reader to its last, buffers while they are used

A tensor and those that overwrite it are held in one home. Given the strategies, such groups are independent,
and the bytes of a plan are the sum of the bytes of its groups. A copy serves the readers of a window: the
readers of one tensor, cut at the longest waits between them into a few runs; a window is some runs
that follow each other. Inside it a reader reads the copy if it fetches less from it.

An iteration is a sequence of *instants*, `PHASES` for each operation: its copies are made, inputs fetched,
outputs computed, reduced on their way, collected. A group's live bytes change only at its own operations, so
they are a row of numbers, one for each *span* between changes. Ways that are not better than another one in
bytes or at any span are left out (`undominated`). Implemented in: `storage_groups`
(groups and windows), `Menus.menu`, `_Rows`.

Guarantees: `Menu.moved` is what `plan_bytes.count` counts. Live bytes are at most those of the program
when inputs are fetched and when outputs are computed, if none shares memory with an input: a part counts as
long as its own worker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph
from ...support.distinct_rows import distinct_rows
from ..costs.layout_pairs import LayoutPairs, Makes, Reads, Uses
from ..layouts.choices import Counts
from ..layouts.forms import Partial
from ..layouts.step_split import Dimensions, Strategies
from .sequences import candidates, is_possible
from .storage_groups import StorageGroup, windows_of

COPY, FETCH, COMPUTE, REDUCE, COLLECT = range(5)
PHASES = 5
"""The number of instants of an operation."""

SPANS = PHASES + 1
"""The number of spans for each operation that touches a group: its instants and the wait after it."""

LAYOUT_LIMIT = 256
"""If a tensor has more layouts, only those near its own are compared."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Present:
    """How a plan holds a group."""

    home: Dimensions
    """The home."""

    via: Dimensions | None
    """Where partial results are reduced on their way home."""

    movable: bool
    """Whether the home may be another one. A home of terms never is, and has no copies."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to hold a group of tensors."""

    home: Dimensions
    """The home."""

    via: Dimensions | None
    """Where partial results are reduced on their way home; None if every holder reduces its own part."""

    copy: Dimensions | None
    """The copy; None if there is none."""

    readers: tuple[int, ...]
    """The numbers of the events that read the copy."""


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """Ways to hold a group. If one of them is the present way, without a copy, it comes first."""

    moved: Counts
    """The bytes that each moves: `[ways]`."""

    live: Counts
    """The bytes that are live on all workers in each span: `[ways, spans]`."""

    ways: tuple[Way, ...]
    """The ways: `[ways]`."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """The facts that decide a menu. Layers repeat, so groups share kinds."""

    shape: Shape
    """The shape of the tensors."""

    itemsize: int
    """The bytes of one element."""

    present: Present
    """How the plan holds them."""

    uses: tuple[tuple[Bound, Strategies, tuple[str, ...], int | None], ...]
    """For each event, the operator, its strategy, the parameters that read and the output that is made."""

    windows: tuple[tuple[int, ...], ...]
    """The events of every window."""

    lasting: bool
    """Whether the tensors live across iterations."""

    returned: bool
    """Whether one of them is a result of the graph."""


class Menus:
    """The menus of the groups of a plan in steps."""

    def __init__(
        self,
        graph: Graph,
        strategies: Mapping[str, Strategies],
        factors: tuple[int, ...],
        replicate: bool,
    ) -> None:
        self._graph = graph
        self._strategies = strategies
        self._factors = factors
        self._replicate = replicate
        self._uses = Uses(factors)
        self._pairs: dict[tuple[Shape, Present], LayoutPairs] = {}
        self._rows: dict[_Kind, _Rows] = {}
        self._menus: dict[tuple[_Kind, int, bool], Menu] = {}

    def homes(self, group: StorageGroup, present: Present) -> Counts:
        """Return the bytes that move if all readers read the home, for every home that it may have."""
        return self._rows_of(group, present).without_copy

    def read_elsewhere(self, group: StorageGroup, present: Present) -> Counts:
        """Return the bytes that move if all readers read the home or one copy, for every layout of that."""
        return self._rows_of(group, present).all_from_copy

    def menu(self, group: StorageGroup, present: Present, floor: int, least: bool) -> Menu:
        """Return the ways to hold a group that move at least `floor` bytes; if `least`, the cheapest."""
        kind = self._kind(group, present)
        found = self._menus.get((kind, floor, least))
        if found is None:
            found = self._rows_of(group, present).menu(floor, least)
            self._menus[kind, floor, least] = found
        return found

    def _rows_of(self, group: StorageGroup, present: Present) -> _Rows:
        kind = self._kind(group, present)
        found = self._rows.get(kind)
        if found is None:
            pairs = self._pairs_of(kind.shape, present)
            reads = [self._uses.reads(*use[:3], pairs) if use[2] else None for use in kind.uses]
            makes = [
                None if use[3] is None else self._uses.makes(*use[:2], use[3], pairs) for use in kind.uses
            ]
            found = self._rows[kind] = _Rows(
                kind, pairs, tuple(reads), tuple(makes), self._homes(kind, pairs)
            )
        return found

    def _homes(self, kind: _Kind, pairs: LayoutPairs) -> Counts:
        """Return the numbers of the layouts that the home may have."""
        extents = dict(enumerate(kind.shape))
        others = (
            number
            for number, sequence in enumerate(pairs.layouts.sequences)
            if number
            and kind.present.movable
            and is_possible(extents, self._factors, sequence, self._replicate)
        )
        return np.array([0, *others])

    def _kind(self, group: StorageGroup, present: Present) -> _Kind:
        tensor = self._graph.tensors[group.tensors[0]]
        operations = [self._graph.operations[event.operation] for event in group.events]
        return _Kind(
            tensor.shape,
            tensor.itemsize,
            present,
            tuple([
                (operation.bound, self._strategies[operation.name], event.reads, event.makes)
                for operation, event in zip(operations, group.events, strict=True)
            ]),
            () if Partial() in present.home else windows_of(group),
            group.lasting,
            group.returned,
        )  # fmt: skip

    def _pairs_of(self, shape: Shape, present: Present) -> LayoutPairs:
        """Return the layouts of a tensor, the present ones first."""
        found = self._pairs.get((shape, present))
        if found is None:
            extents = dict(enumerate(shape))
            others: tuple[Dimensions, ...] = ()
            if Partial() not in present.home:
                others, _ = candidates(extents, self._factors, present.home, LAYOUT_LIMIT, True)
            own = [present.home] if present.via is None else [present.home, present.via]
            sequences = tuple(dict.fromkeys((*own, *others)))
            found = self._pairs[shape, present] = LayoutPairs.of(shape, sequences, self._factors)
        return found


@dataclass(frozen=True)
class _Rows:
    """The ways to hold groups of one kind."""

    kind: _Kind
    """The kind."""

    pairs: LayoutPairs
    """The layouts."""

    reads: tuple[Reads | None, ...]
    """For each event, what it reads."""

    makes: tuple[Makes | None, ...]
    """For each event, what it makes."""

    homes: Counts
    """The numbers of the layouts that a home may have."""

    @cached_property
    def via(self) -> Counts:
        """For every layout as a home, the layout in which partial results are reduced; -1 if none."""
        sequences, via = self.pairs.layouts.sequences, self.kind.present.via
        own = -1 if via is None else sequences.index(via)
        best = np.full(len(self.pairs.held), -1)
        least = self._make(best)
        for stop in [own, *np.argsort(self.pairs.held, kind="stable").tolist()] if self._terms else []:
            tried = self._make(np.full(len(best), stop))
            better = tried < least
            best, least = np.where(better, stop, best), np.where(better, tried, least)
        return best

    @property
    def _terms(self) -> bool:
        return any(makes is not None and makes.terms > 1 for makes in self.makes)

    def _make(self, via: Counts) -> Counts:
        """Count the elements that move from the makers to every home."""
        pairs = self.pairs
        total = np.zeros(len(pairs.held), np.int64)
        on = pairs.held - pairs.common[via, np.arange(len(via))]
        for makes in self.makes:
            if makes is not None:
                stopping = (via >= 0) & (makes.terms > 1)
                total += np.where(stopping, makes.moved[via] + on, makes.moved)
        return total

    @cached_property
    def without_copy(self) -> Counts:
        """The bytes that move if all readers read the home: `[homes]`."""
        total = self._make(self.via)
        for reads in self.reads:
            if reads is not None:
                total = total + reads.fetched
        return total[self.homes] * self.kind.itemsize

    @property
    def all_from_copy(self) -> Counts:
        """Return the bytes that move if all readers read one copy of the present home: `[layouts]`."""
        total = self._make(self.via)[0] + self.pairs.held - self.pairs.common[0]
        for reads in self.reads:
            if reads is not None:
                total = total + reads.fetched
        moved: Counts = total * self.kind.itemsize
        return moved

    def menu(self, floor: int, least: bool) -> Menu:
        """Return the ways that move at least `floor` bytes."""
        parts = [_Choices(self.homes, np.full(len(self.homes), -1), self._none(len(self.homes)))]
        for window in self.kind.windows:
            parts += self._copies(window)
        moved = [self._moved(part) for part in parts]
        allowed = [each >= floor for each in moved]
        if least:
            target = np.concatenate(moved)[np.concatenate(allowed)].min()
            allowed = [each == target for each in moved]
        rows, ways = [], []
        for part, may in zip(parts, allowed, strict=True):
            kept = part.only(np.flatnonzero(may))
            if len(kept.home):
                kept = kept.only(self._different(kept))
                rows.append(np.column_stack((self._moved(kept), self._live(kept))))
                ways.append(kept)
        table = np.concatenate(rows)
        chosen = _Choices(*(np.concatenate([getattr(way, name) for way in ways]) for name in _Choices.NAMES))
        present = (chosen.home == 0) & (chosen.copy < 0)
        best = undominated(table, np.flatnonzero(present))
        return Menu(table[best, 0], table[best, 1:], tuple(self._ways(chosen.only(best))))

    def _none(self, count: int) -> Mask:
        return np.zeros((count, len(self.reads)), bool)

    def _copies(self, window: tuple[int, ...]) -> list[_Choices]:
        """Return pairs of home and copy in which the copy saves bytes for the readers in a window.

        Readers that fetch as much from either read the home, or the copy if it is there already.
        """
        home, copy = (each.ravel() for each in np.meshgrid(self.homes, np.arange(len(self.pairs.held))))
        saved = self.pairs.common[home, copy] - self.pairs.held[copy]
        less, equal = self._none(len(home)), self._none(len(home))
        for number in window:
            reads = self.reads[number]
            assert reads is not None, "a window has readers alone"
            gain = reads.fetched[home] - reads.fetched[copy]
            touched = reads.touched[copy] == self.pairs.held[copy]
            less[:, number], equal[:, number] = touched & (gain > 0), touched & (gain == 0)
            saved = saved + np.where(less[:, number], gain, 0)
        useful = np.flatnonzero(saved > 0)
        chosen = _Choices(home[useful], copy[useful], less[useful])
        started = np.logical_or.accumulate(chosen.reads, axis=1)
        return [chosen, _Choices(chosen.home, chosen.copy, chosen.reads | (equal[useful] & started))]

    def _moved(self, chosen: _Choices) -> Counts:
        home, copy = chosen.home, chosen.copy
        made = self.pairs.held[copy] - self.pairs.common[home, copy]
        total = self._make(self.via)[home] + np.where(copy < 0, 0, made)
        for number, reads in enumerate(self.reads):
            if reads is not None:
                total += reads.fetched[np.where(chosen.reads[:, number], copy, home)]
        return total * self.kind.itemsize

    def _different(self, chosen: _Choices) -> Counts:
        """Return the first of all choices that are alike in every count."""
        home, copy, pairs = chosen.home, chosen.copy, self.pairs
        columns = [self._moved(chosen), home == 0, pairs.held[home]]
        columns += [np.where(copy < 0, 0, of[home, copy]) for of in (pairs.fresh, pairs.lent)]
        columns += [np.where(self.via < 0, 0, pairs.held[self.via])[home]] if self._terms else []
        columns += [makes.loose[home] for makes in self.makes if makes is not None]
        for number, reads in enumerate(self.reads):
            if reads is not None:
                read = chosen.reads[:, number]
                columns += [read, reads.buffered[np.where(read, copy, home)]]
        first, _ = distinct_rows(np.column_stack(columns))
        return first

    def _live(self, chosen: _Choices) -> Counts:
        """Return the bytes that are live in each span: `[choices, spans]`."""
        home, copy, pairs = chosen.home, chosen.copy, self.pairs
        live = self._at_home(chosen)
        span = np.arange(live.shape[1])
        first, last = _first_and_last(chosen.reads)
        ends = 1 + SPANS * last + FETCH
        for number, reads in enumerate(self.reads):
            if reads is not None:
                ends += (last == number) & (reads.direct[copy] == pairs.held[copy])
        kept = (span >= (1 + SPANS * first + COPY)[:, None]) & (span <= ends[:, None])
        live = np.where(kept, np.maximum(live, pairs.lent[home, copy][:, None]), live)
        live += kept * pairs.fresh[home, copy][:, None]
        for number, (reads, makes) in enumerate(zip(self.reads, self.makes, strict=True)):
            start = 1 + SPANS * number
            if reads is not None:
                buffered = reads.buffered[np.where(chosen.reads[:, number], copy, home)]
                live[:, [start + FETCH, start + COMPUTE]] += buffered[:, None]
            if makes is not None:
                via, loose = self.via[home], makes.loose[home]
                stop = np.where((via >= 0) & (makes.terms > 1), pairs.held[via], 0)
                computed = loose if number or self.kind.lasting else np.full(len(home), makes.made)
                live[:, start + COMPUTE] += computed
                live[:, start + REDUCE] += computed + stop
                live[:, start + COLLECT] += np.where(stop > 0, stop, loose)
        return live * self.kind.itemsize

    def _at_home(self, chosen: _Choices) -> Counts:
        """Return the elements of homes that are live in each span: from the last span to the first."""
        home, copy, held = chosen.home, chosen.copy, self.pairs.held[chosen.home]
        live = np.zeros((len(home), 1 + SPANS * len(self.reads)), np.int64)
        alive = held if self.kind.lasting or self.kind.returned else np.zeros_like(held)
        made_before = np.cumsum([self.kind.lasting, *(makes is not None for makes in self.makes)])
        first_reader, _ = _first_and_last(chosen.reads)
        for number in reversed(range(len(self.reads))):
            reads, first = self.reads[number], 1 + SPANS * number
            live[:, first + SPANS - 1] = alive
            made = self.makes[number] is not None
            live[:, first + COLLECT] = held if made else alive
            if made:
                alive = held if made_before[number] else np.zeros_like(held)
            live[:, first + REDUCE] = alive
            if reads is not None:
                direct = np.where(chosen.reads[:, number], 0, reads.direct[home])
                alive = np.maximum(alive, direct)
            live[:, first + COMPUTE] = alive
            if reads is not None:
                touched = np.where(chosen.reads[:, number], 0, reads.touched[home])
                alive = np.maximum(alive, touched)
            live[:, first + FETCH] = alive
            copied = np.where(first_reader == number, self.pairs.read[home, copy], 0)
            alive = np.maximum(alive, copied)
            live[:, first + COPY] = alive
        live[:, 0] = alive
        return live

    def _ways(self, chosen: _Choices) -> list[Way]:
        sequences = self.pairs.layouts.sequences
        found = []
        for home, copy, reads in zip(chosen.home.tolist(), chosen.copy.tolist(), chosen.reads, strict=True):
            via = int(self.via[home])
            found.append(
                Way(
                    sequences[home],
                    None if via < 0 else sequences[via],
                    None if copy < 0 else sequences[copy],
                    tuple(np.flatnonzero(reads).tolist()),
                )
            )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Ways to hold groups of a kind, as numbers of layouts."""

    NAMES = ("home", "copy", "reads")

    home: Counts
    """The home of each: `[choices]`."""

    copy: Counts
    """The copy of each, -1 if there is none: `[choices]`."""

    reads: Mask
    """Whether each event reads the copy: `[choices, events]`."""

    def only(self, numbers: Counts) -> _Choices:
        """Return some of the choices."""
        return _Choices(self.home[numbers], self.copy[numbers], self.reads[numbers])


def _first_and_last(reads: Mask) -> tuple[Counts, Counts]:
    """Return the numbers of the first and the last event that read a copy: none if the last is before."""
    events = reads.shape[1]
    if not events:
        return np.zeros(len(reads), np.int64), np.full(len(reads), -1)
    any_reads = reads.any(axis=1)
    first = np.where(any_reads, reads.argmax(axis=1), events)
    last = np.where(any_reads, events - 1 - reads[:, ::-1].argmax(axis=1), -1)
    return first, last


def undominated(rows: Counts, first: Counts) -> Counts:
    """Return the numbers of rows that no other row equals or beats in every column; `first` win ties."""
    early = np.ones(len(rows), np.int64)
    early[first] = 0
    order = np.lexsort((early, rows.sum(axis=1)))
    kept: list[int] = []
    best = rows[:0]
    for number in order.tolist():
        if not (best <= rows[number]).all(axis=1).any():
            kept.append(number)
            best = rows[kept]
    return np.array(sorted(kept, key=lambda number: early[number]), np.int64)

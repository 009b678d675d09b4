"""All blocks of a simulation in arrays, and their times: those that are accepted, and those of a proposal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ..programs.program import Lane
from ..support.compiled import filled, longer, numbers, plain, put, zeros
from .blocks import OperationBlock
from .deciding_operations import deciding_nanoseconds
from .events import NEVER, first_change, follow, keep
from .net import Net
from .waits import Clock, Lanes, Placed, chain, settle
from .ways import Ways

_NONE = -1


class _FreePlaces:
    """Ranges of an array that grows. A range that is given back is used for one of about the same length."""

    def __init__(self) -> None:
        self.end = 0
        """The length that the array needs."""
        self._free: dict[int, list[int]] = {}

    def take(self, length: int) -> int:
        """Return the first place of a range of at least this length."""
        size = _rounded(length)
        free = self._free.get(size)
        if free:
            return free.pop()
        begin, self.end = self.end, self.end + size
        return begin

    def give(self, begin: int, length: int) -> None:
        """Take back a range that was taken with this length."""
        self._free.setdefault(_rounded(length), []).append(begin)


@cache
def _rounded(length: int) -> int:
    """Return the next one of the lengths that ranges have: a few for each power of two."""
    step = 1 << max(length.bit_length() - 3, 0)
    return -(-length // step) * step


class _Site(NamedTuple):
    """Where the block of an operation is."""

    block: OperationBlock
    """The block."""

    at: int
    """Where its integers begin."""

    base: int
    """The number of its first instruction."""

    leg_base: int
    """The number of its first leg."""

    @property
    def numbers(self) -> slice:
        """The numbers of its instructions."""
        return slice(self.base, self.base + self.block.count)

    @property
    def legs(self) -> slice:
        """The numbers of its legs."""
        return slice(self.leg_base, self.leg_base + self.block.legs)


class PlacedBlocks:
    """Blocks and their times. A proposal that is refused leaves no trace in either."""

    def __init__(self, net: Net, workers: int, ways: Ways) -> None:
        count = len(net.order)
        self._net = net
        self._ways = ways
        self._lanes = Lanes(zeros(1), zeros(0), numbers(ways.wakes.repeat(len(Lane)).tolist()), True)
        self._words, self._numbers, self._legs = _FreePlaces(), _FreePlaces(), _FreePlaces()
        self._placed = Placed(zeros(0), zeros(count), zeros(count), zeros(count), *[zeros(0)] * 4)
        self._clock = Clock(zeros(0), zeros(0), zeros(0))
        """The times of the state."""
        self._proposed = Clock(zeros(0), zeros(0), zeros(0))
        """The times of the proposal."""
        self._known, self._missing, self._moved = zeros(0), zeros(0), zeros(0)
        self._last = zeros(len(Lane) * workers)
        self._written: dict[OperationBlock, tuple[int, int]] = {}
        """Where the integers of each block begin, and how many operations have it."""
        self._sites: dict[int, _Site] = {}
        self._replaced: dict[int, _Site] = {}
        """Where the blocks are that the proposal replaces."""

    def begin(self, blocks: Mapping[int, OperationBlock]) -> int:
        """Place the blocks of all operations and return the time of the whole."""
        self._place_all([blocks[operation] for operation in range(len(blocks))])
        self._chain(blocks)
        self._known[:] = zeros(len(self._known))
        whole = self._follow(0)
        self._clock, self._proposed = self._proposed, self._clock
        return whole

    def propose(self, blocks: Mapping[int, OperationBlock], overwriting: Sequence[int], limit: float) -> int:
        """Replace the blocks of some operations and return the time of the whole.

        `overwriting` are the tensors that overwrite what those operations read. Above `limit` nanoseconds
        the time may be any other one above it.
        """
        bound = min((self._first_ready(self._sites[operation]) for operation in blocks), default=0)
        self._replaced = {operation: self._sites[operation] for operation in blocks}
        self._place(blocks)
        moved = self._chain(blocks)
        for tensor in overwriting:
            if int(self._net.maker[tensor]) not in blocks:
                moved = self._add_writers(tensor, moved)
        self._known[:] = filled(len(self._known), 1)
        for operation in blocks:
            put(self._known, self._sites[operation].numbers, 0)
        since = first_change(
            self._net,
            self._placed,
            self._clock,
            self._lanes,
            self._known,
            numbers(blocks),
            self._moved,
            moved,
            bound,
        )
        for old, new in zip(self._clock, self._proposed, strict=True):
            new[:] = old
        return self._follow(since, int(min(limit, NEVER)))

    def accept(self) -> None:
        """Make the proposal the state."""
        self._clock, self._proposed = self._proposed, self._clock
        for site in self._replaced.values():
            self._give(site)
        self._replaced = {}

    def refuse(self) -> None:
        """Go back to the state before the proposal."""
        for operation in self._replaced:
            self._give(self._sites[operation])
        self._settle(self._replaced)
        self._replaced = {}
        self._chain(self._sites)

    def times(self, operation: int) -> tuple[list[int], list[int], list[int]]:
        """Return when the instructions of an operation are ready, when they end and when their legs start."""
        site = self._sites[operation]
        clock = self._proposed if self._replaced else self._clock
        ready, end = clock.ready[site.numbers], clock.end[site.numbers]
        return plain(ready), plain(end), plain(clock.leg_start[site.legs])

    def deciding(self) -> list[int]:
        """Return the nanoseconds of each operation on a chain that takes the whole iteration."""
        legs = sum(site.block.legs for site in self._sites.values())
        clock = self._proposed if self._replaced else self._clock
        return deciding_nanoseconds(self._net, self._placed, clock, self._lanes, legs)

    def critical_path(self) -> int:
        """Return the longest chain of jobs that need each other: the time if all lanes were infinite."""
        return self._unhindered()[0]

    def unhindered(self) -> list[int]:
        """Return when each operation ends if all lanes were infinite."""
        _, clock = self._unhindered()
        sites = [self._sites[operation] for operation in range(len(self._sites))]
        return [max(plain(clock.end[site.numbers]), default=0) for site in sites]

    def _unhindered(self) -> tuple[int, Clock]:
        """Return the time of the whole and all times if all lanes were infinite."""
        lanes = self._lanes._replace(firsts=zeros(len(self._lanes.firsts)), in_turn=False)
        clock = Clock(*[zeros(len(each)) for each in self._clock])
        known, missing, free = zeros(len(self._known)), zeros(len(self._known)), zeros(0)
        return int(follow(self._net, self._placed, clock, lanes, known, missing, free, NEVER)), clock

    def busiest_lane(self) -> int:
        """Return the time in which the busiest lane, or the busiest worker's computations, take place."""
        computing: Counter[int] = Counter()
        ways: Counter[int] = Counter()
        for block, users in Counter([site.block for site in self._sites.values()]).items():
            for worker, way, time in block.occupied():
                ways[way] += users * time
                if worker is not None:
                    computing[worker] += users * time
        lanes: Counter[int] = Counter()
        for way, time in ways.items():
            for lane in self._ways.lanes[way] if way != _NONE else ():
                lanes[lane] += time
        return max([*computing.values(), *lanes.values()], default=0)

    def _follow(self, since: int, limit: int = NEVER) -> int:
        """Find the times of the proposal up to a limit; those before a moment are known."""
        if len(self._lanes.firsts) <= len(self._ways.lanes):
            ends = [0]
            for lanes in self._ways.lanes:
                ends.append(ends[-1] + len(lanes))
            lanes = numbers(lane for lanes in self._ways.lanes for lane in lanes)
            self._lanes = self._lanes._replace(firsts=numbers(ends), lanes=lanes)
        free = zeros(len(self._ways.lane_names))
        keep(self._placed, self._proposed, self._lanes, self._known, free, since)
        return int(
            follow(
                self._net,
                self._placed,
                self._proposed,
                self._lanes,
                self._known,
                self._missing,
                free,
                limit,
            )
        )

    def _place_all(self, blocks: Sequence[OperationBlock]) -> None:
        """Write the blocks of all operations, equal ones once, one after the other."""
        users = Counter(blocks)
        self._written = {block: (self._words.take(len(block.words)), count) for block, count in users.items()}
        take, take_legs = self._numbers.take, self._legs.take
        self._sites = {
            number: _Site(block, self._written[block][0], take(block.count), take_legs(block.legs))
            for number, block in enumerate(blocks)
        }
        words, count, legs = self._words.end, self._numbers.end, self._legs.end
        of_numbers = [zeros(count) for _ in range(4)]
        self._placed = Placed(zeros(words), *self._placed[1:4], *of_numbers)
        self._clock, self._proposed = (Clock(zeros(count), zeros(count), zeros(legs)) for _ in range(2))
        self._known, self._missing, self._moved = zeros(count), zeros(count), zeros(2 * count)
        for block, (at, _) in self._written.items():
            self._placed.words[at : at + len(block.words)] = block.words
        self._settle(self._sites)

    def _place(self, blocks: Mapping[int, OperationBlock]) -> None:
        """Write blocks to free places, equal ones once."""
        sites: dict[int, _Site] = {}
        fresh: list[tuple[int, OperationBlock]] = []
        for operation, block in blocks.items():
            at, users = self._written.get(block, (_NONE, 0))
            if not users:
                at = self._words.take(len(block.words))
                fresh.append((at, block))
            self._written[block] = at, users + 1
            base, leg_base = self._numbers.take(block.count), self._legs.take(block.legs)
            sites[operation] = _Site(block, at, base, leg_base)
        self._grow()
        for at, block in fresh:
            self._placed.words[at : at + len(block.words)] = block.words
        self._settle(sites)

    def _settle(self, sites: Mapping[int, _Site]) -> None:
        self._sites.update(sites)
        places = [(operation, site.at, site.base, site.leg_base) for operation, site in sites.items()]
        if places:
            settle(self._placed, *map(numbers, zip(*places, strict=True)))

    def _give(self, site: _Site) -> None:
        at, users = self._written.pop(site.block)
        if users > 1:
            self._written[site.block] = at, users - 1
        else:
            self._words.give(at, len(site.block.words))
        self._numbers.give(site.base, site.block.count)
        self._legs.give(site.leg_base, site.block.legs)

    def _grow(self) -> None:
        """Lengthen the arrays that have become too short."""
        placed, count, legs = self._placed, self._numbers.end, self._legs.end
        self._placed = placed._replace(
            words=longer(placed.words, self._words.end),
            owner=longer(placed.owner, count),
            runner=longer(placed.runner, count),
            before=longer(placed.before, count),
            after=longer(placed.after, count),
        )
        self._clock, self._proposed = (
            Clock(longer(each.ready, count), longer(each.end, count), longer(each.leg_start, legs))
            for each in (self._clock, self._proposed)
        )
        self._known, self._missing = longer(self._known, count), longer(self._missing, count)
        self._moved = longer(self._moved, 2 * count)

    def _chain(self, replaced: Mapping[int, object]) -> int:
        """Join blocks, and return the number of instructions that follow another one than before."""
        kept = numbers([operation not in replaced for operation in range(len(self._net.order))])
        return int(chain(self._net, self._placed, self._last, kept, self._moved))

    def _first_ready(self, site: _Site) -> int:
        return min(plain(self._clock.ready[site.numbers]), default=0)

    def _add_writers(self, tensor: int, moved: int) -> int:
        """Add the instructions that write a tensor to those that moved, and return their number."""
        maker = int(self._net.maker[tensor])
        site = self._sites[maker]
        for number in site.block.writers(int(self._net.made_as[tensor])):
            self._moved[moved] = site.base + number
            moved += 1
        return moved

"""Pass least costs from segment to segment, forwards and backwards: a bound that rises to the optimum.

For a segment s and every choice w at the waist behind it, let

    least[s](w) = min over assignments of s that end in w of (costs of s + costs passed on to s)

This amount, less the segment's bound, is moved into the next segment, so the sum over all segments stays the
same for every assignment. In a row of segments that is dynamic programming: after a full pass, the least
costs of the segments add up to the optimum, and at any earlier time they add up to a lower bound.

Finding least[s](w) for every w is too much work. The choices within a budget of the cheapest are found
quickly, and all others certainly cost more than the budget. Every segment has a separate budget, so budgets
do not shrink with the length of the network. A budget is as large as the number of states allows. A choice
that costs more than the gap leaves to a better assignment is barred.

Implemented in: `SegmentPassing._least` (least[s], within a budget), `_move` (the amount), `hand_on` (a pass),
`dive` (an assignment). Assumes: `gap` is at least the cost of the best assignment known less `bound`.
Guarantees: `bound` never falls, and no assignment better than the best one known costs less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from .bounded_search import BoundedSearch, Search, StateLimitError
from .message_passing import MessagePassing, Reweighted
from .pairwise import Costs, Pair
from .segments import Segment

SWEEPS = 10
"""The number of sweeps over a segment before it is searched."""

FIRST_BUDGET = 0.02
"""The first budget, as a fraction of the gap."""

GROWTH = 1.5
"""The factor between two successive budgets."""

AMPLE = 8
"""A budget is large enough if it needs at least the state limit divided by this number."""

PATIENCE = 10
"""The state limit is multiplied by this while no choice was found within a budget."""

TRACE_STATES = 1 << 14
"""The number of states that a search for one segment's best choices may keep."""

TRACE_BEAM = 1 << 11
"""The width of the beam if that number is not enough."""

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class SegmentPassing:
    """Segments with the costs that were passed between them. No segment costs less than its part of
    `bound`."""

    segments: Sequence[Segment]
    """The segments, in the order of the variables."""

    gap: float
    """How far the best assignment known exceeds the bound. A choice that exceeds a segment's part by more
    belongs to no better assignment, so no budget needs to be larger."""

    entries: int = 0
    """The number of costs computed so far."""

    _spare: float = field(init=False)
    """The latest budget above the least cost of a segment."""

    _bar: float = field(init=False)
    """The price that is added to choices that belong to no better assignment."""

    _bounds: list[float] = field(init=False)
    """For each segment, a lower bound on its cost: its part of `bound`."""

    _handed: list[Costs] = field(init=False)
    """For each segment, the costs moved over the waist after it into the next one, by choice at the waist.
    Costs moved back count negatively."""

    _barred: list[Costs] = field(init=False)
    """For each segment, the prices of choices at the waist after it, by choice."""

    _sent: list[Mapping[Pair, Costs]] = field(init=False)
    """For each segment, the messages of the last reweighting, with which the next one starts."""

    def __post_init__(self) -> None:
        self._spare = self.gap * FIRST_BUDGET
        self._bar = 4 * self.gap
        self._bounds = [0.0 for _ in self.segments]
        self._handed = [np.zeros(segment.extents(segment.after)) for segment in self.segments]
        self._barred = [np.zeros_like(costs) for costs in self._handed]
        self._sent = [{} for _ in self.segments]

    @property
    def bound(self) -> float:
        """Return a lower bound on the cost of any assignment better than the best one known."""
        return sum(self._bounds)

    def hand_on(self, backwards: bool, state_limit: int, rise: Callable[[float], None]) -> None:
        """Pass costs through all segments, from the last one if `backwards`.

        The bound never falls. `rise` is called with it after every segment.
        """
        for number in self._along(backwards):
            least, _ = self._least(number, backwards, state_limit)
            self._move(number, backwards, least, least - least.min() > self.gap)
            rise(self.bound)

    def dive(self, backwards: bool, state_limit: int) -> tuple[int, ...] | None:
        """Return a good assignment: pass on costs that few states reach, bar all else, trace the way back.

        The costs passed in the other direction guide the search. None if a segment has no choice within the
        gap.
        """
        trial = self._copy()
        for number in trial._along(backwards):
            least, found = trial._least(number, backwards, state_limit)
            if not found.any():
                self.entries = trial.entries
                return None
            trial._move(number, backwards, least, ~found)
        assignment = trial._trace(not backwards)
        self.entries = trial.entries
        return assignment

    def _copy(self) -> SegmentPassing:
        other = replace(self)
        other._spare, other._bar = self._spare, self._bar
        other._bounds, other._sent = list(self._bounds), list(self._sent)
        other._handed, other._barred = list(self._handed), list(self._barred)
        return other

    def _along(self, backwards: bool) -> Iterator[int]:
        numbers = range(len(self.segments))
        return reversed(numbers) if backwards else iter(numbers)

    def _move(self, number: int, backwards: bool, least: Costs, barred: Mask) -> None:
        """Move a segment's least costs beyond its bound into the next one; bar choices between them."""
        self._bounds[number] = float(least.min())
        waist = number - 1 if backwards else number
        if waist >= 0:
            excess = least - self._bounds[number]
            self._handed[waist] = self._handed[waist] + (-excess if backwards else excess)
            self._barred[waist] = np.maximum(self._barred[waist], np.where(barred, self._bar, 0.0))

    def _reweighted(self, number: int, backwards: bool) -> Reweighted:
        """Return a segment with the costs that were passed to it, less those that it passed on."""
        before = self._handed[number - 1] + self._barred[number - 1] if number else np.zeros(())
        problem = self.segments[number].shifted(before, self._handed[number] - self._barred[number])
        messages = MessagePassing(problem, self._sent[number])
        for _ in range(SWEEPS):
            messages.sweep()
        self._sent[number] = messages.sent
        return messages.reweighted(backwards)

    def _least(self, number: int, backwards: bool, state_limit: int) -> tuple[Costs, Mask]:
        """Find a segment's least cost for every choice at the waist ahead, and a mask of those found.

        The budget grows until it needs many states, and further until at least one choice is found. All other
        choices cost more than the budget.
        """
        segment = self.segments[number]
        problem = self._reweighted(number, backwards)
        ahead = segment.before if backwards else segment.after
        end = len(segment.variables)
        kept = frozenset(end - 1 - place if backwards else place for place in ahead)
        known = max(self._bounds[number] - problem.bound, 0.0)
        least = np.full(segment.extents(ahead), known)
        found = np.ones(least.shape, np.bool_)
        spare, searched, shrunk = max(self._spare / GROWTH, 1.0), False, False
        while spare >= 1.0:
            budget = known + float(int(min(spare, self.gap)))
            limit = state_limit if found.any() else state_limit * PATIENCE
            bounded = BoundedSearch(problem)
            try:
                states = bounded.marginals(Search(0, end, budget, state_limit=limit, kept=kept))
            except StateLimitError:
                self.entries += bounded.entries
                if searched:
                    break
                spare, shrunk = spare / GROWTH, True
                continue
            self.entries += bounded.entries
            self._spare, searched = spare, True
            least = np.full(least.shape, budget + 1)
            values = states.values[:, :: -1 if backwards else 1]
            if len(states.costs):
                least[tuple(values.T)] = states.costs if ahead else states.costs[0]
            found = least <= budget
            ample = not shrunk and bounded.most * AMPLE <= limit
            if spare >= self.gap or (found.any() and not ample):
                break
            spare *= GROWTH
        return least + problem.bound, found

    def _trace(self, backwards: bool) -> tuple[int, ...]:
        """Return an assignment, segment by segment, each the best given those before."""
        chosen: dict[int, int] = {}
        for number in self._along(backwards):
            variables = self.segments[number].variables[:: -1 if backwards else 1]
            fixed = {place: chosen[v] for place, v in enumerate(variables) if v in chosen}
            problem = self._reweighted(number, backwards).restricted(fixed)
            values = self._best(problem, max(self._bounds[number] - problem.bound, 0.0))
            chosen = dict(zip(variables, values, strict=True)) | chosen
        return tuple(chosen[variable] for variable in range(len(chosen)))

    def _best(self, problem: Reweighted, known: float) -> tuple[int, ...]:
        """Return the best assignment, or one from a beam if the search would keep too many states."""
        bounded = BoundedSearch(problem)
        spare, beam = 0.0, None
        while True:
            search = Search(0, len(problem.domains), known + spare, state_limit=TRACE_STATES, beam=beam)
            try:
                found = bounded.assignment(search)
            except StateLimitError:
                spare, beam = math.inf, TRACE_BEAM
                continue
            if found is not None:
                self.entries += bounded.entries
                return found
            spare = 2 * spare + self._spare / AMPLE + 1

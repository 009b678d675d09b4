"""Choose which copies to keep, and which homes to split, within a limit of memory, with a bound.

    variables    for every group of tensors one of its ways to be held (`problem.ways_to_hold`)
    objective    the bytes that move
    constraint   at every instant t, live[t] <= workers * limit

    D(p)  =  least of  moved + sum over t of p[t] * live[t]   -   workers * limit * sum over t of p[t]

`D(p)` is a lower bound for all prices p >= 0, and its minimum is taken group by group. It counts only
instants at which live bytes are certain: when inputs are fetched, and when outputs are computed that cannot
share memory with an input. Prices rise at instants that hold too much and fall at others, in steps that
shrink as bound and best choice approach each other (Polyak). Every choice is repaired: at the fullest
instant, groups change to the way that moves the fewest further bytes for each byte that they free; then
groups change back as far as there is room. The best choice is lowered. If its arena exceeds the limit, one is
looked for within a limit that is lower by as much, then by twice the next excess, and so on. Implemented in:
`within` (lowering), `_priced`, `_repaired`. `least_memory` finds the lowest limit at which no more bytes move
than before.

Guarantees: the bound holds for these strategies and for the ways on the menus, since an arena holds all that
is live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...dataflow.graph import Graph
from ...support.gc_pause import gc_paused
from ..layouts.choices import Counts
from ..plans.plan import Plan
from ..problem.ways_to_hold import COMPUTE, FETCH, PHASES
from .keeping import Keeping, MenuGroups, Offers, lighter, may_keep

ROUNDS = 60
"""The number of times that prices are changed."""

UNIT = 1 << 16
"""The price of a byte that moves; prices of live bytes are whole numbers, too."""

SWAPS = 40
"""The number of times that groups are changed at the fullest instant."""

HALVINGS = 8
"""The number of times that the range of the least memory is halved."""

ATTEMPTS = 6
"""The number of choices that are lowered."""


@dataclass(frozen=True, slots=True)
class KeptWithin:
    """The plan found for a limit of memory, among those with the same strategies."""

    plan: Plan
    """The best plan that fits; if none does, the one with the least peak."""

    peak_bytes: int
    """The largest arena of a worker of this plan."""

    least_bytes: int
    """No plan that fits moves fewer bytes, among those with these strategies and ways on the menus."""


@gc_paused()
def within(
    graph: Graph,
    plan: Plan,
    limit_bytes: int,
    peak: Callable[[Plan], int],
    beyond: bool = False,
    below: int | None = None,
) -> KeptWithin:
    """Return the best plan found with the same strategies that fits `limit_bytes` a worker.

    `peak` is the memory that a plan needs; see `lighter` for `beyond`. A plan that is not in steps is
    returned as it is, with no bound. So is one, with its bound, if no plan moves fewer than `below` bytes.
    """
    found = KeptWithin(plan, peak(plan), 0)
    if not may_keep(graph, plan):
        return found
    keeping = Keeping(graph, plan, beyond)
    offers = keeping.offers(least=False)
    room = plan.workers * limit_bytes
    chosen, bound = _priced(offers, room, offers.most if below is None else below - 1)
    if below is not None and bound >= below:
        return replace(found, least_bytes=bound)
    tried = [found]
    for attempt in range(ATTEMPTS):
        made = keeping.plan_of(offers, chosen)
        tried.append(KeptWithin(made, peak(made), 0))
        excess, fullest = tried[-1].peak_bytes - limit_bytes, int(offers.live(chosen).max())
        if excess <= 0 or fullest > room:
            break
        room = fullest - plan.workers * (excess << attempt)
        chosen, _ = _priced(offers, room, offers.most)
    fitting = [each for each in tried if each.peak_bytes <= limit_bytes]
    if not fitting:
        return replace(min(tried, key=lambda each: each.peak_bytes), least_bytes=bound)
    best = min(fitting, key=lambda each: each.plan.cost_bytes)
    return replace(best, least_bytes=min(bound, best.plan.cost_bytes))


@gc_paused()
def least_memory(graph: Graph, plan: Plan, peak: Callable[[Plan], int], beyond: bool = False) -> Plan:
    """Return the plan found with the same strategies that needs the least memory and moves no more bytes.

    The bytes that copies save are spent on memory; see `lighter` for `peak` and `beyond`. A plan to which
    nothing better is found is returned as it is.
    """
    if not may_keep(graph, plan):
        return plan
    keeping = Keeping(graph, plan, beyond)
    offers = keeping.offers(least=False)
    best, _ = offers.cheapest(np.zeros(offers.instants, np.int64), UNIT)
    high = int(offers.live(best).max())
    low = high // 2
    for _ in range(HALVINGS):
        room = (low + high) // 2
        chosen, _ = _priced(offers, room, plan.cost_bytes)
        fullest = int(offers.live(chosen).max())
        if fullest < high and offers.moved(chosen) <= plan.cost_bytes:
            best, high = chosen, fullest
        else:
            low = room
    tried = (plan, lighter(graph, plan, peak, beyond), keeping.plan_of(offers, best))
    return min((each for each in tried if each.cost_bytes <= plan.cost_bytes), key=peak)


def _priced(offers: Offers, room: int, most: int) -> tuple[Counts, int]:
    """Return the best choice found by prices, within `room` at every instant if possible, and the bound.

    Stop as soon as the bound exceeds `most` bytes.
    """
    certain = np.zeros(offers.instants, bool)
    certain[FETCH::PHASES] = True
    certain[COMPUTE::PHASES] = offers.counted[COMPUTE::PHASES]
    prices = np.zeros(offers.instants, np.int64)
    best, bound = None, 0
    least: tuple[bool, int] = (True, 0)
    for _ in range(ROUNDS):
        chosen, total = offers.cheapest(prices, UNIT)
        bound = max(bound, -(-(total - int(prices.sum()) * room) // UNIT))
        fitted = _repaired(offers, chosen, room)
        state = int(offers.live(fitted).max()) > room, offers.moved(fitted)
        if best is None or state < least:
            best, least = fitted, state
        if bound > most or (not least[0] and bound >= least[1]):
            break
        over = np.where(certain, offers.live(chosen) - room, 0).astype(float)
        over[(over < 0) & (prices == 0)] = 0
        square = float(over @ over)
        if not square:
            break
        gap = max(least[1] - (total / UNIT - float(prices.sum()) * room / UNIT), 1.0)
        prices = np.maximum(prices + np.rint(UNIT * gap / square * over).astype(np.int64), 0)
    assert best is not None, "there is at least one round"
    return best, bound


def _repaired(offers: Offers, chosen: Counts, room: int) -> Counts:
    """Return a choice near this one with at most `room` live bytes, or as few as swaps lead to."""
    least, best = offers.live(chosen), chosen
    live = least
    full: list[int] = []
    for _ in range(SWAPS):
        if least.max() <= room:
            break
        instant = int(live.argmax())
        free = {each: max(room - int(live[each]), 0) for each in full if each != instant}
        full.append(instant)
        chosen, changed = _freed(offers, chosen, instant, int(live[instant]) - room, free)
        if not changed:
            break
        live = offers.live(chosen)
        if live.max() < least.max():
            least, best = live, chosen
    return _filled(offers, best, room)


def _freed(
    offers: Offers, chosen: Counts, instant: int, excess: int, free: Mapping[int, int]
) -> tuple[Counts, bool]:
    """Change groups until `excess` fewer bytes are live at an instant, the cheapest first.

    At the instants in `free` no change may take more than these bytes, or changes would follow each other in
    a circle. The second value tells whether a group can free any.
    """
    chosen = chosen.copy()
    swaps: list[tuple[float, int, int, int]] = []
    for batch in offers.batches:
        if len(batch.menu.ways) == 1:
            continue
        own = chosen[batch.numbers]
        freed = -_more(batch, own, instant)
        fits = freed > 0
        for other, most in free.items():
            if fits.any():
                fits &= _more(batch, own, other) <= most
        further = batch.menu.moved[own] - batch.menu.moved[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.where(fits, -further / np.minimum(freed, excess), np.inf)
        best = price.argmin(axis=0)
        places = np.arange(len(own))
        for place in np.flatnonzero(np.isfinite(price[best, places])).tolist():
            way = int(best[place])
            swaps.append((
                float(price[way, place]), int(batch.numbers[place]), way, int(freed[way, place])
            ))  # fmt: skip
    for _, number, way, freed_bytes in sorted(swaps):
        if excess <= 0:
            break
        chosen[number] = way
        excess -= freed_bytes
    return chosen, bool(swaps)


def _more(batch: MenuGroups, own: Counts, instant: int) -> Counts:
    """Return `[way, group]`: the bytes by which a group's other ways exceed its own at an instant."""
    span = (batch.firsts <= instant).sum(axis=1) - 1
    return np.asarray(batch.menu.live[:, span] - batch.menu.live[own, span])


def _filled(offers: Offers, chosen: Counts, room: int) -> Counts:
    """Change groups to ways that move less, as far as there is room."""
    chosen, live = chosen.copy(), offers.live(chosen)
    ceiling = max(room, int(live.max()))
    saving: list[tuple[int, int, int]] = []
    for number, batch in enumerate(offers.batches):
        saved = batch.menu.moved[chosen[batch.numbers]] - batch.menu.moved.min()
        saving += [(-int(each), number, place) for place, each in enumerate(saved) if each > 0]
    for _, number, place in sorted(saving):
        batch = offers.batches[number]
        group, menu = int(batch.numbers[place]), batch.menu
        own = int(chosen[group])
        firsts, lasts = batch.firsts[place], batch.lasts[place]
        some = np.flatnonzero(lasts > firsts)
        fullest = np.maximum.reduceat(live, firsts[some])
        free = ceiling - fullest
        more = menu.live[:, some] - menu.live[own, some]
        fits = (more <= free).all(axis=1) & (menu.moved < menu.moved[own])
        if fits.any():
            best = int(np.where(fits, menu.moved, np.iinfo(np.int64).max).argmin())
            change = np.repeat(more[best], (lasts - firsts)[some])
            live += np.where(offers.counted, change, 0)
            chosen[group] = best
    return chosen

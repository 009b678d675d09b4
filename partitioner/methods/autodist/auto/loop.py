"""AutoDist's own loop (section 2.4, algorithm 1), for comparison: sample, predict, choose, try, fit again.

    1. sample     draw `SAMPLED` strategies by the guided sampler
    2. predict    score them; refuse those that are predicted to be slow, by the fidelity of the ranker
    3. choose     `CHOSEN` of them, by their scores and by how much their features differ from those chosen
    4. try        simulate them
    5. fit        the ranker again, to all trials, and its fidelity

The *fidelity level* is the part of the slowest trials that the ranker tells from all others: the largest of
`LEVELS` for which it puts at least `WANTED` of such pairs in order. A strategy whose score is among those of
that part is refused. A ranker that was fitted for another graph may be given to begin with.

Everything follows from the seed. The budget is a number of trials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from ..strategy import SyncStrategy
from .model import SyncModel
from .ranker import Ranker, features
from .sampler import sample
from .traffic import Reals

SAMPLED = 48
"""The strategies that are drawn in each round."""

CHOSEN = 5
"""The strategies that are tried in each round."""

LEVELS = (0.75, 0.5, 0.25)
"""The parts of the slowest trials that may be told from others."""

WANTED = 0.8
"""The part of pairs that a ranker has to put in order, as the paper wants it."""

DIVERSITY = 0.3
"""The weight of a strategy's distance from those chosen, next to that of its score."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The outcome of a loop."""

    strategy: SyncStrategy
    """The fastest strategy that was tried."""

    best_seconds: tuple[float, ...]
    """The least time after each trial."""

    ranker: Ranker
    """The ranker, fitted to all trials."""

    refused: int
    """The strategies that were refused without a trial."""


def run_loop(
    model: SyncModel,
    trial: Callable[[SyncStrategy], float],
    trials: int,
    seed: int = 0,
    ranker: Ranker | None = None,
) -> LoopResult:
    """Search by trials. `trial` returns the seconds of an iteration."""
    draw, fitted = Random(seed), ranker or Ranker()
    known = ranker is not None
    rows: list[Reals] = []
    seconds: list[float] = []
    tried: list[SyncStrategy] = []
    refused, limit = 0, np.inf
    while len(tried) < trials:
        drawn = [sample(model.graph, model.pairs.workers, draw) for _ in range(SAMPLED)]
        found = np.array([features(model, each) for each in drawn])
        scores = fitted.scores(found)
        passed = np.flatnonzero(scores <= limit)
        refused += len(drawn) - len(passed)
        if not len(passed):
            passed = np.array([scores.argmin()])
        count = min(CHOSEN, trials - len(tried))
        for place in _chosen(found[passed], scores[passed], count, known):
            number = int(passed[place])
            rows.append(found[number])
            tried.append(drawn[number])
            seconds.append(trial(drawn[number]))
        fitted, known = (ranker or Ranker()).fitted(np.array(rows), seconds), True
        limit = _limit(fitted.scores(np.array(rows)), np.array(seconds))
    best = int(np.argmin(seconds))
    least = np.minimum.accumulate(np.array(seconds))
    return LoopResult(tried[best], tuple(least.tolist()), fitted, refused)


def _chosen(rows: Reals, scores: Reals, count: int, known: bool) -> list[int]:
    """Return the places of strategies with low scores and different features.

    If nothing is known of scores, they are the first ones.
    """
    if not known:
        return list(range(min(count, len(rows))))
    spread = rows.std(axis=0)
    scaled = rows / np.where(spread > 0, spread, 1.0)
    ranks = scores.argsort(kind="stable").argsort(kind="stable") / max(len(scores) - 1, 1)
    found = [int(ranks.argmin())]
    while len(found) < min(count, len(rows)):
        apart = np.abs(scaled[:, None] - scaled[found][None]).mean(axis=2).min(axis=1)
        value = (1 - DIVERSITY) * ranks - DIVERSITY * apart / max(float(apart.max()), 1e-9)
        value[found] = np.inf
        found.append(int(value.argmin()))
    return found


def _limit(scores: Reals, seconds: Reals) -> float:
    """Return the score above which strategies are refused; infinite if the ranker tells too little."""
    for level in LEVELS:
        slow = seconds >= np.quantile(seconds, 1 - level)
        pairs = seconds[slow][:, None] > seconds[~slow][None]
        right = scores[slow][:, None] > scores[~slow][None]
        if pairs.any() and right[pairs].mean() >= WANTED:
            return float(np.quantile(scores, 1 - level))
    return np.inf

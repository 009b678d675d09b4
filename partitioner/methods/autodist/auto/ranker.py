"""A linear predictor of which of two strategies is faster, fitted to trials by a ranking loss.

A strategy's features are sums over its variables: how long its transfers take by the simple estimates that
AutoDist predefines, and raw facts. All are relative to the graph and its plain all-reduces, so a ranker that
was fitted for one graph can score strategies of another one.

    variables     a weight for each feature
    objective     the mean over pairs of trials of log(1 + exp(score of the faster - score of the slower)),
                  and a small multiple of the squared distance from the weights that it begins with
    method        gradient descent in `STEPS` steps from zero, or from the weights of another graph
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..strategy import AllReduce, Server, SyncStrategy
from .model import SyncModel
from .traffic import Reals, part_bytes, sync_traffic

STEPS = 400
RATE = 0.5
DECAY = 1e-3

FEATURES = (
    "sent by servers",
    "received by servers",
    "fetched from servers",
    "terms of all-reduces",
    "spread of all-reduces",
    "busiest lane",
    "all lanes",
    "variables with servers",
    "variables reduced",
    "variables cut",
    "bytes with servers",
    "bytes cut",
    "sparse bytes with servers",
    "groups",
    "largest group",
    "kept copies",
    "updates last",
)
"""The names of the features, the estimates first. A higher score means more time."""


def features(model: SyncModel, strategy: SyncStrategy) -> Reals:
    """Return the features of a strategy."""
    pairs, workers = model.pairs, model.pairs.workers
    total = float(sum(each.tensor.nbytes for each in model.variables)) or 1.0
    count = len(model.variables) or 1
    even = (1 - np.eye(workers)) * total / workers
    unit = 2 * float(pairs.loads(pairs.of(even)).max(initial=0.0)) or 1.0
    found = dict.fromkeys(FEATURES, 0.0)
    lanes = np.zeros(pairs.occupies.shape[0])
    groups: dict[int, float] = {}
    for variable in model.variables:
        how = strategy.variables[variable.tensor.name]
        moved = sync_traffic(variable, how, workers, strategy.shares)
        gradient, spread, fetched = (pairs.of(each) for each in (moved.gradient, moved.spread, moved.fetched))
        lanes += pairs.loads(gradient) + pairs.loads(spread) + pairs.loads(fetched)
        served = 0.0
        for part, nbytes in zip(how.parts, part_bytes(variable, how), strict=True):
            match part:
                case AllReduce(group=group):
                    groups[group] = groups.get(group, 0.0) + nbytes / total
                case Server(proxy=proxy):
                    served += nbytes
                    found["kept copies"] += proxy * nbytes / total
        if served:
            found["sent by servers"] += float(fetched.sum(axis=1).max()) / unit
            found["received by servers"] += float(gradient.sum(axis=0).max()) / unit
            found["fetched from servers"] += float(fetched.max()) / unit
        else:
            found["terms of all-reduces"] += float(gradient.sum(axis=0).max()) / unit
            found["spread of all-reduces"] += float(spread.sum(axis=0).max()) / unit
        found["variables with servers"] += (served > 0) / count
        found["variables reduced"] += (served == 0) / count
        found["variables cut"] += (len(how.parts) > 1) / count
        found["bytes with servers"] += served / total
        found["bytes cut"] += (len(how.parts) > 1) * variable.tensor.nbytes / total
        found["sparse bytes with servers"] += variable.sparse * served / total
    found["busiest lane"] = float(lanes.max(initial=0.0)) / unit
    found["all lanes"] = float(lanes.mean()) / unit if len(lanes) else 0.0
    found["groups"] = len(groups) / count
    found["largest group"] = max(groups.values(), default=0.0)
    found["updates last"] = float(strategy.updates_last)
    return np.array([found[name] for name in FEATURES])


def _no_weights() -> Reals:
    return np.zeros(len(FEATURES))


@dataclass(frozen=True, slots=True)
class Ranker:
    """Scores strategies by their features: the higher, the slower."""

    weights: Reals = field(default_factory=_no_weights)
    """The weight of each feature."""

    def scores(self, rows: Reals) -> Reals:
        """Return the score of each row of features."""
        found: Reals = rows @ self.weights
        return found

    def fitted(self, rows: Reals, seconds: Sequence[float]) -> Ranker:
        """Return a ranker that is fitted to trials, from these weights on."""
        first, second = np.triu_indices(len(seconds), 1)
        times = np.array(seconds, float)
        slower = np.where(times[first] > times[second], first, second)
        faster = np.where(times[first] > times[second], second, first)
        differ = times[first] != times[second]
        apart = (rows[slower] - rows[faster])[differ]
        if not len(apart):
            return self
        scale = np.maximum(np.abs(apart).max(axis=0), 1e-9)
        scaled, start = apart / scale, self.weights * scale
        weights = start
        for _ in range(STEPS):
            wrong = 1 / (1 + np.exp(np.clip(scaled @ weights, -50, 50)))
            weights = weights + RATE * ((scaled * wrong[:, None]).mean(axis=0) - DECAY * (weights - start))
        return Ranker(weights / scale)

    def accuracy(self, rows: Reals, seconds: Sequence[float]) -> float:
        """Return the part of all pairs of different times that the scores put in order; 1 without any."""
        return ranking_accuracy(self.scores(rows), np.array(seconds, float))


def ranking_accuracy(scores: Reals, seconds: Reals) -> float:
    """Return the part of all pairs of different times that scores put in order; 1 without any."""
    first, second = np.triu_indices(len(seconds), 1)
    differ = seconds[first] != seconds[second]
    right = (scores[first] - scores[second]) * (seconds[first] - seconds[second]) > 0
    return float(right[differ].mean()) if differ.any() else 1.0

"""Verdicts on the sharding rules of DTensor for one operator.

unsound     the numbers are wrong
missing     descriptions allow outputs without moving anything; DTensor moves inputs, or refuses
own         the numbers are right and nothing moved, but no description gives these outputs
agreed      both run without moving anything, with these outputs
moved       neither runs without moving anything; DTensor moves inputs, and is right
refused     neither runs; DTensor says so
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

from ...errors import TofuError
from ..translation.placements import Placement, Replicate, Unreduced
from .described import DescribedRules, every_input, graph_of
from .in_threads import DTensorCall, call

TOLERANCE = 1e-4
"""The largest difference, relative to the largest value, that rounding in float32 explains."""


@dataclass(frozen=True, slots=True)
class ShardingVerdict:
    """The verdict on one rule."""

    inputs: tuple[Placement, ...]
    """The placement of each input."""

    kind: str
    """`unsound`, `missing`, `own`, `agreed`, `moved` or `refused`."""

    found: DTensorCall
    """The outcome of DTensor."""

    described: tuple[tuple[Placement, ...], ...]
    """The placements of outputs that descriptions allow without moving anything."""

    def __str__(self) -> str:
        made = self.found
        theirs = f"refuses ({made.error})" if made.error else f"gives {_text(made.placements)}"
        if made.collectives:
            theirs += f" after {made.collectives} collectives"
        if self.kind == "unsound":
            wrong = f"wrong by {made.difference:.1g} of the largest value"
            theirs += f", which {'has another shape or NaN' if isinf(made.difference) else 'is ' + wrong}"
        ours = " or ".join(map(_text, self.described)) or "nothing without moving inputs"
        return f"{self.kind}: of {_text(self.inputs)} DTensor {theirs}; the description allows {ours}"


@dataclass(frozen=True, slots=True)
class ShardingSurvey:
    """The verdicts on all rules of an operator along one axis of workers."""

    verdicts: tuple[ShardingVerdict, ...]
    """A verdict for all placements of inputs."""

    def of(self, kind: str) -> tuple[ShardingVerdict, ...]:
        """Return the verdicts of a kind."""
        return tuple(each for each in self.verdicts if each.kind == kind)

    @property
    def counts(self) -> dict[str, int]:
        """Count the verdicts of each kind."""
        return dict(Counter(each.kind for each in self.verdicts))

    def __str__(self) -> str:
        listed = [str(each) for kind in ("unsound", "missing", "own") for each in self.of(kind)]
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return "\n  ".join((counts, *listed))


def survey(torch_op: Any, inputs: Sequence[Any], workers: int = 2) -> ShardingSurvey:
    """Judge DTensor's rule for every way in which the inputs of an operator may lie along one axis.

    Inputs lie whole, along each dimension that `workers` divides, and if they are floating-point numbers, in
    terms of a sum. Raises TofuError without PyTorch, and GraphError for operators without a description.
    """
    shapes = [tuple(each.shape) for each in inputs]
    terms = [each.is_floating_point() for each in inputs]
    rules = _Rules(torch_op, inputs, workers)
    return ShardingSurvey(tuple(map(rules.judge, every_input(shapes, terms, workers))))


def judged(
    torch_op: Any, placements: Sequence[Placement], inputs: Sequence[Any], workers: int
) -> ShardingVerdict:
    """Judge DTensor's rule for one way in which inputs lie."""
    return _Rules(torch_op, inputs, workers).judge(tuple(placements))


class _Rules:
    """The rules of one operator."""

    def __init__(self, torch_op: Any, inputs: Sequence[Any], workers: int) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 2:
            raise TofuError(f"the number of workers is {workers!r}; give 2 or more")
        self._op, self._inputs, self._workers = torch_op, inputs, workers
        graph, self._names = graph_of(torch_op, inputs)
        self._described = DescribedRules(graph, workers)

    def judge(self, placements: tuple[Placement, ...]) -> ShardingVerdict:
        """Call DTensor, and compare."""
        found = call(self._op, self._inputs, placements, self._workers)
        allowed = self._described.outputs({name: placements[i] for i, name in self._names.items()})
        kind = _kind(found, allowed)
        return ShardingVerdict(placements, kind, found, tuple(sorted(allowed, key=str)))


def _kind(found: DTensorCall, allowed: set[tuple[Placement, ...]]) -> str:
    if found.difference > TOLERANCE:
        return "unsound"
    if found.error is not None or found.collectives:
        if allowed:
            return "missing"
        return "refused" if found.error is not None else "moved"
    return "agreed" if found.placements in allowed else "own"


def _text(placements: Sequence[Placement | None]) -> str:
    return ", ".join(map(_short, placements))


def _short(placement: Placement | None) -> str:
    match placement:
        case None:
            return "a placement of its own"
        case Replicate():
            return "R"
        case Unreduced(reduction=reduction):
            return f"P({reduction})"
        case _:
            return f"S({placement.dim})"

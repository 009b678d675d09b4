"""Verdicts on the sharding rules of DTensor for one operator.

unsound     the numbers are wrong
missing     descriptions allow outputs without moving anything; DTensor moves inputs, or refuses
own         the numbers are right and nothing moved, but no description gives these outputs
agreed      both run without moving anything, with these outputs
moved       neither runs without moving anything; DTensor moves inputs, and is right
refused     neither runs; DTensor says so
unjudged    DTensor sends parts from rank to rank, which threads cannot do

With gradients, these are verdicts on the backward pass: on the gradients of inputs, for gradients of outputs
that lie as the outputs do. If the forward pass moves inputs already or is refused, then so is the whole,
whatever descriptions allow; if its numbers are wrong, gradients are judged nevertheless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

from ...errors import TofuError
from ...importers.torch.installed import installed
from ..translation.placements import Placement, Placements, Replicate, Unreduced
from .described import DescribedRules, described_call, every_input
from .in_threads import CANNOT_SEND, Caller, DTensorCall

TOLERANCE = 1e-4
"""The largest difference, relative to the largest value, that rounding in float32 explains."""

Workers = int | tuple[int, ...] | list[int]
"""The number of workers, or that along each axis of a mesh."""


@dataclass(frozen=True, slots=True)
class ShardingVerdict:
    """The verdict on one rule."""

    inputs: tuple[Any, ...]
    """How each input lies: a placement, or on a mesh a placement for each axis."""

    kind: str
    """`unsound`, `missing`, `own`, `agreed`, `moved`, `refused` or `unjudged`."""

    found: DTensorCall
    """The outcome of DTensor."""

    described: tuple[tuple[Any, ...], ...]
    """How descriptions allow outputs, or gradients, to lie without moving anything."""

    def __str__(self) -> str:
        made = self.found
        gives = "gives gradients" if made.heads else "gives"
        theirs = f"refuses ({made.error})" if made.error else f"{gives} {_text(made.placements)}"
        if made.collectives or made.forward_collectives:
            theirs += f" after {made.collectives + made.forward_collectives} collectives"
        if self.kind == "unsound":
            wrong = f"wrong by {made.difference:.1g} of the largest value"
            theirs += f", which {'has another shape or NaN' if isinf(made.difference) else 'is ' + wrong}"
        ours = " or ".join(map(_text, self.described)) or "nothing without moving inputs"
        return f"{self.kind}: of {_text(self.inputs)} DTensor {theirs}; the description allows {ours}"


@dataclass(frozen=True, slots=True)
class ShardingSurvey:
    """The verdicts on all rules of an operator along one axis of workers, or on a mesh."""

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


def survey(
    torch_op: Any, inputs: Sequence[Any], workers: Workers = 2, gradients: bool = False
) -> ShardingSurvey:
    """Judge DTensor's rule for every way in which the inputs of an operator may lie on workers.

    Along each axis inputs lie whole, along each dimension that the axis divides, and if they are
    floating-point numbers, in terms of a sum. Raises TofuError without PyTorch, and GraphError for operators
    without a description.
    """
    rules = _Rules(torch_op, inputs, workers, gradients)
    shapes = [tuple(each.shape) for each in inputs]
    terms = [each.is_floating_point() for each in inputs]
    return ShardingSurvey(tuple(map(rules.judge, every_input(shapes, terms, rules.sizes))))


def judged(
    torch_op: Any,
    placements: Sequence[Placements],
    inputs: Sequence[Any],
    workers: Workers,
    gradients: bool = False,
) -> ShardingVerdict:
    """Judge DTensor's rule for one way in which inputs lie, with a placement for each axis."""
    return _Rules(torch_op, inputs, workers, gradients).judge(tuple(placements))


def mesh_sizes(workers: Workers) -> tuple[int, ...]:
    """Return the workers along each axis. Raises TofuError if these are not 2 or more."""
    sizes = workers if isinstance(workers, tuple | list) else (workers,)
    if not sizes or any(isinstance(size, bool) or not isinstance(size, int) or size < 2 for size in sizes):
        raise TofuError(
            f"the number of workers is {workers!r}; give 2 or more, or for a mesh such a number for each axis"
        )
    return tuple(sizes)


class _Rules:
    """The rules of one operator."""

    def __init__(self, torch_op: Any, inputs: Sequence[Any], workers: Workers, gradients: bool) -> None:
        self.sizes = mesh_sizes(workers)
        if not isinstance(inputs, tuple | list) or not all(map(installed().is_tensor, inputs)):
            kinds = [type(each).__name__ for each in inputs] if isinstance(inputs, tuple | list) else inputs
            raise TofuError(f"the inputs are {str(kinds)[:80]}; give a list of tensors of PyTorch")
        self._on_mesh = isinstance(workers, tuple | list)
        described = described_call(torch_op, inputs)
        self._caller = Caller(torch_op, inputs, self.sizes)
        self._gradients = gradients
        if gradients:
            described = described_call(torch_op, inputs, self._caller.backward.inputs)
        self._call = described
        self._described = DescribedRules(described.graph, self.sizes, described.wanted)

    def judge(self, placements: tuple[Placements, ...]) -> ShardingVerdict:
        """Call DTensor, and compare."""
        found = self._caller.gradients(placements) if self._gradients else self._caller.outputs(placements)
        lie = {name: placements[number] for number, name in self._call.inputs.items()}
        allowed: set[tuple[Placements, ...]] = set()
        if not self._gradients or (found.heads and not found.forward_collectives):
            allowed = self._described.outputs(lie | self._heads(found))
        kind, listed = _kind(found, allowed), tuple(sorted(allowed, key=str))
        if self._on_mesh:
            return ShardingVerdict(placements, kind, found, listed)
        found = replace(found, placements=_alone(found.placements), heads=_alone(found.heads))
        return ShardingVerdict(_alone(placements), kind, found, tuple(map(_alone, listed)))

    def _heads(self, found: DTensorCall) -> dict[str, Placements]:
        """Return how the gradients of outputs lay, by name; whole for outputs that PyTorch has none of."""
        whole: Placements = (Replicate(),) * len(self.sizes)
        lay = dict(zip(self._caller.backward.outputs, found.heads, strict=False))
        return {name: lay.get(number, whole) for number, name in self._call.heads.items()}


def _alone(placements: Sequence[Placements | None]) -> tuple[Placement | None, ...]:
    """Return placements along the only axis."""
    return tuple(None if each is None else each[0] for each in placements)


def _kind(found: DTensorCall, allowed: set[tuple[Placements, ...]]) -> str:
    if found.difference > TOLERANCE:
        return "unsound"
    if CANNOT_SEND in (found.error or ""):
        return "unjudged"
    if found.error is not None or found.collectives or found.forward_collectives:
        if allowed:
            return "missing"
        return "refused" if found.error is not None else "moved"
    return "agreed" if found.placements in allowed else "own"


def _text(placements: Sequence[Any]) -> str:
    return ", ".join(map(_short, placements))


def _short(placement: Placement | Placements | None) -> str:
    match placement:
        case None:
            return "a placement of its own"
        case tuple():
            return f"[{_text(placement)}]"
        case Replicate():
            return "R"
        case Unreduced(reduction=reduction):
            return f"P({reduction})"
        case _:
            return f"S({placement.dim})"

"""Rewrites of gradients on their way: how they are encoded, and how long they are delayed."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import GraphError
from ...support.checked_argument import is_count, is_number, require, require_count
from ..element_types import MIXED


@dataclass(frozen=True, slots=True)
class Cast:
    """Store the local gradients and their sum in a type of 16 bits."""

    dtype: str
    """The type: `float16` or `bfloat16`."""

    feedback: bool = False
    """Whether each worker keeps what rounding its gradient lost, and adds it to its next gradient."""

    def __post_init__(self) -> None:
        """Raise GraphError for another type."""
        if self.dtype not in MIXED:
            raise GraphError(f"gradients cannot be encoded in {self.dtype!r}; use {' or '.join(MIXED)}")


@dataclass(frozen=True, slots=True)
class PowerSgd:
    """Exchange two thin matrices whose product is close to the gradient, and keep the error for the next."""

    rank: int
    """The number of columns of both."""

    def __post_init__(self) -> None:
        """Raise GraphError for a rank below 1."""
        require_count(self.rank, "rank", GraphError, 1)


@dataclass(frozen=True, slots=True)
class TopK:
    """Exchange the largest elements of each worker's gradient, and keep the others for the next."""

    elements: int | float
    """The number of elements, or a share of all elements from 0 to 1, which is rounded up."""

    def __post_init__(self) -> None:
        """Raise GraphError for a number below 1, and for a share that is not between 0 and 1."""
        share = is_number(self.elements) and 0 < self.elements < 1
        expected = "an integer from 1 on, or a share between 0 and 1"
        require(share or is_count(self.elements, 1), self.elements, "elements", expected, GraphError)


Encoder = Cast | PowerSgd | TopK


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The rewrite of the gradient of one parameter."""

    encoder: Encoder | None = None
    """The encoder of what workers exchange; None for the gradients themselves."""

    delay: int = 0
    """The number of iterations after which a gradient updates the parameter."""

    parts: PartedRewrite | None = None
    """The rewrites of parts, in place of an encoder and a delay; None if all elements have the same."""

    by_arrival: bool = False
    """Whether the gradient of each replica is applied by itself, in the order in which they arrive."""

    masked: bool = False
    """Whether lookups in the parameter are sums of masked rows; its gradient is not rewritten then."""

    def __post_init__(self) -> None:
        """Raise GraphError for a negative delay, and for gradients by arrival that are encoded or delayed.

        Also raise it for masked lookups together with a rewrite of the gradient.
        """
        if self.masked and (self.of_samples or self.delay):
            raise GraphError("lookups are masked, or a gradient is rewritten, but not both; leave out one")
        if self.delay < 0:
            raise GraphError(f"a gradient cannot be delayed by {self.delay} iterations; use 0 or more")
        if self.by_arrival and (self.delay or self.encoder is not None or self.parts is not None):
            raise GraphError(
                "gradients that are applied in the order in which they arrive are neither encoded nor "
                "delayed; leave out the encoder and the delay, or wait for all gradients"
            )

    @property
    def of_samples(self) -> bool:
        """Whether it takes a gradient from each worker, of that worker's samples."""
        return self.encoder is not None or self.parts is not None or self.by_arrival

    @property
    def sums_where_held(self) -> bool:
        """Whether everyone who holds the gradient sums it, from what all workers send."""
        return isinstance(self.encoder, TopK)


@dataclass(frozen=True, slots=True)
class PartedRewrite:
    """Rewrites of the parts of a gradient along one dimension."""

    axis: int
    """The dimension."""

    bounds: tuple[int, ...]
    """The places between neighbouring parts, in ascending order."""

    rewrites: tuple[Rewrite, ...]
    """The rewrite of each part, which has no parts itself."""


NO_REWRITE = Rewrite()
"""Nothing happens to the gradient."""

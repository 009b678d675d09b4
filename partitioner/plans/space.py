"""The space of a search: the plans among which it chooses, and for which its lower bound holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ...errors import PlanError

Feed = Literal["batch", "anywhere"]
FEEDS: tuple[str, ...] = get_args(Feed)


@dataclass(frozen=True, slots=True)
class Space:
    """The plans that a search chooses from. Plan files without a space were made in the smallest one."""

    replicate: bool = False
    """Whether a step may replicate a tensor that it could split."""

    feed: Feed = "anywhere"
    """Where data and labels arrive: split by batch, or `anywhere`, wherever a plan likes, without a byte."""

    keep: bool = False
    """Whether sums may stay in terms, partial results may be reduced in parts before they are spread, inputs
    and what many operations read may be copied, and operations may be repeated at a price.
    """

    memory_bytes: int | None = None
    """The most that a worker's arena may take; None if memory is free."""

    activations: bool = False
    """Whether what many operations read may be copied even if it does not last, with `keep`."""

    def __str__(self) -> str:
        tensors = "may replicate any tensor" if self.replicate else "split all that can be split"
        fed = "by batch" if self.feed == "batch" else "anywhere"
        kept = " and keep what is made" if self.keep else ""
        kept += ", with copies of activations" if self.keep and self.activations else ""
        limit = "" if self.memory_bytes is None else f", within {self.memory_bytes:,} bytes a worker"
        return f"{tensors}{kept}, with inputs fed {fed}{limit}"


SPLIT = Space()
"""The smallest space, which the paper searches."""


def parse_feed(value: str) -> Feed:
    """Return a way to feed inputs. Raises PlanError for an unknown one."""
    match value:
        case "batch" | "anywhere":
            return value
        case _:
            raise PlanError(f"there is no feed {value!r}; there are: {', '.join(FEEDS)}")

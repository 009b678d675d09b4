"""A placement of a user's graph: where and in which order nodes run, how long it takes and what it holds."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from os import PathLike

from ....errors import PlanError
from ....support.checked_argument import path_of
from ....support.notebook_display import NotebookDisplay
from ....support.saved_files import save_whole


@dataclass(frozen=True, repr=False)
class Placement(NotebookDisplay):
    """Whole nodes of a graph on workers."""

    placement: Mapping[Hashable, int] = field(hash=False)
    """The worker of each node, by the node's name in the graph."""

    order: tuple[Hashable, ...]
    """All nodes in an order in which they run; every worker keeps it."""

    seconds: float
    """The simulated time of one iteration."""

    lower_bound_seconds: float
    """A time that no placement on these devices beats: that of the longest path on the fastest devices, or
    of an even share of all work.
    """

    peak_bytes_per_worker: tuple[int, ...]
    """The size of each worker's arena, in which all that it holds has its place."""

    def __repr__(self) -> str:
        return (
            f"<placement of {len(self.order)} nodes on {len(self.peak_bytes_per_worker)} workers: "
            f"{self.seconds * 1e3:.3f} ms, {max(self.peak_bytes_per_worker):,} bytes in the largest arena>"
        )

    @property
    def document(self) -> dict[str, object]:
        """Return the placement as the values of a JSON object; nodes are named by text."""
        return {
            "placement": {str(node): worker for node, worker in self.placement.items()},
            "order": [str(node) for node in self.order],
            "seconds": self.seconds,
            "lower_bound_seconds": self.lower_bound_seconds,
            "peak_bytes_per_worker": list(self.peak_bytes_per_worker),
        }

    @property
    def text(self) -> str:
        """Return the placement as JSON: what `tofu place --json` prints."""
        return json.dumps(self.document) + "\n"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the placement as JSON, see `text`. Raises PlanError if it cannot be written."""
        save_whole(path_of(path, "path", PlanError), self.text.encode(), "the placement", PlanError)

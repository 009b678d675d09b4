"""Links, and the paths that messages take over them.

A link carries messages each way, and each way is a lane of its own. A message occupies all lanes of its path
for as long as it takes: the latency of the path, and its bytes over the narrowest link.

Links between named places, devices and switches, may form any graph. A message takes the path with the fewest
links. Of several it takes the one whose narrowest link is the widest, then the one that the file lists first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ..errors import MachineError


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """A connection between two places."""

    ends: tuple[str, str]
    """The names of two devices or switches."""

    bytes_per_second: float
    """The bandwidth, each way."""

    latency_seconds: float
    """The time from one end to the other for a message without bytes."""

    rails: int = 1
    """The equal parts of the link. A message takes one, which the numbers of its two devices decide."""


@dataclass(frozen=True, slots=True)
class MessagePath:
    """The way of messages from one device to another."""

    lanes: tuple[str, ...]
    """The direction of every link on the way, by name."""

    bytes_per_second: float
    """The bandwidth of the narrowest link."""

    latency_seconds: float
    """The time for a message without bytes."""

    def seconds(self, nbytes: int) -> float:
        """Return the time of one message."""
        return self.latency_seconds + nbytes / self.bytes_per_second


class Routes:
    """The paths over a graph of links. Those from one device are found together, once."""

    def __init__(self, links: Sequence[DeviceLink]) -> None:
        self._neighbours: dict[str, list[tuple[str, DeviceLink]]] = {}
        self.rails: dict[str, int] = {}
        """The number of rails of each direction of a link that has several."""
        for link in links:
            for start, end in (link.ends, link.ends[::-1]):
                if link.rails > 1:
                    self.rails[f"{start} to {end}"] = link.rails
                self._neighbours.setdefault(start, []).append((end, link))
        self._from: dict[str, dict[str, MessagePath]] = {}

    def path(self, source: str, reader: str) -> MessagePath:
        """Return the path between two devices. Raises MachineError if no links join them."""
        if source not in self._from:
            self._from[source] = self._search(source)
        found = self._from[source].get(reader)
        if found is None:
            raise MachineError(
                f"no links join {source!r} and {reader!r}; add one, or a switch that joins both"
            )
        return found

    def _search(self, source: str) -> dict[str, MessagePath]:
        found = {source: MessagePath((), inf, 0.0)}
        layer = [source]
        while layer:
            reached: dict[str, MessagePath] = {}
            for place in layer:
                so_far = found[place]
                for end, link in self._neighbours.get(place, ()):
                    width = min(so_far.bytes_per_second, link.bytes_per_second / link.rails)
                    if end not in found and (end not in reached or width > reached[end].bytes_per_second):
                        lanes = (*so_far.lanes, f"{place} to {end}")
                        reached[end] = MessagePath(
                            lanes, width, so_far.latency_seconds + link.latency_seconds
                        )
            found |= reached
            layer = list(reached)
        return found

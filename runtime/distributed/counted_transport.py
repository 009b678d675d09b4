"""Count the bytes that a transport carries in an iteration."""

from __future__ import annotations

from .own_workers import Crossed
from .transport import Transport


class CountedTransport:
    """Counts what a transport carries between `begin` and `crossed`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.begin()

    def begin(self) -> None:
        """Begin to count."""
        self._sent = dict(self._transport.sent_bytes)
        self._received = self._transport.received_bytes

    def crossed(self) -> Crossed:
        """Return the bytes that were sent and received since then."""
        sent = {other: n - self._sent.get(other, 0) for other, n in self._transport.sent_bytes.items()}
        return Crossed(sent, self._transport.received_bytes - self._received)

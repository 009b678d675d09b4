"""Messages over TCP: one connection between every two processes.

A message is its number and size, then its bytes. The receiver knows both, so anything else is an error.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Mapping

from .handshake import fill
from .transport import LinkLost

HEADER = struct.Struct("!II Q")
"""The number of messages that this connection carried before, the number of this one, and its size."""


class SocketTransport:
    """Moves messages over connections to all other processes."""

    def __init__(self, connections: Mapping[int, socket.socket]) -> None:
        self._connections = dict(connections)
        self._sent = dict.fromkeys(connections, 0)
        self._received = dict.fromkeys(connections, 0)
        self._headers = {process: memoryview(bytearray(HEADER.size)) for process in connections}
        self.sent_bytes = dict.fromkeys(connections, 0)
        self.received_bytes = 0
        for connection in self._connections.values():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, process: int, number: int, content: memoryview) -> None:
        """Send a message; when this returns, the memory may be written again. Raises LinkLost."""
        connection, size = self._connections[process], len(content)
        header = HEADER.pack(self._sent[process] & 0xFFFFFFFF, number, size)
        try:
            done = connection.sendmsg([header, content]) - len(header)
            if done < 0:
                connection.sendall(header[done:])
                done = 0
            while done < size:
                done += connection.send(content[done:])
        except OSError as error:
            raise LinkLost(process, f"its connection broke ({error.strerror or error})") from error
        self._sent[process] += 1
        self.sent_bytes[process] += done

    def await_message(self, process: int) -> None:
        """Wait until the next message of a process begins to arrive, or its connection ends."""
        select.select([self._connections[process]], [], [])

    def receive(self, process: int, number: int, into: memoryview) -> None:
        """Receive a message. Raises LinkLost, also if another message arrives."""
        connection, header = self._connections[process], self._headers[process]
        expected = (self._received[process] & 0xFFFFFFFF, number, len(into))
        try:
            fill(connection, header)
            if (found := HEADER.unpack(header)) != expected:
                raise LinkLost(
                    process,
                    f"it sent message {found[1]} of {found[2]} bytes as number {found[0]} of its connection, "
                    f"but message {number} of {len(into)} bytes was expected as number {expected[0]}",
                )
            fill(connection, into)
        except OSError as error:
            raise LinkLost(process, f"its connection broke ({error.strerror or error})") from error
        self._received[process] += 1
        self.received_bytes += len(into)

    def abort(self) -> None:
        """Let everything that waits fail at once."""
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            connection.close()

"""Prove that both ends of a connection know the run's token, before anything else is read.

The end that listens sends a challenge. The other end answers with its greeting, and a challenge of its own.
Both answers are HMACs with the token, which itself is never sent. Everything that is read has a fixed limit,
so a stranger can neither join nor fill memory.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from typing import Any

from ...errors import ExecutionError

MAGIC = b"tofu-1 "
CHALLENGE_BYTES = 32
DIGEST_BYTES = 32
MOST_GREETING_BYTES = 4096
PATIENCE_SECONDS = 10.0
"""The time within which the other end has to answer."""


class Refused(ExecutionError):
    """The other end is not a process of this run."""


def greet(connection: socket.socket, token: bytes, greeting: dict[str, Any]) -> None:
    """Introduce this end to the end that listens. Raises Refused, or OSError if the connection breaks."""
    connection.settimeout(PATIENCE_SECONDS)
    opening = read_exactly(connection, len(MAGIC) + CHALLENGE_BYTES)
    if not opening.startswith(MAGIC):
        raise Refused("the other end does not speak Tofu's protocol")
    text = json.dumps(greeting).encode()
    challenge = secrets.token_bytes(CHALLENGE_BYTES)
    proof = _proof(token, b"greet", opening, challenge, text)
    connection.sendall(len(text).to_bytes(4, "big") + challenge + proof + text)
    answer = read_exactly(connection, DIGEST_BYTES)
    if not hmac.compare_digest(answer, _proof(token, b"answer", challenge, opening)):
        raise Refused("the other end does not know this run's token")
    connection.settimeout(None)


def welcome(connection: socket.socket, token: bytes) -> dict[str, Any]:
    """Check the end that connected, and return its greeting.

    Raises Refused for a stranger, or OSError if the connection breaks.
    """
    connection.settimeout(PATIENCE_SECONDS)
    opening = MAGIC + secrets.token_bytes(CHALLENGE_BYTES)
    connection.sendall(opening)
    length = int.from_bytes(read_exactly(connection, 4), "big")
    if length > MOST_GREETING_BYTES:
        raise Refused("the other end does not speak Tofu's protocol")
    challenge = read_exactly(connection, CHALLENGE_BYTES)
    proof = read_exactly(connection, DIGEST_BYTES)
    text = read_exactly(connection, length)
    if not hmac.compare_digest(proof, _proof(token, b"greet", opening, challenge, text)):
        connection.sendall(bytes(DIGEST_BYTES))  # so that a process of another run need not try again
        raise Refused("the other end does not know this run's token")
    connection.sendall(_proof(token, b"answer", challenge, opening))
    connection.settimeout(None)
    greeting: dict[str, Any] = json.loads(text)
    return greeting


def read_exactly(connection: socket.socket, count: int) -> bytes:
    """Read a number of bytes. Raises ConnectionError if the connection ends before."""
    content = bytearray(count)
    fill(connection, memoryview(content))
    return bytes(content)


def fill(connection: socket.socket, into: memoryview) -> None:
    """Fill memory from a connection. Raises ConnectionError if the connection ends before."""
    done = 0
    while done < len(into):
        count = connection.recv_into(into[done:])
        if not count:
            raise ConnectionError("the connection was closed")
        done += count


def _proof(token: bytes, *parts: bytes) -> bytes:
    # the lengths of all parts but the last one are fixed, so no two lists of parts have the same bytes
    return hmac.digest(token, b"".join(parts), "sha256")

"""Messages over sockets: whole, in order, both ways at once, and errors that name the process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tofu.runtime.distributed.sockets import HEADER, SocketTransport
from tofu.runtime.distributed.transport import LinkLost

Pair = tuple[SocketTransport, SocketTransport, socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    listener.close()
    one.settimeout(10)
    other.settimeout(10)
    yield SocketTransport({1: one}), SocketTransport({0: other}), one, other
    one.close()
    other.close()


@pytest.mark.parametrize("nbytes", [0, 1, 1 << 10, 1 << 24])
def test_both_ways_at_once(pair: Pair, nbytes: int) -> None:
    """More than sockets hold, so neither end can send before the other one receives."""
    random = np.random.default_rng(nbytes)
    content = [random.integers(0, 256, nbytes, np.uint8) for _ in range(2)]
    found = [np.empty(nbytes, np.uint8) for _ in range(2)]
    sending = [
        threading.Thread(target=pair[me].send, args=(1 - me, number, memoryview(content[me])))  # type: ignore[union-attr]
        for me, number in ((0, 5), (1, 6))
    ]
    for thread in sending:
        thread.start()
    pair[1].receive(0, 5, memoryview(found[0]))
    pair[0].receive(1, 6, memoryview(found[1]))
    for thread in sending:
        thread.join(10)
    for sent, got in zip(content, found, strict=True):
        np.testing.assert_array_equal(sent, got)
    assert sum(pair[0].sent_bytes.values()) == pair[1].received_bytes == nbytes


def test_another_message_than_expected_is_an_error(pair: Pair) -> None:
    pair[0].send(1, 7, memoryview(b"four"))
    with pytest.raises(LinkLost, match=r"sent message 7 of 4 bytes .* but message 8 of 4 bytes was expected"):
        pair[1].receive(0, 8, memoryview(bytearray(4)))


@pytest.mark.parametrize("sent", [b"", b"half", HEADER.pack(0, 3, 100) + b"half"])
def test_half_a_message_is_an_error(pair: Pair, sent: bytes) -> None:
    pair[2].sendall(sent)
    pair[2].close()
    with pytest.raises(LinkLost, match="process 0: its connection broke"):
        pair[1].receive(0, 3, memoryview(bytearray(100)))


def test_abort_ends_a_wait(pair: Pair) -> None:
    timer = threading.Timer(0.1, pair[1].abort)
    timer.start()
    with pytest.raises(LinkLost):
        pair[1].receive(0, 3, memoryview(bytearray(100)))
    timer.join()

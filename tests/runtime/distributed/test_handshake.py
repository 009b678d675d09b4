"""Strangers are turned away: no token, half a message, garbage, silence; and they delay nobody."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.runtime.distributed import join as joining
from tofu.runtime.distributed.handshake import (
    CHALLENGE_BYTES,
    DIGEST_BYTES,
    MAGIC,
    Refused,
    greet,
    welcome,
)
from tofu.runtime.distributed.join import join
from tofu.runtime.distributed.rendezvous import Meeting, listening, meeting

TOKEN = b"secret"


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def welcomed(connection: socket.socket, token: bytes) -> list[Any]:
    """Welcome in a thread; the list gets the greeting or the error."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(welcome(connection, token))
        except (Refused, OSError, ValueError) as error:
            found.append(error)
            connection.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=run)
    thread.start()
    found.append(thread)
    return found


def joining_run(number: int, listener: socket.socket, port: int, found: list[Any]) -> threading.Thread:
    """Let a process of a run of two join in a thread, the first one at the listener; append what it finds."""

    def run() -> None:
        own = socket.socket(fileno=listener.detach()) if not number else None
        place = Meeting(number, 2, 2, number, 0, own, lambda: ("127.0.0.1", port, TOKEN), True)
        found.append(join(place, 1, timeout_seconds=10, join_seconds=30))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def assert_both_met(threads: list[threading.Thread], found: list[Any], seconds: float) -> None:
    """Wait for both processes, see that they met, and close what connects them."""
    for thread in threads:
        thread.join(seconds)
    assert sorted(each.number for each in found) == [0, 1]
    for each in found:
        each.control.close()
        for connection in each.connections.values():
            connection.close()


def test_who_knows_the_token_is_welcome() -> None:
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        greet(other, TOKEN, {"process": 3})
        found[0].join(5)
        assert found[1] == {"process": 3}


def test_another_token_is_refused_at_both_ends() -> None:
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        with pytest.raises(Refused, match="does not know this run's token"):
            greet(other, b"guess", {"process": 3})
        found[0].join(5)
        assert isinstance(found[1], Refused)


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, b"\x00\x00\x00\x02" + bytes(66)]
)
def test_garbage_is_refused(said: bytes) -> None:
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        other.sendall(said)
        other.shutdown(socket.SHUT_WR)
        found[0].join(5)
        assert isinstance(found[1], Refused | OSError)


def test_a_replayed_greeting_is_refused() -> None:
    """Every byte that a process of the run sent, sent again to another challenge."""
    with pair() as (one, other), pair() as (here, there):
        found = welcomed(one, TOKEN)
        relayed = threading.Thread(target=greet, args=(here, TOKEN, {"process": 3}))
        relayed.start()
        there.sendall(other.recv(len(MAGIC) + CHALLENGE_BYTES, socket.MSG_WAITALL))
        said = there.recv(1 << 16)
        while len(said) < 4 + CHALLENGE_BYTES + DIGEST_BYTES + int.from_bytes(said[:4], "big"):
            said += there.recv(1 << 16)
        other.sendall(said)
        found[0].join(5)
        assert found[1] == {"process": 3}
        there.sendall(other.recv(DIGEST_BYTES, socket.MSG_WAITALL))
        relayed.join(5)
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        other.sendall(said)
        found[0].join(5)
        assert isinstance(found[1], Refused)


def test_a_replayed_answer_is_refused() -> None:
    """A listener that repeats what one of the run has said does not pass for it."""
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        opening = other.recv(len(MAGIC) + CHALLENGE_BYTES, socket.MSG_PEEK | socket.MSG_WAITALL)
        greet(other, TOKEN, {"process": 3})
        found[0].join(5)
    with pair() as (one, other):
        one.sendall(opening + bytes(DIGEST_BYTES))
        with pytest.raises(Refused, match="does not know this run's token"):
            greet(other, TOKEN, {"process": 3})


@pytest.mark.parametrize("length", [1, 3, 4, 40, 67, 68, 70])
def test_half_a_greeting_is_refused(length: int) -> None:
    whole = (20).to_bytes(4, "big") + bytes(CHALLENGE_BYTES + DIGEST_BYTES) + b"x" * 20
    with pair() as (one, other):
        found = welcomed(one, TOKEN)
        other.sendall(whole[:length])
        other.shutdown(socket.SHUT_WR)
        found[0].join(5)
        assert isinstance(found[1], ConnectionError)


def test_two_runs_on_one_port_do_not_mix() -> None:
    """A process of another run, with another token, is refused by name; this run meets as if alone."""
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        found: list[Any] = []
        first = joining_run(0, listener, port, found)
        other = Meeting(1, 2, 2, 1, 0, None, lambda: ("127.0.0.1", port, b"of another run"), True)
        with pytest.raises(ExecutionError, match=rf"process 1 was refused at 127.0.0.1:{port}: .* token"):
            join(other, 1, timeout_seconds=10, join_seconds=30)
        assert not found
        second = joining_run(1, listener, port, found)
        assert_both_met([first, second], found, 20)


def test_a_listener_of_another_kind_is_refused() -> None:
    with pair() as (one, other):
        one.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n" + bytes(len(MAGIC) + 32))
        with pytest.raises(Refused, match="does not speak"):
            greet(other, TOKEN, {})


def test_strangers_delay_nobody() -> None:
    """One says nothing and one says garbage while two processes meet."""
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        silent = socket.create_connection(("127.0.0.1", port))
        loud = socket.create_connection(("127.0.0.1", port))
        loud.sendall(b"x" * 100)
        found: list[Any] = []
        threads = [joining_run(number, listener, port, found) for number in range(2)]
        assert_both_met(threads, found, 8)
        silent.close()
        loud.close()


class Silent:
    """A process of a run of three that says who it is, and then nothing."""

    def __init__(self, port: int, addressed: bool) -> None:
        self.listener = listening("127.0.0.1", 0)
        self.control = socket.create_connection(("127.0.0.1", port))
        own = {"process": 1, "count": 3, "host": "here", "pid": 7}
        greet(self.control, TOKEN, own)
        if addressed:
            address = {"port": self.listener.getsockname()[1], "address": "127.0.0.1", "first": "127.0.0.1"}
            said = json.dumps({**own, "workers": [1, 2], **address}).encode()
            self.control.sendall(len(said).to_bytes(4, "big") + said)

    def close(self) -> None:
        self.control.close()
        self.listener.close()


@pytest.mark.parametrize("addressed", [True, False])
def test_one_that_stops_while_they_meet_is_named_within_the_timeout(addressed: bool) -> None:
    """It has an address, to which another process connects, or it has not stated one yet."""
    errors: dict[int, str] = {}

    def run(number: int) -> None:
        own = listener if not number else None
        place = Meeting(number, 3, 3, number, 0, own, lambda: ("127.0.0.1", port, TOKEN), True)
        try:
            join(place, 1, timeout_seconds=1, join_seconds=60 if addressed else 2)
        except ExecutionError as error:
            errors[number] = str(error)

    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        threads = [threading.Thread(target=run, args=(number,)) for number in (0, 2)]
        for thread in threads:
            thread.start()
        silent = Silent(port, addressed)
        for thread in threads:
            thread.join(joining.CONNECT_SECONDS - 2)
            assert not thread.is_alive()
        silent.close()
    if addressed:
        assert set(errors) == {0, 2}
        for said in errors.values():
            assert "process 1 (worker 1 on here, pid 7) was lost: it has sent nothing for" in said
    else:
        assert errors[0].startswith("process 1 was lost while the run was joined: ")
        assert errors[2].startswith("process 0 was lost, or gave up, while the run was joined: ")


def test_missing_processes_are_named() -> None:
    listener = listening("127.0.0.1", 0)
    place = Meeting(0, 3, 1, 0, 0, listener, lambda: ("127.0.0.1", 0, TOKEN), True)
    with pytest.raises(ExecutionError, match="of 3 processes these did not come: 1, 2"):
        join(place, 1, timeout_seconds=5, join_seconds=0.2)


def test_a_first_process_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setattr(joining, "CONNECT_SECONDS", 0.2)
    place = Meeting(1, 2, 1, 0, 0, None, lambda: ("127.0.0.1", port, TOKEN), True)
    with pytest.raises(ExecutionError, match=f"found no first process at 127.0.0.1:{port}"):
        join(place, 1, timeout_seconds=5, join_seconds=0.2)


VARIABLES = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29400",
    "TOFU_TOKEN": "secret",
}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RANK", "2", "RANK is 2, but WORLD_SIZE is 2"),
        ("RANK", "-1", "RANK is '-1'"),
        ("RANK", "one", "RANK is 'one'"),
        ("WORLD_SIZE", "0", "WORLD_SIZE is '0'"),
        ("WORLD_SIZE", "9" * 5000, "WORLD_SIZE is '999"),
        ("MASTER_PORT", "", "MASTER_PORT is not set"),
        ("MASTER_PORT", "65536", "MASTER_PORT is '65536'; give an integer from 0 to 65535"),
        ("TOFU_TOKEN", "", "TOFU_TOKEN is not set"),
    ],
)
def test_variables_are_checked(name: str, value: str, said: str) -> None:
    with pytest.raises(ExecutionError, match=said):
        meeting({**VARIABLES, name: value})
    assert meeting(VARIABLES).number == 1


def test_a_port_that_is_taken_is_an_error() -> None:
    with listening("127.0.0.1", 0) as listener:
        taken = str(listener.getsockname()[1])
        with pytest.raises(ExecutionError, match=f"cannot listen at port {taken}"):
            meeting({**VARIABLES, "RANK": "0", "MASTER_PORT": taken})


def test_other_reasons_are_not_the_port() -> None:
    with pytest.raises(
        ExecutionError, match=r"cannot listen at port 0 of 192\.0\.2\.1: .*; set MASTER_ADDR and"
    ):
        listening("192.0.2.1", 0)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(
    not has_ipv6(), reason="no socket can listen at ::1 here: IPv6 is off, as in many containers"
)
@pytest.mark.parametrize(("host", "own"), [("::1", "::1"), ("fd00::1", "::")])
def test_the_first_process_listens_where_others_look(host: str, own: str) -> None:
    first = meeting({**VARIABLES, "RANK": "0", "MASTER_ADDR": host, "MASTER_PORT": "0"})
    assert first.listener is not None
    listens, port, *_ = first.listener.getsockname()
    found: list[Any] = []

    def run(place: Meeting) -> None:
        found.append(join(place, 1, timeout_seconds=10, join_seconds=30))

    second = Meeting(1, 2, 2, 1, 0, None, lambda: ("::1", port, TOKEN), True)
    threads = [threading.Thread(target=run, args=(each,)) for each in (first, second)]
    for thread in threads:
        thread.start()
    assert listens == own
    assert_both_met(threads, found, 20)

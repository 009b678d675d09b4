"""Join a run: find the first process, and connect to all others."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import ExecutionError
from ..started_threads import start_all
from .control import Control
from .handshake import Refused, greet, read_exactly, welcome
from .rendezvous import BACKLOG, Meeting, family

RETRY_SECONDS = 0.05
CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Membership:
    """A process that has joined a run."""

    number: int
    """The number of this process."""

    local_count: int
    """The number of processes on this machine; 1 if it is not known."""

    local_number: int
    """The number of this process among those on this machine."""

    attempt: int
    """How often the run was started again."""

    names: tuple[str, ...]
    """All processes in words."""

    hosts: tuple[str, ...]
    """The machine of each process."""

    control: Control
    """The control connections."""

    connections: dict[int, socket.socket]
    """A connection for messages to every other process."""

    addresses: tuple[str, ...]
    """The address of each process, as this one reaches it."""


def join(meeting: Meeting, workers_each: int, timeout_seconds: float, join_seconds: float) -> Membership:
    """Connect to all processes of a run.

    Raises ExecutionError naming the processes that did not come within `join_seconds`, and if this one is
    refused.
    """
    deadline = time.monotonic() + join_seconds
    own = {
        "process": meeting.number,
        "count": meeting.count,
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    if meeting.number:
        first, token = _connect(meeting, own, deadline)
        controls = {0: first}
        host = first.getsockname()[0]
    else:
        assert meeting.listener is not None
        token = meeting.address()[2]
        others = range(1, meeting.count)
        controls = _accept(meeting.listener, token, others, meeting.count, deadline)
        host = meeting.listener.getsockname()[0]
        meeting.listener.close()
    with socket.create_server((host, 0), backlog=BACKLOG, family=family(host)) as listener:
        addresses = _addresses(meeting, own, controls, listener.getsockname()[1], workers_each, deadline)
        names = tuple(_name(number, each) for number, each in enumerate(addresses))
        control = Control(meeting.number, names, controls, timeout_seconds)
        reached = [each["address"] for each in addresses]
        reached[0] = controls[0].getpeername()[0] if meeting.number else addresses[-1]["first"]
        connections = {}
        for process in range(meeting.number):
            try:
                connections[process] = _opened(
                    reached[process], addresses[process]["port"], token, own, control
                )
            except (OSError, Refused) as error:
                reason = f"no connection to {names[process]}: {error}"
                raise ExecutionError(control.failed(reason, suspected=True)) from error
        later = range(meeting.number + 1, meeting.count)
        connections |= _accept(listener, token, later, meeting.count, deadline, lambda: control.verdict)
    own_place = (meeting.number, meeting.local_count, meeting.local_number, meeting.attempt)
    hosts = tuple(each["host"] for each in addresses)
    return Membership(*own_place, names, hosts, control, connections, tuple(reached))


def _connect(meeting: Meeting, own: dict[str, Any], deadline: float) -> tuple[socket.socket, bytes]:
    """Connect to the first process, which may start later than this one."""
    while True:
        host, port, token = meeting.address()
        problem: Exception
        try:
            connection = socket.create_connection((host, port), CONNECT_SECONDS)
            try:
                greet(connection, token, own)
                return connection, token
            except BaseException:
                connection.close()
                raise
        except Refused as refused:
            if meeting.lasting:
                raise ExecutionError(
                    f"process {meeting.number} was refused at {host}:{port}: {refused}"
                ) from refused
            problem = refused
        except OSError as error:
            problem = error
        if time.monotonic() > deadline:
            raise ExecutionError(
                f"process {meeting.number} found no first process at {host}:{port}: {problem}"
            ) from problem
        time.sleep(RETRY_SECONDS)


def _opened(host: str, port: int, token: bytes, own: dict[str, Any], control: Control) -> socket.socket:
    """Open a connection for messages to a process. Raises Refused, or OSError: also once any is lost."""
    connection = socket.create_connection((host, port), CONNECT_SECONDS)
    control.when_lost(partial(_shut, connection))
    try:
        greet(connection, token, own)
    except BaseException:
        connection.close()
        raise
    return connection


def _shut(connection: socket.socket) -> None:
    """End a connection, so that nobody waits for it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket,
    token: bytes,
    expected: Collection[int],
    count: int,
    deadline: float,
    verdict: Callable[[], str | None] = lambda: None,
) -> dict[int, socket.socket]:
    """Accept a connection from each expected process. Strangers are turned away, and delay nobody."""
    arrived: queue.Queue[tuple[dict[str, Any], socket.socket]] = queue.Queue()

    def examine(connection: socket.socket) -> None:
        try:
            arrived.put((welcome(connection, token), connection))
        except (OSError, Refused, ValueError):
            connection.close()

    found: dict[int, socket.socket] = {}
    with _accepting(listener, examine):
        while len(found) < len(expected):
            if (lost := verdict()) is not None:
                raise ExecutionError(lost)
            try:
                greeting, connection = arrived.get(timeout=0.1)
            except queue.Empty:
                if time.monotonic() < deadline:
                    continue
                missing = ", ".join(str(process) for process in expected if process not in found)
                raise ExecutionError(f"of {count} processes these did not come: {missing}") from None
            process: Any = greeting.get("process")
            if greeting.get("count") != count:
                raise ExecutionError(
                    f"process {process} says that there are {greeting.get('count')} processes, but this one "
                    f"knows of {count}; give all the same WORLD_SIZE"
                )
            if process not in expected or process in found:
                raise ExecutionError(f"process {process} came twice; give every process a RANK of its own")
            found[process] = connection
    return dict(sorted(found.items()))


@contextmanager
def _accepting(listener: socket.socket, examine: Any) -> Iterator[None]:
    """Examine every new connection in a thread of its own."""
    done = threading.Event()
    listener.settimeout(0.1)

    def accept() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                start_all([threading.Thread(target=examine, args=(connection,), daemon=True)])
            except ExecutionError:
                connection.close()  # too many strangers wait

    thread = threading.Thread(target=accept, name="tofu-accept", daemon=True)
    start_all([thread])
    try:
        yield
    finally:
        done.set()
        thread.join()


def _addresses(
    meeting: Meeting,
    own: dict[str, Any],
    controls: dict[int, socket.socket],
    port: int,
    workers_each: int,
    deadline: float,
) -> list[dict[str, Any]]:
    """Return what every process says of itself, with its address for messages."""
    first = meeting.number * workers_each
    said = {
        **own,
        "port": port,
        "workers": [first, first + workers_each],
        "address": "",
        "first": "127.0.0.1",
    }

    def send(connection: socket.socket, value: object) -> None:
        content = json.dumps(value).encode()
        connection.sendall(len(content).to_bytes(4, "big") + content)

    def receive(connection: socket.socket) -> Any:
        return json.loads(read_exactly(connection, int.from_bytes(read_exactly(connection, 4), "big")))

    for connection in controls.values():
        connection.settimeout(max(deadline - time.monotonic(), 1))
    asked = "process 0 was lost, or gave up,"
    try:
        if meeting.number:
            here, there = controls[0].getsockname()[0], controls[0].getpeername()[0]
            send(controls[0], {**said, "address": here, "first": there})
            found: list[dict[str, Any]] = receive(controls[0])
            return found
        gathered = [said]
        for process, connection in controls.items():
            asked = f"process {process} was lost"
            gathered.append(receive(connection))
        for connection in controls.values():
            # the control connections name the process if one is lost from here on
            with contextlib.suppress(OSError):
                send(connection, gathered)
        return gathered
    except OSError as error:
        raise ExecutionError(f"{asked} while the run was joined: {error}") from error
    finally:
        for connection in controls.values():
            connection.settimeout(None)


def _name(number: int, said: dict[str, Any]) -> str:
    lower, upper = said["workers"]
    workers = f"worker {lower}" if upper - lower == 1 else f"workers {lower} to {upper - 1}"
    return f"process {number} ({workers} on {said['host']}, pid {said['pid']})"

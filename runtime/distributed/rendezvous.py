"""How the processes of a run find each other: through environment variables, or torchrun's store.

`RANK` and `WORLD_SIZE` are the number of this process and of all, `MASTER_ADDR` and `MASTER_PORT` say where
the first process listens, and `TOFU_TOKEN` is a secret that all processes of a run share. Under torchrun the
first process listens at a free port and puts it into torchrun's store, with a new token. Every attempt of
torchrun has names of its own in the store, because the store keeps values of earlier attempts.
"""

from __future__ import annotations

import errno
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ...errors import ExecutionError

LISTENER = "TOFU_LISTENER"
"""The variable with the descriptor of a socket that listens for the first process, which it inherits."""

TOKEN = "TOFU_TOKEN"
RESTARTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
"""The variables with the number of times that torchrun or Slurm started the run again."""

BACKLOG = 512
STORE_SECONDS = 60
MOST_PORT = 65535
INSTALL = "install it with pip install 'tofu[distributed]'"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the processes of a run meet."""

    number: int
    """The number of this process."""

    count: int
    """The number of processes."""

    local_count: int
    """The number of processes on this machine; 1 if it is not known."""

    local_number: int
    """The number of this process among those on this machine, from 0."""

    attempt: int
    """How often the run was started again by what started it."""

    listener: socket.socket | None
    """The first process listens at it; None in all others."""

    address: Callable[[], tuple[str, int, bytes]]
    """Returns the host and the port of the first process, and the token."""

    lasting: bool
    """Whether the address is the same on every call."""


def meeting(environment: Mapping[str, str]) -> Meeting:
    """Return where the processes meet. Raises ExecutionError if a variable is missing or malformed."""
    number, count = _integer(environment, "RANK", 0), _integer(environment, "WORLD_SIZE", 1)
    if number >= count:
        raise ExecutionError(f"RANK is {number}, but WORLD_SIZE is {count}; ranks are numbered from 0")
    local_count = _integer(environment, "LOCAL_WORLD_SIZE", 1) if "LOCAL_WORLD_SIZE" in environment else 1
    local_number = number % local_count
    if "LOCAL_RANK" in environment:
        local_number = _integer(environment, "LOCAL_RANK", 0)
        if local_number >= local_count:
            raise ExecutionError(
                f"LOCAL_RANK is {local_number}, but LOCAL_WORLD_SIZE is {local_count}; set both for the "
                "processes on one machine"
            )
    host, port = _text(environment, "MASTER_ADDR"), _integer(environment, "MASTER_PORT", 0, MOST_PORT)
    attempt = max(_integer(environment, name, 0) if name in environment else 0 for name in RESTARTS)
    own = (number, count, local_count, local_number, attempt)
    if "TORCHELASTIC_RUN_ID" in environment:
        run = environment["TORCHELASTIC_RUN_ID"]
        store = _store(host, port, f"tofu/{run}/{attempt}")
        listener = _publish(store, host) if number == 0 else None
        return Meeting(*own, listener, lambda: _lookup(store, host), lasting=False)
    token = environment.get(TOKEN, "").encode()
    if not token:
        raise ExecutionError(
            f"{TOKEN} is not set; set it to the same secret in every process, so that strangers are refused"
        )
    inherited = environment.get(LISTENER)
    if number:
        listener = None
    elif inherited is not None:
        listener = socket.socket(fileno=int(inherited))
    else:
        listener = listening(_own_address(host), port)
    return Meeting(*own, listener, lambda: (host, port, token), lasting=True)


def process_count(environment: Mapping[str, str]) -> int:
    """Return the number of processes. Raises ExecutionError if it is missing or malformed."""
    return _integer(environment, "WORLD_SIZE", 1)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 means a free one. Raises ExecutionError if it cannot listen."""
    try:
        return socket.create_server((host, port), backlog=BACKLOG, family=family(host))
    except OSError as error:
        remedy = (
            "another run may use it, so set MASTER_PORT to another one"
            if error.errno == errno.EADDRINUSE
            else "set MASTER_ADDR and MASTER_PORT to what processes of this machine may listen at"
        )
        raise ExecutionError(
            f"the first process cannot listen at port {port} of {host or 'all addresses'}: "
            f"{error.strerror or error}; {remedy}"
        ) from error


def family(host: str) -> socket.AddressFamily:
    """Return the kind of an address; names of machines are taken to have an address of IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _own_address(host: str) -> str:
    """Return the address at which the first process listens if others know it as `host`."""
    if _is_loopback(host):
        return host
    return "::" if family(host) is socket.AF_INET6 else ""


def _publish(store: Any, host: str) -> socket.socket:
    """Listen at a free port, and put it into the store with a new token."""
    listener = listening(_own_address(host), 0)
    store.set("address", json.dumps([listener.getsockname()[1], secrets.token_hex(32)]))
    return listener


def _lookup(store: Any, host: str) -> tuple[str, int, bytes]:
    try:
        port, token = json.loads(store.get("address"))
    except RuntimeError as error:
        raise ExecutionError(f"the first process did not state its address: {error}") from error
    return host, port, token.encode()


def _store(host: str, port: int, prefix: str) -> Any:
    """Return torchrun's store, with names of this attempt."""
    try:
        from torch.distributed import PrefixStore, TCPStore
    except ImportError:
        raise ExecutionError(f"a run under torchrun needs torch; {INSTALL}") from None
    try:
        store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=STORE_SECONDS))
    except RuntimeError as error:
        raise ExecutionError(f"torchrun's store at {host}:{port} does not answer: {error}") from error
    return PrefixStore(prefix, store)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise ExecutionError(
            f"{name} is not set, so this process does not know the others; start it with torchrun, with "
            "`tofu train --processes`, or set RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and TOFU_TOKEN"
        )
    return value


def _integer(environment: Mapping[str, str], name: str, least: int, most: int | None = None) -> int:
    value = _text(environment, name)
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    if number < least or (most is not None and number > most):
        limit = "on" if most is None else f"to {most}"
        raise ExecutionError(f"{name} is {value[:40]!r}; give an integer from {least} {limit}")
    return number

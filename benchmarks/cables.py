"""Cables between network namespaces on this machine: cut, narrow, long, or losing packets.

A cable is a pair of `veth` interfaces. The kernel's token bucket (`tc tbf`) narrows it. The kernel may lack
`netem`, which delays and loses packets, so a `Shaper` is a stand-in: two TUN interfaces, between which a
process of this machine carries every packet, later, or not at all. It needs a processor itself.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import secrets
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

INTERFACE = "cable"
NETWORK = "10.71.0"
BURST_BYTES = 4_000
"""The bytes that a token bucket lets pass at once: two frames, so that no short messages pass free."""

FRAME_BYTES, PAYLOAD_BYTES = 1514, 1448
"""A full frame of Ethernet, as the token bucket counts it, and what it carries of a TCP connection."""

TUN_SETTINGS = 0x400454CA
TUN_WITHOUT_HEADER = 0x0001 | 0x1000
MOST_BYTES = 65_536
LONG_FRAME_BYTES = 60_000
"""The packets of a shaper are long, since each of them takes its processor some time."""


class NoCables(Exception):
    """This machine cannot make namespaces or cables between them."""


def ip(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command `ip`. Raises NoCables if it does not exist."""
    try:
        return subprocess.run(["ip", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise NoCables("there is no command ip") from None


def _require(done: subprocess.CompletedProcess[bytes], what: str) -> None:
    if done.returncode:
        raise NoCables(f"{what}: {done.stderr.decode().strip()}")


@dataclass
class Cable:
    """Two namespaces, and the only way from one to the other."""

    spaces: Sequence[str]
    shaper: Shaper | None = None

    @property
    def delay_seconds(self) -> float:
        """Return the mean delay of packets, as far as a shaper made it."""
        return 0.0 if self.shaper is None else self.shaper.held_seconds / max(self.shaper.carried, 1)

    def address(self, end: int) -> str:
        """Return the address of an end, 0 or 1."""
        return f"{NETWORK}.{end + 1}"

    def command(self, end: int, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one at an end."""
        return ["ip", "netns", "exec", self.spaces[end], *command]

    def cut(self, end: int = 0) -> None:
        """Cut the cable."""
        ip("-n", self.spaces[end], "link", "set", INTERFACE, "down")

    def mend(self, end: int = 0) -> None:
        """Mend it."""
        ip("-n", self.spaces[end], "link", "set", INTERFACE, "up")

    def narrow(self, megabits: float | None) -> None:
        """Let some megabits pass in a second, both ways; None for all. Raises NoCables if it cannot."""
        for space in self.spaces:
            tc = ("netns", "exec", space, "tc", "qdisc")
            ip(*tc, "del", "dev", INTERFACE, "root")
            if megabits is not None:
                limit = ("tbf", "rate", f"{megabits}mbit", "burst", str(BURST_BYTES), "latency", "400ms")
                _require(ip(*tc, "add", "dev", INTERFACE, "root", *limit), "the cable cannot be narrowed")


@contextmanager
def cable() -> Iterator[Cable]:
    """Make two namespaces that a cable joins. Raises NoCables."""
    with _spaces() as spaces:
        first, second = spaces
        peer = ("type", "veth", "peer", "name", INTERFACE, "netns", second)
        _require(ip("link", "add", INTERFACE, "netns", first, *peer), "no cable between namespaces")
        _up(spaces)
        yield Cable(spaces)


@contextmanager
def shaped(delay_seconds: float, loss: float = 0.0, seed: int = 0) -> Iterator[Cable]:
    """Make two namespaces between which a process carries packets, see `Shaper`. Raises NoCables."""
    with _spaces() as spaces:
        names = [f"t{secrets.token_hex(4)}{end}" for end in range(2)]
        try:
            tunnels = [_tunnel(name) for name in names]
        except OSError as error:
            raise NoCables(f"no TUN interfaces: {error.strerror}") from None
        try:
            for name, space in zip(names, spaces, strict=True):
                _require(ip("link", "set", name, "netns", space), "an interface cannot be moved")
                ip("-n", space, "link", "set", name, "name", INTERFACE, "mtu", str(LONG_FRAME_BYTES))
            _up(spaces)
            with Shaper(tunnels, delay_seconds, loss, seed) as shaper:
                yield Cable(spaces, shaper)
        finally:
            for tunnel in tunnels:
                os.close(tunnel)


class Shaper:
    """Carries packets between two TUN interfaces, so much later, and loses a part of them."""

    def __init__(self, tunnels: Sequence[int], delay_seconds: float, loss: float, seed: int) -> None:
        self._tunnels = tunnels
        self._delay_seconds = delay_seconds
        self._loss = loss
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self.lost = self.carried = 0
        self.held_seconds = 0.0
        """The time between taking and giving packets, of all together."""
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self) -> Shaper:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _carry(self) -> None:
        waiting: list[tuple[float, int, int, bytes]] = []
        delay = self._delay_seconds
        number = 0
        while not self._ended.is_set():
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                due, _, tunnel, packet = heapq.heappop(waiting)
                os.write(tunnel, packet)
                self.carried += 1
                self.held_seconds += time.monotonic() - due + delay
            patience = min(0.1, waiting[0][0] - now) if waiting else 0.1
            ready, _, _ = select.select(self._tunnels, [], [], max(patience, 0))
            for tunnel in ready:
                packet = os.read(tunnel, MOST_BYTES)
                if self._random.random() < self._loss:
                    self.lost += 1
                    continue
                other = self._tunnels[1 - self._tunnels.index(tunnel)]
                number += 1
                heapq.heappush(waiting, (time.monotonic() + delay, number, other, packet))


@contextmanager
def _spaces() -> Iterator[list[str]]:
    names = [f"tofu-{secrets.token_hex(3)}-{end}" for end in range(2)]
    try:
        for name in names:
            _require(ip("netns", "add", name), "namespaces cannot be made")
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def _up(spaces: Sequence[str]) -> None:
    for end, name in enumerate(spaces, 1):
        ip("-n", name, "addr", "add", f"{NETWORK}.{end}/24", "dev", INTERFACE)
        ip("-n", name, "link", "set", INTERFACE, "up")
        ip("-n", name, "link", "set", "lo", "up")


def _tunnel(name: str) -> int:
    """Open a new TUN interface, and return its descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, TUN_SETTINGS, struct.pack("16sH", name.encode(), TUN_WITHOUT_HEADER))
    return descriptor

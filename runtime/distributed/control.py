"""The control connections of a run: the first process has one to every other process.

Over them processes exchange small results, and learn who was lost. Every process sends a sign of life
several times within the timeout. A process whose connection closes without a farewell is lost at once. One
that is silent for the whole timeout is lost too. The first process tells all others, so all end with the
same message: the verdict. If the first process itself is lost, every other one notices that by itself.

All processes make the same exchanges in the same order. Whoever waits for longer than a second tells the
first process which exchange its next one is. So scripts that do different things are told apart, although
each waits for the other: one for messages of an iteration, and one for an exchange.

A frame is a byte for its kind; all but signs of life also have a size and contents.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from ...errors import ExecutionError
from ..started_threads import start_all
from .handshake import fill, read_exactly

SIZE = struct.Struct("!Q")
GRACE_SECONDS = 2.0
"""The longest time for which a process that noticed a loss waits for the verdict of the first process."""

SIGNS_WITHIN_TIMEOUT = 5
LONGEST_PULSE_SECONDS = 1.0


class FrameKind(IntEnum):
    """The kinds of frames."""

    LIFE = 1
    DATA = 2
    REPORT = 3
    VERDICT = 4
    FAREWELL = 5
    STAGE = 6


Stage = tuple[int, str]
"""The number of an exchange, and its purpose."""


class _Link:
    """One control connection: frames in both directions."""

    def __init__(self, process: int, connection: socket.socket) -> None:
        self.process = process
        self.connection = connection
        self.inbox: deque[bytes] = deque()
        self.seen = time.monotonic()
        self.ended = False
        self.stage: Stage | None = None
        """The next exchange of the other end, as it stated it last; None if it has not."""

        self._sending = threading.Lock()

    def send(self, kind: FrameKind, content: bytes, patience_seconds: float = -1) -> None:
        """Send a frame. Raises OSError, also if another thread has been sending for too long."""
        if not self._sending.acquire(timeout=patience_seconds):
            raise TimeoutError(f"process {self.process} does not read")
        try:
            self.connection.sendall(bytes([kind]) + SIZE.pack(len(content)) + content)
        finally:
            self._sending.release()

    def send_life(self) -> None:
        """Send a sign of life, unless another frame is on its way or the other end does not read."""
        if self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(BlockingIOError):
                    self.connection.send(bytes([FrameKind.LIFE]), socket.MSG_DONTWAIT)
            finally:
                self._sending.release()

    def read(self) -> tuple[FrameKind, bytes]:
        """Return the next frame. Raises OSError."""
        kind = FrameKind(read_exactly(self.connection, 1)[0])
        self.seen = time.monotonic()
        if kind is FrameKind.LIFE:
            return kind, b""
        content = bytearray(SIZE.unpack(read_exactly(self.connection, SIZE.size))[0])
        view, step = memoryview(content), 1 << 20
        for start in range(0, len(content), step):
            fill(self.connection, view[start : start + step])
            self.seen = time.monotonic()
        return kind, bytes(content)


class Control:
    """Exchanges results between processes, and the verdict if one is lost.

    `names` are the processes in words. Processes that send nothing for `timeout_seconds` are lost.
    """

    def __init__(
        self,
        number: int,
        names: Sequence[str],
        connections: Mapping[int, socket.socket],
        timeout_seconds: float,
    ) -> None:
        self._number = number
        self._names = names
        self._timeout_seconds = timeout_seconds
        self._links = {process: _Link(process, each) for process, each in sorted(connections.items())}
        self._news = threading.Condition()
        self._judging = threading.Lock()
        self._verdict: str | None = None
        self._closing = threading.Event()
        self._exchanges = 0
        self._stage: Stage | None = None
        """The next exchange, if it is known."""

        self._on_verdict: list[Callable[[], None]] = []
        threads = [threading.Thread(target=self._pulse, name="tofu-pulse", daemon=True)]
        for link in self._links.values():
            link.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = f"tofu-control-{link.process}"
            threads.append(threading.Thread(target=self._listen, args=(link,), name=name, daemon=True))
        try:
            start_all(threads)
        except ExecutionError:
            self.close()
            raise

    @property
    def verdict(self) -> str | None:
        """Return why the run ended in all processes; None while it goes on."""
        return self._verdict

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call a function as soon as there is a verdict, in any thread."""
        with self._news:
            self._on_verdict.append(call)
        if self._verdict is not None:
            call()

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the contents that all processes gave, by process.

        Raises ExecutionError with the verdict, also if processes exchange contents for different purposes.
        """
        if self._verdict is not None:
            raise ExecutionError(self._verdict)
        self.expect(purpose)
        try:
            found = self._exchanged(purpose.encode(), content)
            self._exchanges, self._stage = self._exchanges + 1, None
            return found
        except (KeyboardInterrupt, SystemExit) as error:
            self.left_with(error)
            raise

    def expect(self, purpose: str) -> None:
        """State the purpose of the next exchange, before something else that waits for other processes."""
        self._stage = self._exchanges, purpose

    def _exchanged(self, purpose: bytes, content: bytes) -> list[bytes]:
        if not self._links:
            return [content]
        if self._number:
            self._send(self._links[0], purpose + b"\0" + content)
            return _unpacked(self._next(self._links[0]))
        gathered = [content]
        for link in self._links.values():
            other, _, found = self._next(link).partition(b"\0")
            if other != purpose:
                self._judge(self._unlike(link, other.decode(errors="replace"), purpose.decode()))
                assert self._verdict is not None
                raise ExecutionError(self._verdict)
            gathered.append(found)
        packed = _packed(gathered)
        for link in self._links.values():
            self._send(link, packed)
        return gathered

    def failed(self, reason: str, suspected: bool = False) -> str:
        """Tell all processes that this one cannot go on; return the verdict.

        If `suspected`, another process probably was lost, and the first process may know more.
        """
        if self._verdict is None and self._number:
            with contextlib.suppress(OSError):
                self._links[0].send(FrameKind.REPORT, reason.encode(), GRACE_SECONDS)
        if self._number or suspected:
            with self._news:
                self._news.wait_for(lambda: self._verdict is not None or self._alone(), GRACE_SECONDS)
        self._judge(reason)
        assert self._verdict is not None
        return self._verdict

    def left_with(self, error: BaseException) -> None:
        """Tell all processes of the error with which this one leaves, if none has ended the run before.

        An error that an interrupt has caused, such as the ending of a command, counts as an interrupt.
        """
        if self._verdict is not None:
            return
        stopped = (KeyboardInterrupt, SystemExit)
        interrupted = isinstance(error, stopped) or isinstance(error.__cause__, stopped)
        how = "was interrupted" if interrupted else f"ended with {type(error).__name__}: {error}"
        self.failed(f"{self._names[self._number]} {how}")

    def close(self) -> None:
        """Say farewell, and end all connections."""
        self._closing.set()
        for link in self._links.values():
            with contextlib.suppress(OSError):
                link.send(FrameKind.FAREWELL, b"", GRACE_SECONDS)
            with contextlib.suppress(OSError):
                link.connection.shutdown(socket.SHUT_WR)
            link.connection.close()

    def _alone(self) -> bool:
        """Tell whether the first process, which judges, has left."""
        return bool(self._number) and self._links[0].ended

    def _send(self, link: _Link, content: bytes) -> None:
        try:
            link.send(FrameKind.DATA, content)
        except OSError:
            raise ExecutionError(self.failed(self._lost(link.process, "its connection broke"))) from None

    def _next(self, link: _Link) -> bytes:
        """Wait for the next contents of a process."""
        with self._news:
            self._news.wait_for(lambda: link.inbox or link.ended or self._verdict is not None)
            if link.inbox:  # what a process sent before the run ended is valid
                return link.inbox.popleft()
        if self._verdict is None:
            self._judge(f"{self._names[link.process]} ended before the others")
        raise ExecutionError(self._verdict)

    def _listen(self, link: _Link) -> None:
        """Read the frames of a connection until it ends."""
        try:
            while True:
                kind, content = link.read()
                match kind:
                    case FrameKind.LIFE:
                        continue
                    case FrameKind.DATA:
                        link.inbox.append(content)
                    case FrameKind.STAGE:
                        number, purpose = json.loads(content)
                        link.stage = number, purpose
                    case FrameKind.REPORT | FrameKind.VERDICT:
                        self._judge(content.decode(errors="replace"))
                    case FrameKind.FAREWELL:
                        link.ended = True
                with self._news:
                    self._news.notify_all()
        except (OSError, ValueError, struct.error):
            if not (link.ended or self._closing.is_set()):
                self._judge(self._lost(link.process, "its connection closed"))
        link.ended = True
        with self._news:
            self._news.notify_all()

    def _pulse(self) -> None:
        """Send signs of life, and look for processes that send none."""
        pause = min(LONGEST_PULSE_SECONDS, self._timeout_seconds / SIGNS_WITHIN_TIMEOUT)
        last = time.monotonic()
        before: Stage | None = None
        while not self._closing.wait(pause):
            before = self._compare_stages(before)
            now = time.monotonic()
            late, last = now - last > 2 * pause, now
            for link in self._links.values():
                if link.ended:
                    continue
                with contextlib.suppress(OSError):
                    link.send_life()
                silent = now - link.seen
                # a process that was itself stopped reads first what came meanwhile
                if not late and silent > self._timeout_seconds and self._verdict is None:
                    self._judge(self._lost(link.process, f"it has sent nothing for {silent:.1f} s"))

    def _compare_stages(self, before: Stage | None) -> Stage | None:
        """Tell the first process where this one waits, if it has since `before`; there, compare with its own.

        Returns the stage of this process.
        """
        stage = self._stage
        if self._number:
            link = self._links[0]
            if stage is not None and stage == before != link.stage:
                with contextlib.suppress(OSError):
                    link.send(FrameKind.STAGE, json.dumps(stage).encode(), LONGEST_PULSE_SECONDS)
                link.stage = stage  # so it is told once
            return stage
        for link in self._links.values():
            if stage is not None and link.stage is not None and self._verdict is None:
                (number, purpose), (other, theirs) = stage, link.stage
                if number == other and purpose != theirs:
                    self._judge(self._unlike(link, theirs, purpose))
        return stage

    def _unlike(self, link: _Link, theirs: str, own: str) -> str:
        return (
            f"{self._names[link.process]} wants to {theirs}, but {self._names[0]} to {own}; all processes "
            "must run the same script"
        )

    def _lost(self, process: int, reason: str) -> str:
        return f"{self._names[process]} was lost: {reason}"

    def _judge(self, verdict: str) -> None:
        """Set the verdict, unless there is one; tell all other processes, and wake all that waits.

        They are told first: once this process is awake it may end at any time.
        """
        with self._judging:
            if self._verdict is not None:
                return
            if not self._number:
                for link in self._links.values():
                    with contextlib.suppress(OSError):
                        link.send(FrameKind.VERDICT, verdict.encode(), LONGEST_PULSE_SECONDS / 2)
            with self._news:
                self._verdict = verdict
                calls = list(self._on_verdict)
                self._news.notify_all()
        for call in calls:
            call()


def _packed(contents: Sequence[bytes]) -> bytes:
    sizes = json.dumps([len(content) for content in contents]).encode()
    return b"".join([SIZE.pack(len(sizes)), sizes, *contents])


def _unpacked(packed: bytes) -> list[bytes]:
    start = SIZE.size + SIZE.unpack_from(packed)[0]
    found: list[bytes] = []
    for size in json.loads(packed[SIZE.size : start]):
        found.append(packed[start : start + size])
        start += size
    return found

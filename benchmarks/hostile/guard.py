"""Guard a trial: count crashes, hangs and forbidden events, and keep the slowest."""

from __future__ import annotations

import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any

EXECUTION = frozenset(
    {"exec", "compile", "import", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"}
    | {"socket.connect", "pickle.find_class"}
)
"""Events of the interpreter that no input may cause."""

SHOWN = 20
"""The number of failures that a result holds."""


class Hang(BaseException):
    """A trial took longer than its limit; no `except Exception` may swallow it."""


class Guard:
    """One run of trials: what became of them, and the slowest.

    `limit` is the processor time of a trial in seconds. Files outside of `folder` may not be opened.
    """

    def __init__(
        self, limit: float, folder: Path | None = None, allowed: frozenset[str] = frozenset()
    ) -> None:
        self.limit = limit
        self.counts: Counter[str] = Counter(crashes=0, hangs=0)
        self.failures: list[dict[str, str]] = []
        self.events: list[str] = []
        self.slowest: dict[str, tuple[float, str]] = {}
        self._forbidden = EXECUTION - allowed
        self._folder = None if folder is None else str(folder)
        self._watching = False
        sys.addaudithook(self._hear)
        signal.signal(signal.SIGPROF, _alarm)

    @contextmanager
    def trial(self, phase: str, shown: str) -> Iterator[None]:
        """Count a crash or a hang inside, and keep the slowest trial of a phase."""
        started = process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)
        try:
            yield
        except Hang:
            self.fail("hangs", shown, f"{phase} took more than {self.limit} processor seconds")
        except Exception:
            self.fail("crashes", shown, traceback.format_exc(limit=-3))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.slowest[phase] = max(self.slowest.get(phase, (0.0, "")), (process_time() - started, shown))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note forbidden events."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def fail(self, what: str, shown: str, why: str) -> None:
        """Count a failure of a kind, and keep it."""
        self.counts[what] += 1
        self.failures.append({"input": shown, "why": why})
        if len(self.failures) <= SHOWN:
            print(f"{what}: {shown!r}\n{why}", file=sys.stderr, flush=True)

    def result(self) -> dict[str, Any]:
        """Return all counts, the slowest trials and the first failures."""
        return {
            "processor_seconds_limit": self.limit,
            **dict(sorted(self.counts.items())),
            "executions": len(self.events),
            "slowest_seconds": {phase: round(seconds, 3) for phase, (seconds, _) in self.slowest.items()},
            "slowest": {phase: shown[:1000] for phase, (_, shown) in self.slowest.items()},
            "failures": (self.failures + [{"why": event} for event in self.events])[:SHOWN],
        }

    @property
    def failed(self) -> bool:
        """Tell whether anything went wrong."""
        return bool(self.failures or self.events)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._watching:
            return
        if event in self._forbidden or (event == "open" and self._is_outside(arguments[0])):
            self.events.append(f"{event} {arguments!r:.200}")

    def _is_outside(self, path: object) -> bool:
        return isinstance(path, str) and (self._folder is None or not path.startswith(self._folder))


def _alarm(number: int, frame: FrameType | None) -> None:
    raise Hang

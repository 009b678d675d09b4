"""One thread of one process at a time uses what holds threads and memory; others are refused at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ..errors import ExecutionError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class SoleUse:
    """A context manager that the thread which is inside it may enter again, and no other."""

    def __init__(self, what: str) -> None:
        """`what` names in words the thing that is used, such as `this module`."""
        self._what = what
        self._process = os.getpid()
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        """Raise ExecutionError in a forked process, and while another thread is inside."""
        if os.getpid() != self._process:
            raise ExecutionError(
                f"{self._what} was made in process {self._process}, and a fork does not have its threads; "
                "make it in the new process, or start that by spawn"
            )
        if not self._lock.acquire(blocking=False):
            raise ExecutionError(f"another thread is using {self._what}; let one thread use it at a time")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @contextmanager
    def tried(self) -> Iterator[bool]:
        """Enter if no other thread is inside, in the process that made it; yield whether that is so."""
        entered = os.getpid() == self._process and self._lock.acquire(blocking=False)
        try:
            yield entered
        finally:
            if entered:
                self._lock.release()


class UsedAlone(Protocol):
    """An object that one thread at a time uses."""

    _use: SoleUse


User = TypeVar("User", bound=UsedAlone)


def alone(
    method: Callable[Concatenate[User, Arguments], Result],
) -> Callable[Concatenate[User, Arguments], Result]:
    """Let one thread at a time be in a method, and in all that have this decorator."""

    @wraps(method)
    def called(self: User, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with self._use:
            return method(self, *arguments, **named)

    return called

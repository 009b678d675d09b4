"""Objects that hold threads and memory until they are closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """A context manager that always calls `close` on exit, including when an exception is raised."""

    @abstractmethod
    def close(self) -> None:
        """Release all threads and memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Profiles: measured times of instructions on one machine, by what they do and their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ..errors import MachineError
from ..support.wording import counted

Sizes = tuple[int, ...]
"""The sizes on which the time of an instruction of one kind depends."""


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """The time of an instruction of one kind and size."""

    seconds: float
    """The mean of usual rounds."""

    spread_seconds: float
    """The distance between the quartiles of the rounds."""

    amounts: Sizes
    """Amounts that the time grows with: operations and bytes, or pieces and bytes."""


@dataclass(frozen=True, slots=True)
class WakeTime:
    """How long threads take to go on when what they wait for has ended."""

    count: int
    """The number of times that a thread woke while programs were measured; 0 if none ever waited."""

    seconds: float
    """The mean of all."""

    def joined(self, other: WakeTime) -> WakeTime:
        """Return the mean of both."""
        count = self.count + other.count
        whole = self.count * self.seconds + other.count * other.seconds
        return WakeTime(count, whole / count if count else 0.0)


@dataclass(frozen=True, slots=True)
class EngineTimes:
    """Times on one engine with one number of threads, all of which were busy."""

    engine: str
    """The name of the engine."""

    threads: int
    """The threads, or the cards, that ran workers at the same time."""

    kernel_threads: int
    """The threads that products of matrices could use inside one kernel."""

    wakes: WakeTime
    """The time from the end of an instruction to the start of one on another thread that waits for it."""

    kinds: Mapping[str, Mapping[Sizes, MeasuredTime]]
    """By kind, then by sizes, the times."""


@dataclass(frozen=True, slots=True)
class Host:
    """The processor and the versions on which times were measured."""

    processor: str
    """The name of the processor."""

    processors: int
    """The number of processors that the process may use."""

    numpy: str
    """The version of NumPy."""

    blas: str
    """The name of the library for products, its version, and the core that it chose."""

    kernels: str
    """The version of Tofu's kernels."""


@dataclass(frozen=True, slots=True)
class CardHost:
    """The cards and the versions on which times were measured."""

    card: str
    """The name of the cards."""

    cards: int
    """The number of cards."""

    driver: str
    """The version of CUDA that the driver is for."""

    runtime: str
    """The version of CUDA's runtime."""

    cupy: str
    """The version of CuPy."""

    cublas: str
    """The version of cuBLAS."""

    cudnn: str
    """The version of the front end of cuDNN."""

    kernels: str
    """The version of Tofu's kernels."""


AnyHost = Host | CardHost


def check_host(measured: AnyHost, here: AnyHost, place: str) -> None:
    """Raise MachineError naming the first difference between the times in a file and this machine.

    Both hosts are of one engine.
    """
    for field in fields(measured):
        before, now = getattr(measured, field.name), getattr(here, field.name)
        if before != now:
            raise MachineError(
                f"the profile {place!r} was measured with {field.name} {before!r}, but here it is "
                f"{now!r}; delete the profile, or save to another file"
            )


@dataclass(frozen=True, slots=True)
class Profile:
    """The measured times of one machine."""

    machine: str
    """The name of the machine."""

    host: AnyHost
    """The hardware and the versions."""

    engines: tuple[EngineTimes, ...]
    """The times on each engine and for each number of threads, at least one."""

    path: str
    """The name of the file, for messages."""

    def times(self, threads: int) -> EngineTimes:
        """Return the times for a number of threads. Raises MachineError if it was not measured."""
        for each in self.engines:
            if each.threads == threads:
                return each
        noun, device = ("card", " --device gpu") if isinstance(self.host, CardHost) else ("thread", "")
        measured = ", ".join(counted(each.threads, noun) for each in self.engines)
        raise MachineError(
            f"the profile {self.path!r} has times for {measured}, but the workers of the plan run on "
            f"{threads}; measure them with `tofu profile MODEL --workers {threads}{device}`"
        )

"""Inspect what this machine has for the CUDA engine, and what it lacks."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from ...errors import ExecutionError
from ...operators.cuda.launch.commands import MemoryCopy
from ...operators.cuda.vendor import cublas
from ...operators.cuda.vendor.libraries import EXTRAS, library
from .cupy_machine import CupyMachine
from .machine import CudaMachine

COPIED_BYTES = 256 << 20
"""Large enough that bandwidth, not latency, dominates the time of a copy."""

COPIES = 5
"""The number of timed copies for each pair; the median counts."""


@dataclass(frozen=True, slots=True)
class Component:
    """A package or library."""

    name: str
    """Its name."""

    version: str | None
    """Its version; None if it cannot be used."""

    problem: str = ""
    """Why it cannot be used."""

    remedy: str = ""
    """The remedy."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card as CUDA describes it."""

    number: int
    """CUDA's number of the device."""

    name: str
    """The name of the product."""

    capability: str
    """The compute capability, as in `9.0`."""

    free_bytes: int
    """The memory that nobody uses."""

    total_bytes: int
    """All memory."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The hardware and software that the CUDA engine finds."""

    processors: int
    """The number of processors."""

    parts: tuple[Component, ...]
    """The packages and libraries."""

    cards: tuple[Card, ...]
    """The cards."""

    reaches: tuple[tuple[bool, ...], ...]
    """`reaches[i][j]`: whether kernels of card `i` can read card `j`'s memory."""

    bandwidth: tuple[tuple[float, ...], ...]
    """`bandwidth[i][j]`: the measured bytes per second of a copy from card `j` to card `i`.

    The diagonal is for copies within a card. Empty if nothing was measured.
    """

    @property
    def ready(self) -> bool:
        """Tell whether the CUDA engine can run here."""
        return bool(self.cards) and all(part.version is not None for part in self.parts)


def inspect(measure: bool = True) -> Inspection:
    """Look at everything; a missing part is not an error. `measure` copies between all pairs of cards."""
    parts = components()
    driver, cards, remedy = _cards()
    parts.insert(0, Component("NVIDIA driver", driver, *(() if driver else ("was not found", remedy))))
    reaches: tuple[tuple[bool, ...], ...] = ()
    bandwidth: tuple[tuple[float, ...], ...] = ()
    if cards:
        machine = CupyMachine([card.number for card in cards])
        try:
            everyone = range(len(cards))
            reaches = tuple(tuple(machine.reaches(i, j) for j in everyone) for i in everyone)
            bandwidth = copy_bandwidth(machine) if measure else ()
        finally:
            machine.close()
    return Inspection(os.cpu_count() or 1, tuple(parts), cards, reaches, bandwidth)


def components() -> list[Component]:
    """Look for the packages and libraries."""
    return [_package("cupy", "CuPy"), _package("cudnn", "cuDNN front end"), _cublas()]


def copy_bandwidth(
    machine: CudaMachine,
    nbytes: int = COPIED_BYTES,
    copies: int = COPIES,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[tuple[float, ...], ...]:
    """Measure the bytes per second of copies of `nbytes` between all workers, one pair at a time."""
    workers = range(machine.workers)
    blocks = [(machine.allocate(worker, nbytes), machine.allocate(worker, nbytes)) for worker in workers]

    def measured(target: int, source: int) -> float:
        copy = MemoryCopy(blocks[target][1], blocks[source][0], nbytes)
        taken = []
        for number in range(copies + 1):
            begun = clock()
            machine.issue(target, copy)
            machine.synchronize()
            if number:  # the first copy includes set-up work
                taken.append(clock() - begun)
        return nbytes / statistics.median(taken)

    return tuple(tuple(measured(target, source) for source in workers) for target in workers)


def _package(module: str, name: str) -> Component:
    try:
        found = library(module, name)
    except ExecutionError as error:
        return Component(name, None, str(error).partition(":")[0], EXTRAS)
    return Component(name, str(getattr(found, "__version__", "")) or _distributed(module))


def _distributed(module: str) -> str:
    """Find the version of the distribution that a module comes from."""
    for distribution in metadata.packages_distributions().get(module, ()):
        return metadata.version(distribution)
    return "of an unknown version"


def _cublas() -> Component:
    try:
        return Component("cuBLAS", cublas.version())
    except ExecutionError as error:
        return Component("cuBLAS", None, str(error).partition(":")[0], EXTRAS)


def _cards() -> tuple[str | None, tuple[Card, ...], str]:
    """Return the driver's version of CUDA, the cards, and what to do if there are none."""
    remedy = "install the NVIDIA driver; `nvidia-smi` lists the cards once it works"
    try:
        cupy = library("cupy", "a GPU")
    except ExecutionError:
        return None, (), f"not looked for without CuPy: {EXTRAS}"
    runtime = cupy.cuda.runtime
    try:
        version = int(runtime.driverGetVersion())
        count = int(runtime.getDeviceCount()) if version else 0
        cards = tuple(_card(cupy, number) for number in range(count))
    except runtime.CUDARuntimeError:
        return None, (), remedy
    return (f"for CUDA {cuda_version(version)}" if version else None), cards, remedy


def cuda_version(number: int) -> str:
    """Return a version as text, of the number that CUDA has for it: 13.0 for 13000."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _card(cupy: Any, number: int) -> Card:
    with cupy.cuda.Device(number) as device:
        free, total = cupy.cuda.runtime.memGetInfo()
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        capability = str(device.compute_capability)
    return Card(number, name, f"{capability[:-1]}.{capability[-1]}", free, total)

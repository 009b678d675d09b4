"""Measure the processor of this machine: rates, bandwidths, and how long threads take to wake each other.

All threads measure at the same time, because they share caches, memory and the interpreter when workers run.
"""

from __future__ import annotations

import os
import platform
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ..errors import ExecutionError
from ..machines.device_kind import DeviceKind
from ..machines.machine import Level, Machine
from ..machines.profile import Host
from ..operators.kernels_version import kernels_version
from ..support.processors import processors
from .processor_libraries import library_names
from .started_threads import start_all
from .step_threads import Team, ThreadStep

SQUARE = 1024
"""The rows and columns of the matrices whose product gives a rate."""

COPIED_BYTES = 32 << 20
"""Larger than caches, so that memory decides."""

SMALL = 16
"""The elements of an array for which starting a kernel is all the time it takes."""

ROUNDS = 9
CALLS = 1000
HANDOVERS = 100
PATIENCE_SECONDS = 60.0
KIND = "processor"


def host() -> Host:
    """Return this machine's processor and the versions on which times depend."""
    return Host(_processor_name(), processors(), version("numpy"), library_names(), kernels_version("numpy"))


def machine_name() -> str:
    """Return a name for this machine: that of its processor and their number."""
    words = re.findall(r"[a-z0-9.]+", _processor_name().lower())
    return "-".join([*words, str(processors())])


def measure_processor(size: int = SQUARE, copied_bytes: int = COPIED_BYTES) -> Machine:
    """Measure this machine's processor and return it as a machine with a device for each processor."""
    count = processors()
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        rates = tuple((dtype, _product_rate(count, size, dtype)) for dtype in ("float32", "float64"))
    copied, fetched = _copy_rates(count, copied_bytes)
    kind = DeviceKind(
        KIND,
        _memory_bytes() // count,
        2 * copied,
        rates,
        _start_seconds(count),
        in_turn=True,
        wake_seconds=_wake_seconds() if count > 1 else 0.0,
    )
    numbers = tuple(range(count))
    names = tuple(f"core{number}" for number in numbers)
    level = Level("core", fetched)
    return Machine(machine_name(), (level,), names, (numbers,), kind.memory_bytes, (kind,) * count)


def _product_rate(threads: int, size: int, dtype: str) -> float:
    def work() -> Callable[[], object]:
        factors = np.ones((2, size, size), dtype)
        made = np.empty((size, size), dtype)
        return partial(np.matmul, factors[0], factors[1], out=made)

    return 2 * size**3 / _together([work] * threads)


def _copy_rates(threads: int, nbytes: int) -> tuple[float, float]:
    """Return the bytes a second that a thread copies, of its own memory and of another thread's."""
    sources = [np.ones(nbytes, np.uint8) for _ in range(threads)]

    def work(number: int) -> Callable[[], object]:
        made = np.zeros(nbytes, np.uint8)
        return lambda: np.copyto(made, sources[number])

    own = _together([partial(work, number) for number in range(threads)])
    others = _together([partial(work, (number + 1) % threads) for number in range(threads)])
    return nbytes / own, nbytes / others


def _start_seconds(threads: int) -> float:
    def work() -> Callable[[], object]:
        values = np.ones((3, SMALL), np.float32)
        step = partial(np.add, values[0], values[1], values[2])
        return lambda: [step() for _ in range(CALLS)]

    return _together([work] * threads) / CALLS


def _together(works: list[Callable[[], Callable[[], object]]]) -> float:
    """Return the median seconds of what several threads do at the same time, each on what it prepares."""
    start = threading.Barrier(len(works))
    taken: list[float] = []

    def measure(prepare: Callable[[], Callable[[], object]]) -> None:
        run = prepare()
        run()
        with suppress(threading.BrokenBarrierError):
            for _ in range(ROUNDS):
                start.wait()
                begin = perf_counter()
                run()
                taken.append(perf_counter() - begin)

    threads = [threading.Thread(target=measure, args=(work,)) for work in works]
    try:
        start_all(threads)
    except ExecutionError:
        start.abort()
        raise
    for thread in threads:
        thread.join()
    return median(taken)


def _wake_seconds() -> float:
    """Return the time from the end of a step to the start of one that waits for it in another thread."""
    factors = np.ones((SQUARE // 4, SQUARE // 4), np.float32)
    made = [np.empty_like(factors) for _ in range(2)]
    moments: list[tuple[float, float]] = []

    def step(thread: int) -> None:
        begin = perf_counter()
        np.matmul(factors, factors, out=made[thread])
        moments.append((begin, perf_counter()))

    tasks = [
        [ThreadStep(partial(step, thread), ((1 - thread, number + thread),)) for number in range(HANDOVERS)]
        for thread in range(2)
    ]
    team = Team(tasks, PATIENCE_SECONDS)
    try:
        team.run()
    finally:
        team.close()
    gaps = [after[0] - before[1] for before, after in pairwise(moments)]
    return median(gaps)


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return (found[1].strip() if found else platform.processor()) or platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

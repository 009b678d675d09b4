"""Choose the engine for a list of devices; an engine is imported only when it is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ExecutionError
from ..programs.memory import MemoryPlan
from ..programs.program import PartitionedGraph
from ..support.checked_argument import require_count
from .context import Context
from .engine import Engine, MakeEngine, Watch


def engine_on(
    devices: Sequence[Context],
    *,
    threads: int | None = None,
    eager: bool = False,
    tf32: bool = False,
) -> MakeEngine:
    """Return the engine for workers on these devices: NumPy on the processor, CuPy on GPUs.

    `threads` is for the processor. GPUs run an iteration as one graph unless `eager`. If `tf32`, they may
    round the factors of float32 products to TF32. Raises ExecutionError for a mixture of kinds of devices,
    and if `threads` is not an integer from 1 on.
    """
    if threads is not None:
        require_count(threads, "threads", ExecutionError, 1)
    kinds = {device.device_type for device in devices}
    match sorted(kinds):
        case [] | ["cpu"]:
            return _on_processor(threads)
        case ["gpu"]:
            return _on_cards(tuple(device.device_id for device in devices), eager, tf32)
        case _:
            listed = ", ".join(map(str, devices))
            raise ExecutionError(
                f"workers on {listed}: the processor and GPUs cannot run one graph together; give a context "
                "of one kind"
            )


def _on_processor(threads: int | None) -> MakeEngine:
    def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> Engine:
        from ..programs.schedule import schedule
        from .numpy_engine import NumpyEngine

        return NumpyEngine(
            partitioned,
            memory,
            schedule(partitioned, memory),
            watch=watch,
            threads=threads,
        )

    return make


def _on_cards(cards: tuple[int, ...], eager: bool, tf32: bool) -> MakeEngine:
    def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> Engine:
        require_watchable_on_cards(watch)
        from ..programs.schedule import schedule
        from .cuda.cupy_machine import CupyMachine
        from .cuda.engine import CudaEngine

        machine = CupyMachine(cards, tf32=tf32, watchdog_seconds=watch.watchdog_seconds)
        try:
            return CudaEngine(
                partitioned, memory, schedule(partitioned, memory), machine, watch=watch, eager=eager
            )
        except BaseException:
            machine.close()
            raise

    return make


def require_watchable_on_cards(watch: Watch) -> None:
    """Raise ExecutionError if cards cannot make a check or a measurement."""
    if watch.guard_buffers:
        raise ExecutionError("guard_buffers watches workers on the processor; run this on cpu devices")
    if watch.note_arrivals:
        raise ExecutionError(
            "the order in which gradients arrive is noted on the processor; replay a log of arrivals on "
            "cards, or run this on cpu devices"
        )

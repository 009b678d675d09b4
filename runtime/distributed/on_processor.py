"""Run the workers of a process on its processor."""

from __future__ import annotations

from collections.abc import Callable

from ...programs.schedule import schedule
from ..engine import Watch
from ..numpy_engine import NumpyEngine
from .engine import Together
from .own_workers import OwnWorkers
from .process_view import ProcessView
from .wire import Wire


def on_processor(
    processes: Together, watch: Watch, threads: int | None
) -> Callable[[ProcessView], OwnWorkers]:
    """Return the maker of the workers of this process, which `threads` threads run.

    Two more threads send and receive.
    """

    def make(view: ProcessView) -> OwnWorkers:
        wire = Wire(view, processes.transport)
        engine = NumpyEngine(
            view.partitioned,
            view.memory,
            schedule(view.partitioned, view.memory),
            watch=watch,
            threads=threads,
            stand_ins=wire,
            sharing=processes.local_count,
        )
        # the number of threads of a product can change its bits, so it is the same everywhere
        said = processes.exchange("count threads", b"%d" % engine.kernel_threads)
        engine.kernel_threads = min(map(int, said))
        return OwnWorkers(engine, wire)

    return make

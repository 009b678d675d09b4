"""Run the workers of a process on its cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...programs.schedule import schedule
from ..choose_engine import require_watchable_on_cards
from ..cuda.cupy_machine import CupyMachine
from ..cuda.engine import CudaEngine
from ..engine import Watch
from .host_wire import HostWire
from .nccl import Nccl
from .nccl_wire import NcclWire
from .own_workers import OwnWorkers
from .process_view import ProcessView
from .transport import Transport


def on_cards(
    cards: Sequence[int], link: Transport | Nccl, watch: Watch, *, eager: bool, tf32: bool
) -> Callable[[ProcessView], OwnWorkers]:
    """Return the maker of the workers of this process, one for each of `cards`.

    Messages cross over NCCL, or a transport of the host. Those are issued one by one, because the host takes
    part in each.
    """

    def make(view: ProcessView) -> OwnWorkers:
        require_watchable_on_cards(watch)
        names = [*(f"worker {worker}" for worker in view.local), "messages"]
        machine = CupyMachine(
            [*cards, cards[0]],
            tf32=tf32,
            watchdog_seconds=watch.watchdog_seconds,
            names=names,
            communicator=link if isinstance(link, Nccl) else None,
        )
        wire = NcclWire(view) if isinstance(link, Nccl) else HostWire(view, link)
        waits = schedule(view.partitioned, view.memory)
        try:
            engine = CudaEngine(
                view.partitioned, view.memory, waits, machine, watch=watch, eager=eager, stand_ins=wire
            )
        except BaseException:
            machine.close()
            raise
        return OwnWorkers(engine, wire)

    return make

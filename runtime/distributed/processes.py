"""The processes that train together, as a context for `Module`."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ... import errors
from ...errors import ExecutionError, TofuError
from ...programs.memory import MemoryPlan
from ...programs.program import PartitionedGraph
from ...support.checked_argument import require, require_count
from ...support.json_text import json_text
from ..closeable import Closeable
from ..cuda.cards import own_cards
from ..engine import Engine, MakeEngine, Watch
from ..peers import KeptFolder
from .agreement import first_difference, machine_facts, program_facts
from .engine import DistributedEngine, lost_link
from .join import Membership, join
from .kept_folder import SharedFolder
from .on_processor import on_processor
from .own_workers import OwnWorkers
from .process_view import ProcessView
from .rendezvous import meeting
from .sockets import SocketTransport
from .transport import LinkLost, Transport

if TYPE_CHECKING:
    from .nccl import Nccl

TRANSPORTS = ("tcp", "gloo", "nccl")
DEVICES = ("cpu", "gpu")
TIMEOUT_SECONDS = 60.0
JOIN_SECONDS = 120.0


class Processes(Closeable):
    """All processes of a run; `tofu.distributed` makes it. Each runs `workers_each` of the workers.

    `cards` are those of the workers of this process; none if they run on the processor. `number` is that of
    this process, and `count` that of all. `names` and `hosts` say which process it is and on which machine,
    for each. `attempt` is how often the run was started again. All processes run the same script, so that
    they make the same calls in the same order.
    """

    def __init__(self, joined: Membership, workers_each: int, cards: Sequence[int] = ()) -> None:
        self.number = joined.number
        self.count = len(joined.names)
        self.names = joined.names
        self.hosts = joined.hosts
        self.transport: Transport = SocketTransport(joined.connections)
        self.workers_each = workers_each
        self.local_count = joined.local_count
        self.attempt = joined.attempt
        self.cards = tuple(cards)
        self._nccl: Nccl | None = None
        self._addresses = joined.addresses
        self._control = joined.control
        self._control.when_lost(self.transport.abort)

    def __repr__(self) -> str:
        return f"<process {self.number} of {self.count}, {self.workers} workers>"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the run; if an error ends it here, all other processes raise an error that says which."""
        match error:
            case None | SystemExit(code=None | 0):
                pass
            case _:
                self._control.left_with(error)
        self.close()

    @property
    def workers(self) -> int:
        """Return the number of workers of all processes."""
        return self.count * self.workers_each

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Return the process of each worker."""
        return tuple(worker // self.workers_each for worker in range(self.workers))

    @property
    def lost(self) -> bool:
        """Tell whether the run has ended because a process was lost or failed."""
        return self._control.verdict is not None

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the contents that all processes gave, by process; all state the same purpose.

        Raises ExecutionError that names the process if one was lost.
        """
        return self._control.exchange(purpose, content)

    def expect(self, purpose: str) -> None:
        """State the purpose of the next exchange, so that others that make another one are told apart."""
        self._control.expect(purpose)

    def text(self, make: Callable[[], str]) -> str:
        """Return what `make` returns in the first process; it is not called in others.

        An error of the package that it raises is raised in all of them.
        """
        said: list[str] = []
        if not self.number:
            try:
                said = ["", make()]
            except TofuError as error:
                said = [type(error).__name__, str(error)]
        kind, text = json.loads(self.exchange("share a result", json.dumps(said).encode())[0])
        if kind:
            raised = getattr(errors, kind, ExecutionError)
            raise raised(text)
        return str(text)

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is set in any process."""
        return b"1" in self.exchange("share a flag", b"1" if flag else b"0")

    def agree(self, facts: Mapping[str, object]) -> None:
        """Raise ExecutionError naming the first fact that differs between processes.

        Facts are texts, or JSON values.
        """
        texts = {
            name: fact if isinstance(fact, str) else json_text(fact, name) for name, fact in facts.items()
        }
        own = json.dumps(texts).encode()
        stated = [json.loads(content) for content in self.exchange("compare facts", own)]
        difference = first_difference(stated, self.names)
        if difference is not None:
            raise ExecutionError(difference)

    def folder(self, path: Path) -> KeptFolder:
        """Return a folder of checkpoints that all processes use."""
        return SharedFolder(path, self)

    def fail(self, error: Exception) -> ExecutionError:
        """Tell all processes of an error that ends the run; return the error that all raise."""
        link = lost_link(error)
        if link is None:
            return ExecutionError(self._control.failed(str(error)))
        place = str(error).partition(f": {type(link).__name__}: ")[0]
        lost = "a process" if link.process is None else self.names[link.process]
        verdict = self._control.failed(f"{lost} was lost: {link.reason}", suspected=True)
        return ExecutionError(f"{verdict}; process {self.number} was at {place}")

    def engine(self, threads: int | None = None, *, eager: bool = False, tf32: bool = False) -> MakeEngine:
        """Return the maker of the engine of this process, whose workers run on `threads` threads.

        `eager` and `tf32` are for cards.
        """

        def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> Engine:
            self.agree(program_facts(partitioned))
            return DistributedEngine(partitioned, memory, self, self._own(watch, threads, eager, tf32))

        return make

    def use_gloo(self) -> None:
        """Send messages over gloo from now on. Raises ExecutionError if torch is not installed."""
        from .gloo import GlooTransport

        own, first = self._addresses[self.number], self._addresses[0]
        gloo = GlooTransport(self.number, self.count, first, own, lambda said: self.text(lambda: said))
        self.transport.close()
        self.transport = gloo
        self._control.when_lost(gloo.abort)

    def use_nccl(self) -> None:
        """Send messages of cards over NCCL from now on; what is read or saved keeps its transport.

        Raises ExecutionError if NCCL is not installed, or cannot connect the cards.
        """
        from ..cuda.card_facts import card_address
        from .nccl import Nccl, require_own_cards

        card = self.cards[0]
        nccl = Nccl(self.number, self.count, card)
        said = self.exchange("name cards", card_address(card).encode())
        hosts = zip(said, self.hosts, strict=True)
        require_own_cards([f"{name.decode()} of {host}" for name, host in hosts], self.names)
        self._control.when_lost(nccl.abort)
        try:
            nccl.connect(lambda own: self.text(lambda: own))
        except LinkLost as error:
            raise self.fail(error) from error
        self._nccl = nccl

    def close(self) -> None:
        """Leave the run. Call it after the last use; leaving the script does too."""
        if self._nccl is not None:
            self._nccl.close()
        self._control.close()
        self.transport.close()

    def _own(
        self, watch: Watch, threads: int | None, eager: bool, tf32: bool
    ) -> Callable[[ProcessView], OwnWorkers]:
        if not self.cards:
            return on_processor(self, watch, threads)
        from .on_cards import on_cards

        return on_cards(self.cards, self._nccl or self.transport, watch, eager=eager, tf32=tf32)


def distributed(
    *,
    workers_each: int = 1,
    device: str = "cpu",
    transport: str = "tcp",
    timeout_seconds: float = TIMEOUT_SECONDS,
    join_seconds: float = JOIN_SECONDS,
) -> Processes:
    """Join the processes of this run, and return them as a context: `tofu.Module(net, context=...)`.

    Every process runs the same script. torchrun starts them, or anything that sets `RANK`, `WORLD_SIZE`,
    `MASTER_ADDR`, `MASTER_PORT` and the secret `TOFU_TOKEN`. Each runs `workers_each` workers, on the
    processor or, if `device` is `gpu`, on the cards of its machine, which the processes there share evenly.
    Messages go over connections of their own (`tcp`), over `gloo` of torch, or from card to card over `nccl`.

    If a process is killed or ends early, all others end within a second with an ExecutionError that names
    it. If one sends no sign of life for `timeout_seconds`, it counts as lost too. Raises ExecutionError if
    the processes do not find each other within `join_seconds`, or if versions or arithmetic differ.
    """
    require_count(workers_each, "workers_each", ExecutionError, 1)
    fits = transport in TRANSPORTS
    require(fits, transport, "transport", f"one of {', '.join(TRANSPORTS)}", ExecutionError)
    require(device in DEVICES, device, "device", f"one of {', '.join(DEVICES)}", ExecutionError)
    if transport == "nccl" and device != "gpu":
        raise ExecutionError("nccl moves messages between cards; give device='gpu', or another transport")
    found = meeting(os.environ)
    cards = own_cards(found.local_number, found.local_count, workers_each) if device == "gpu" else ()
    joined = join(found, workers_each, timeout_seconds, join_seconds)
    processes = Processes(joined, workers_each, cards)
    atexit.register(processes.close)
    facts = {"the number of workers of a process": str(workers_each), "the transport": transport}
    facts |= {"the device": device, **machine_facts()}
    if cards:
        from ..cuda.card_facts import card_facts

        facts |= card_facts(cards[0])
    processes.agree(facts)
    if transport == "gloo":
        processes.use_gloo()
    if transport == "nccl":
        processes.use_nccl()
    return processes

"""Bind a symbol to workers: the executors that train and evaluate it, and the parameters that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

import numpy.typing as npt

from ..analyzer.indices.region import Shape
from ..dataflow.element_types import checked_type
from ..dataflow.graph import Graph
from ..dataflow.loss_scale import checked_scale
from ..dataflow.optimizer import Optimizer, get_optimizer
from ..dataflow.rewrites.arrivals import arriving
from ..dataflow.symbol import Symbol
from ..dataflow.symbol.outputs import require_symbol
from ..dataflow.training import gradient_graph, inference_graph, micro_shapes, training_graph
from ..errors import ExecutionError, GraphError, ShapeError
from ..operators.kernels.kernel import Array
from ..support.checked_argument import require
from .arrival_log import ArrivalLog
from .choose_engine import engine_on
from .closeable import Closeable
from .context import Context, devices_of
from .data import Batch
from .distributed.processes import Processes
from .executor import Executor, Lower
from .initializer import Xavier
from .memory_limit import MemoryLimit
from .metrics import Tally
from .parameters import Parameters, Undefined, learned, optimizer_state
from .peers import Alone, Peers
from .run_checkpoints import flat, update_settings
from .run_settings import RunSettings
from .sole_use import SoleUse, alone
from .training_step import Stepped, train_step


@dataclass(frozen=True, slots=True)
class _Purpose:
    """The purpose of an executor."""

    shapes: Mapping[str, Shape]
    """The shapes of the arrays of a whole batch."""

    optimizer: Optimizer | None = None
    """The optimizer; None if the executor does not train."""

    fixed: frozenset[str] = frozenset()
    """The parameters that are not trained."""

    micro_batches: int = 1
    """The number of micro-batches of a batch."""

    unrolled: bool = False
    """Whether one iteration works on all micro-batches."""

    @property
    def facts(self) -> dict[str, object]:
        """Return what all processes of a run must agree in, besides the graph."""
        updates = {} if self.optimizer is None else {"optimizer": update_settings(self.optimizer)}
        return {
            "the shapes of a batch": dict(self.shapes),
            **flat(updates),
            "fixed": sorted(self.fixed),
            "accumulate": self.micro_batches,
            "unroll": self.unrolled,
        }

    def learns_like(self, other: _Purpose) -> bool:
        """Tell whether both train the same parameters in the same way, apart from the shapes of batches."""
        return (self.optimizer, self.fixed) == (other.optimizer, other.fixed)


@dataclass(slots=True)
class _Bound:
    """An executor and its state."""

    purpose: _Purpose
    """The purpose of the executor."""

    executor: Executor
    """The executor."""

    step: int
    """The training step whose parameters it holds."""


class Binding(Closeable):
    """A symbol bound to workers, one for each entry of `context`, or those of several processes.

    `lower` partitions a graph for a number of workers; `tofu.api` supplies search and lowering. Threads and
    memory are held until `close`; a binding is a context manager. One thread uses it at a time, and all
    methods but `close` refuse others.
    """

    def __init__(
        self,
        symbol: Symbol,
        context: Context | Sequence[Context] | Processes | None = None,
        *,
        lower: Lower,
        settings: RunSettings | None = None,
    ) -> None:
        require_symbol(symbol)
        run = settings or RunSettings()
        self.symbol = symbol
        self.peers: Peers = Alone()
        if isinstance(context, Processes):
            self.peers, self.workers = context, context.workers
            self._make_engine = context.engine(run.threads, eager=run.eager, tf32=run.tf32)
            context.agree(run.facts)
        else:
            devices = devices_of(context)
            self.workers = len(devices)
            self._make_engine = engine_on(devices, threads=run.threads, eager=run.eager, tf32=run.tf32)
        self._dtype = checked_type(run.dtype)
        self._loss_scale = checked_scale(run.loss_scale, run.dtype)
        self._recompute = run.recompute
        self._lower = lower
        self._detect_nan = run.detect_nan
        self._guard_buffers = run.guard_buffers
        self._arrivals = run.arrivals
        self._memory_bytes = run.memory_bytes
        self._parameters = Parameters(symbol, run.initializer or Xavier(), run.seed, run.parameters)
        self._training: _Bound | None = None
        self._evaluators: dict[tuple[str, ...] | None, _Bound] = {}
        self._undefined: Undefined | None = None
        self._rate_step = 0
        self._step = 0
        self._use = SoleUse("this module")

    @alone
    def bind(
        self,
        shapes: Mapping[str, Shape],
        optimizer: Optimizer | str = "sgd",
        fixed: Collection[str] = (),
        heads: bool = False,
        accumulate: int = 1,
        unroll: bool = False,
    ) -> Executor:
        """Return the executor of the training graph: partitioned, in memory, with start values.

        `shapes` are those of one batch, data and labels. Parameters named in `fixed` are not trained. `heads`
        is that of `training_graph`. A batch is processed in `accumulate` micro-batches, whose gradients are
        summed; if `unroll`, one iteration works on all of them. If any of these differs from the last call, a
        new executor is made, which keeps the learned parameters. It also keeps the optimizer's state and step
        if only the shapes of batches differ.

        Raises ExecutionError if learned values are undefined, because an iteration stopped halfway.
        """
        require(
            isinstance(shapes, Mapping), shapes, "shapes", "shapes by name: {'data': (64, 3)}", ShapeError
        )
        require(isinstance(fixed, Collection), fixed, "fixed", "a list of names", GraphError)
        settings = get_optimizer(optimizer)
        purpose = _Purpose(dict(shapes), settings, frozenset(fixed), accumulate, unroll)
        self._require_defined()
        bound = self._training
        if bound is not None and bound.purpose == purpose:
            return bound.executor
        self.peers.agree(purpose.facts)
        micro = micro_shapes(shapes, accumulate)
        graph = training_graph(
            self.symbol,
            micro,
            settings,
            fixed=fixed,
            heads=heads,
            micro_batches=accumulate,
            unroll=unroll,
            dtype=self._dtype,
            loss_scale=self._loss_scale,
            recompute=self._recompute,
        )
        goes_on = bound is not None and bound.purpose.learns_like(purpose)
        state = optimizer_state(bound.executor) if bound is not None and goes_on else {}
        self._rate_step = self._rate_step if goes_on else 0
        self._unbind_training()
        executor = self._executor(graph)
        self._store(executor)
        for name, value in state.items():
            executor.write(name, value)
        self._training = _Bound(purpose, executor, self._step)
        return executor

    @alone
    def step(
        self, executor: Executor, batch: Batch, rate: float, tallies: Sequence[Tally] | None = None
    ) -> Stepped:
        """Run one training step on the executor that `bind` returned; see `train_step`."""
        training = self._training
        if training is None:
            raise ExecutionError("this module was closed while it was trained; close it after fit")
        if training.executor is not executor:
            raise ExecutionError(
                "this module was bound to other shapes or settings while it was trained (by bind or fit in a "
                "callback); do that after fit"
            )
        self._step += 1
        purpose = training.purpose
        log = self._arrivals_of(executor)
        if log is not None:
            log.before(executor, self._rate_step)
        done = train_step(executor, batch, purpose.micro_batches, rate, tallies, purpose.unrolled)
        if log is not None:
            log.after(executor)
        self._rate_step += 1
        return done

    @alone
    def evaluator(self, shapes: Mapping[str, Shape], gradients: Sequence[str] | None = None) -> Executor:
        """Return an executor that does not train, for data of these shapes, with the newest parameters.

        It computes the outputs as after training. If `gradients` is a list of names, it computes the outputs
        as in training, and the gradients for these names. Raises ExecutionError as `bind` does.
        """
        self._require_defined()
        made_for = None if gradients is None else tuple(gradients)
        bound = self._evaluators.get(made_for)
        if bound is None or bound.purpose.shapes != shapes or bound.executor.failed:
            graph = (
                inference_graph(self.symbol, shapes, dtype=self._dtype)
                if gradients is None
                else gradient_graph(
                    self.symbol, shapes, gradients, dtype=self._dtype, loss_scale=self._loss_scale
                )
            )
            if bound is not None:
                bound.executor.close()
                self._evaluators.pop(made_for, None)  # another thread may have closed the module
            executor = self._executor(graph)
            bound = self._evaluators[made_for] = _Bound(_Purpose(dict(shapes)), executor, step=-1)
        if bound.step != self._step or gradients is not None:
            self._store(bound.executor, self._newest())
            bound.step = self._step
        return bound.executor

    @alone
    def parameters(self) -> dict[str, Array]:
        """Return copies of parameters and moving statistics by name; empty before anything is bound.

        They are whole tensors. Raises ExecutionError if they are undefined, because an iteration stopped
        halfway.
        """
        self._load()
        return self._parameters.all()

    @alone
    def set_parameters(self, values: Mapping[str, npt.ArrayLike]) -> None:
        """Overwrite parameters and moving statistics, whole tensors by name; the others stay.

        If values are undefined because an iteration stopped halfway, the module can be used again once all
        are given. Raises DataError for a name that is not a variable of the symbol, ShapeError for another
        shape.
        """
        self._drop_failed()
        if self._undefined is None:
            self._load()
        self._parameters.assign(values)
        if self._undefined is not None:
            self._undefined = self._undefined.without(values)
        self._step += 1
        if self._training is not None:
            self._store(self._training.executor)

    def close(self, keep: bool = True) -> None:
        """End all threads and release the memory.

        If `keep`, learned values are kept, as whole tensors in every process. If not, the module has those
        that were given, or that `parameters` returned last. If an iteration stopped halfway, they are
        undefined. They also are if another thread is using the module; its call ends with an error.
        """
        self._close(keep)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the module. If an error ends one of several processes, the others do not gather values."""
        kept = error is None or self.peers.count == 1
        self._close(lost=None if kept else "an error ended the block of this module")

    def _close(self, keep: bool = True, lost: str | None = None) -> None:
        with self._use.tried() as entered:
            self._unbind_training(keep, lost if entered else "another thread closed this module")
            evaluators, self._evaluators = self._evaluators, {}
            for bound in evaluators.values():
                bound.executor.close()

    def _arrivals_of(self, executor: Executor) -> ArrivalLog | None:
        """Return the log of the orders in which a plan applies gradients; None if it applies their sums."""
        by_arrival = bool(arriving(executor.partitioned.graph))
        if by_arrival and self._arrivals is None:
            raise ExecutionError(
                "the plan applies gradients in the order in which they arrive, so no two runs are equal; say "
                "where the order is logged (arrivals), or which log is replayed (replay)"
            )
        if not by_arrival and self._arrivals is not None:
            raise ExecutionError(
                "the plan applies sums of gradients, which have no order of arrival; leave out arrivals and "
                "replay, or give a plan of a strategy with sync: false"
            )
        return self._arrivals

    def _executor(self, graph: Graph) -> Executor:
        partitioned = self._lower(graph, self.workers)
        log = self._arrivals
        notes = log is not None and not log.replays and bool(arriving(partitioned.graph))
        return Executor(
            partitioned,
            note_arrivals=notes,
            detect_nan=self._detect_nan,
            guard_buffers=self._guard_buffers,
            memory_limit=self._memory_limit(),
            make_engine=self._make_engine,
        )

    def _memory_limit(self) -> MemoryLimit | None:
        """Return the memory that another executor may take besides those that are bound."""
        if self._memory_bytes is None:
            return None
        bound = [*self._evaluators.values(), *([] if self._training is None else [self._training])]
        held = [each.executor.held_bytes for each in bound]
        return MemoryLimit(self._memory_bytes, tuple(map(sum, zip(*held, strict=True))))

    def _unbind_training(self, keep: bool = True, lost: str | None = None) -> None:
        """Close the training executor. Learned values are undefined from then on if `lost` says why."""
        training, self._training = self._training, None
        if training is None:
            return
        executor, before = training.executor, self._undefined
        names = frozenset(tensor.name for tensor in learned(executor))
        self._undefined = Undefined(lost or "an iteration stopped halfway", names)
        try:
            if lost is None and not executor.halfway:
                if keep:
                    self._parameters.load(executor)
                self._undefined = before
        finally:
            executor.close()

    def _drop_failed(self) -> None:
        """Close the training executor if it failed. Of several processes, say which was lost."""
        if self._training is not None and self._training.executor.failed:
            self.peers.agree({})
            self._unbind_training()

    def _require_defined(self) -> None:
        """Raise ExecutionError if learned values are undefined."""
        self._drop_failed()
        if self._undefined is not None:
            raise self._undefined.error()

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Let `bind` make an executor if learned values are undefined: a checkpoint replaces them next."""
        self._drop_failed()
        undefined, self._undefined = self._undefined, None
        try:
            yield
        finally:
            self._undefined = self._undefined or undefined

    def _store(self, executor: Executor, newest: Executor | None = None) -> None:
        """Write the values of parameters, in which all processes agree."""
        self.peers.agree({"the values of parameters": self._parameters.store(executor, newest)})

    def _load(self) -> None:
        """Read learned values from the training executor, if there is one."""
        if (newest := self._newest()) is not None:
            self._parameters.load(newest)

    def _newest(self) -> Executor | None:
        """Return the training executor; None if there is none. Raises ExecutionError if it failed."""
        self._require_defined()
        return None if self._training is None else self._training.executor

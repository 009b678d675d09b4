"""Load, run and read a partitioned graph in the coordinates of whole tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Region
from ..dataflow.element_types import host_type
from ..dataflow.graph import Graph, Tensor
from ..errors import DataError, ExecutionError, ShapeError
from ..operators.kernels.kernel import Array
from ..programs.guarded_memory import guarded_memory
from ..programs.memory import plan_memory
from ..programs.program import PartitionedGraph, require_program
from ..support.checked_argument import array_of, is_number, require
from ..support.wording import alternatives
from .checkpoint_file import Form
from .choose_engine import engine_on
from .closeable import Closeable
from .engine import MakeEngine, Watch
from .memory_limit import MemoryLimit
from .nan_watch import first_nan
from .sample_shares import SampleShare, sample_shares
from .sole_use import SoleUse
from .timing import StepSeconds

WATCHDOG_SECONDS = 600.0

Lower = Callable[[Graph, int], PartitionedGraph]
"""Partitions a graph over a number of workers."""


class Executor(Closeable):
    """A partitioned graph in memory, ready to run.

    `memory` is the memory plan. `make_engine` makes the engine; without it, the processor's engine runs with
    `threads` threads. No worker may be without progress for `watchdog_seconds`. If `timed`, every instruction
    is measured. If `detect_nan`, NaN in a result is an error of the operation that made it. If
    `guard_buffers`, no buffers share memory, and writing outside of them is an error. If `note_arrivals`,
    gradients that are applied by themselves are so in the order in which they arrive, which the tensor
    `arrivals` then holds; otherwise that tensor is fed. If the workers need more than `memory_limit`,
    ExecutionError is raised before anything runs. Use the executor as a context manager, or call `close`.
    """

    def __init__(
        self,
        partitioned: PartitionedGraph,
        *,
        threads: int | None = None,
        watchdog_seconds: float = WATCHDOG_SECONDS,
        timed: bool = False,
        detect_nan: bool = False,
        guard_buffers: bool = False,
        note_arrivals: bool = False,
        memory_limit: MemoryLimit | None = None,
        make_engine: MakeEngine | None = None,
    ) -> None:
        require_program(partitioned)
        fits = (is_number(watchdog_seconds) or watchdog_seconds == math.inf) and watchdog_seconds > 0
        require(fits, watchdog_seconds, "watchdog_seconds", "a positive number of seconds", ExecutionError)
        self.partitioned = partitioned
        self.memory = plan_memory(partitioned)
        if guard_buffers:
            self.memory = guarded_memory(partitioned, self.memory)
        if memory_limit is not None:
            memory_limit.check(self.memory)
        self._tensors = {tensor.name: tensor for tensor in partitioned.graph.tensors}
        self._lasting = {tensor.index for tensor in partitioned.graph.tensors if tensor.role.persistent}
        self._lasting.update(partitioned.graph.outputs)
        self._seconds = StepSeconds(partitioned) if timed else None
        make = make_engine or engine_on((), threads=threads)
        watch = Watch(watchdog_seconds, self._seconds, detect_nan, guard_buffers, note_arrivals)
        self._engine = make(partitioned, self.memory, watch)
        self._use = SoleUse("this executor")
        self._running = False
        if memory_limit is not None:
            self._check(memory_limit)

    @property
    def held_bytes(self) -> tuple[int, ...]:
        """Return the memory of each worker: its arena and the workspace of its kernels."""
        return tuple(map(sum, zip(self.memory.arena_bytes, self._engine.workspace_bytes, strict=True)))

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes that crossed between workers in the last iteration."""
        return self._engine.fetched_bytes

    @property
    def process_bytes(self) -> tuple[tuple[int, ...], ...]:
        """Return the bytes that processes fetched from each other in the last iteration: `[source][reader]`.

        Those that the workers of one process fetched from each other are at `[process][process]`. All
        processes read this in the same order.
        """
        return self._engine.process_bytes

    @property
    def workspace_bytes_per_worker(self) -> int:
        """Return the most that one worker's kernels need besides its arena: scratch and kept values."""
        return max(self._engine.workspace_bytes, default=0)

    @property
    def peak_bytes_per_worker(self) -> int:
        """Return the most memory that any worker holds: its arena and the workspace of its kernels."""
        return max(self.held_bytes, default=0)

    @property
    def operator_seconds(self) -> dict[str, float]:
        """Return the seconds of the last iteration by operator, of all workers, largest first.

        They are those of the processor, or of the cards.

        Raises ExecutionError unless the executor was made with `timed=True`.
        """
        if self._seconds is None:
            raise ExecutionError("this executor does not measure instructions; make it with timed=True")
        return self._seconds.by_operator()

    @property
    def failed(self) -> bool:
        """Tell whether an iteration stopped halfway; the contents of tensors are then undefined."""
        return self._engine.failed

    @property
    def halfway(self) -> bool:
        """Tell whether an iteration stopped halfway, or has not ended, as a signal handler may find it."""
        return self._running or self.failed

    @property
    def complete(self) -> bool:
        """Tell whether this process runs all workers."""
        return len(self._engine.local) == self.partitioned.workers

    @property
    def has_first_worker(self) -> bool:
        """Tell whether this process runs the first worker."""
        return 0 in self._engine.local

    def has(self, name: str) -> bool:
        """Tell whether the graph has a tensor of this name; unneeded tensors are not in it."""
        return name in self._tensors

    def run(self, updates: bool = True) -> None:
        """Run one iteration. Raises ExecutionError that names worker, operation and iteration.

        If `updates` is False, skip the parameter updates (all but the last micro-batch). One thread of the
        process that made the executor uses it at a time: `run`, and what reads and writes tensors, raise
        ExecutionError at once in a forked process, while another thread uses it, and in a signal handler
        during an iteration.
        """
        with self._between_iterations():
            self._running = True
            try:
                self._engine.run(updates)
            finally:
                self._running = False

    def write(self, name: str, value: npt.ArrayLike) -> None:
        """Scatter a whole tensor to the workers that own parts of it.

        Raises ShapeError if the shape differs, DataError if values cannot be stored as the tensor's type, or
        are not an array.
        """
        array = array_of(value, name, DataError)
        tensor = self._fitting(name, (array.dtype, array.shape))
        with self._between_iterations():
            for worker, buffer, region in self._parts(tensor):
                self._engine.write(worker, buffer, array[_slices(region)])

    def write_parts(self, name: str, form: Form, parts: Callable[[list[Region]], Sequence[Array]]) -> None:
        """Write a tensor of a type and a shape, of which only the parts of local workers are needed.

        `parts` returns regions of it. Of equal regions it is asked for one.

        Raises ShapeError and DataError as `write`.
        """
        held = [part for part in self._parts(self._fitting(name, form)) if part[0] in self._engine.local]
        regions = list(dict.fromkeys(region for _, _, region in held))
        found = dict(zip(regions, parts(regions), strict=True))
        with self._between_iterations():
            for worker, buffer, region in held:
                self._engine.write(worker, buffer, found[region])

    def copy(self, name: str, source: Executor) -> None:
        """Write a tensor of another executor with the same workers.

        If they hold the same regions there, each copies its own. Otherwise the tensor is gathered.

        Raises ShapeError and DataError as `write`.
        """
        there = {(worker, region): buffer for worker, buffer, region in source._parts(source._find(name))}
        tensor = self._fitting(name, source.form(name))
        parts = list(self._parts(tensor))
        if not there.keys() >= {(worker, region) for worker, _, region in parts}:
            self.write(name, source.read(name))
            return
        with self._between_iterations(), source._between_iterations():
            for worker, buffer, region in parts:
                if worker in self._engine.local:
                    held = source._engine.read_own(worker, there[worker, region])
                    self._engine.write(worker, buffer, held.astype(host_type(tensor.dtype), copy=False))

    def read(self, name: str) -> Array:
        """Gather a whole tensor from the workers that own parts of it, as a new array.

        A tensor of float16 or bfloat16 is returned as float32.
        """
        tensor = self._find(name)
        array: Array = np.empty(tensor.shape, host_type(tensor.dtype))
        with self._between_iterations():
            for worker, buffer, region in self._parts(tensor):
                array[_slices(region)] = self._engine.read(worker, buffer)
        return array

    def fed_rows(self, name: str) -> list[tuple[int, int]]:
        """Return the rows of a tensor that workers of this process own, as intervals of dimension 0."""
        tensor = self._find(name)
        return [region[0] for worker, _, region in self._parts(tensor) if worker in self._engine.local]

    def read_in(self, name: str, process: int) -> Array | None:
        """Gather a whole tensor in one process, as `read` does; return None in the others.

        All processes call this in the same order.
        """
        homes = self.partitioned.homes[self._find(name).index]
        return self.read(name) if self._engine.bring(homes, process) else None

    def sample_shares(self, name: str, samples: int) -> list[SampleShare] | None:
        """Return which samples of a tensor are evaluated by whose process, see `sample_shares`."""
        return sample_shares(self.partitioned, self._find(name).index, samples)

    def has_share(self, share: SampleShare) -> bool:
        """Tell whether this process has the rows of a share."""
        return share.held[0] in self._engine.local

    def read_share(self, share: SampleShare) -> Array | None:
        """Return the rows of a share, valid until the next iteration; None if another process has them."""
        if not self.has_share(share):
            return None
        lower, upper = share.rows
        held: Array = self._engine.read_own(*share.held)[lower:upper]
        return held.astype(host_type(self._dtype_of(share)), copy=False)

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the contents that all processes give for a purpose, by process."""
        return self._engine.exchange(purpose, content)

    def form(self, name: str) -> Form:
        """Return the type and the shape of the array that `read` returns."""
        tensor = self._find(name)
        return np.dtype(host_type(tensor.dtype)), tensor.shape

    def require_numbers(self, names: Iterable[str]) -> None:
        """Raise ExecutionError naming the worker if a tensor holds NaN.

        Each process looks at the tensors of its own workers, and all raise the error.
        """
        said = self.exchange("look for errors", next(self._not_numbers(names), "").encode())
        found = next(filter(None, said), b"")
        if found:
            raise ExecutionError(
                f"{found.decode()} is not a number after iteration {self._engine.iterations - 1}; "
                "detect_nan=True (--detect-nan) stops at the operation that made it"
            )

    def close(self) -> None:
        """Release the engine's threads and memory.

        Another thread or a signal handler may call it during an iteration, which then ends with an error.
        """
        self._engine.close()

    @contextmanager
    def _between_iterations(self) -> Iterator[None]:
        """Keep other threads out. Raises ExecutionError if one is inside, or if an iteration runs."""
        with self._use:
            if self._running:
                raise ExecutionError(
                    "this executor runs an iteration; a signal handler may close it, but run, read and write "
                    "it only between iterations"
                )
            yield

    def _not_numbers(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the places of NaN in tensors of this process, one for each part."""
        for name in names:
            tensor = self._find(name)
            if host_type(tensor.dtype).kind != "f":
                continue
            for worker, buffer, region in self._parts(tensor):
                if worker in self._engine.local:
                    found = first_nan(name, self._engine.read_own(worker, buffer), region)
                    if found is not None:
                        yield f"worker {worker}: {found}"

    def _check(self, limit: MemoryLimit) -> None:
        """Check the memory limit after kernels are prepared and before the memory is touched."""
        try:
            limit.check(self.memory, self._engine.workspace_bytes)
        except ExecutionError:
            self.close()
            raise

    def _dtype_of(self, share: SampleShare) -> str:
        worker, buffer = share.held
        tensor = self.partitioned.programs[worker].buffers[buffer].tensor
        return self.partitioned.graph.tensors[tensor].dtype

    def _fitting(self, name: str, form: Form) -> Tensor:
        """Return a tensor that is to be written. Raises ShapeError or DataError if the form does not fit."""
        tensor, (dtype, shape) = self._find(name), form
        if shape != tensor.shape:
            raise ShapeError(f"tensor '{name}' has shape {tensor.shape}, but its array has shape {shape}")
        if not np.can_cast(dtype, host_type(tensor.dtype), "same_kind"):
            raise DataError(f"tensor '{name}' holds {tensor.dtype}, but its array holds {dtype}")
        return tensor

    def _find(self, name: str) -> Tensor:
        require(isinstance(name, str), name, "name", "the name of a tensor", DataError)
        tensor = self._tensors.get(name)
        if tensor is None:
            near = alternatives(name, self._tensors)
            raise DataError(f"graph '{self.partitioned.graph.name}' has no tensor '{name}'{near}")
        graph = self.partitioned.graph
        root = graph.tensors[graph.roots[tensor.index]]
        if not {tensor.index, root.index} & self._lasting:
            raise DataError(
                f"tensor '{name}' ({tensor.role}) does not outlive its last use in an iteration; make it an "
                "output of the graph"
            )
        return tensor

    def _parts(self, tensor: Tensor) -> Iterator[tuple[int, int, Region]]:
        """Yield each holder, its buffer, and the region of the whole tensor that it holds."""
        for worker, buffer in self.partitioned.homes[tensor.index]:
            yield worker, buffer, self.partitioned.programs[worker].buffers[buffer].region


def _slices(region: Region) -> tuple[slice, ...]:
    return tuple(slice(lower, upper) for lower, upper in region)

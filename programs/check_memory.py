"""Check memory: no value is overwritten while it is needed, and nothing can race.

The checker takes the offset of each buffer and the waits of each instruction. It knows nothing of how they
were found. A worker has two lanes, one of computations and one of transfers. An instruction comes after those
before it in its lane, after those that it waits for, and after everything that these come after. Any two
other instructions may run at the same time. The checker visits instructions in the order of the clock. For
every byte of every arena it keeps the buffer that the byte belongs to, who wrote it, and who has read it
since. It verifies that

* buffers lie inside their arenas, at multiples of their elements' size;
* buffers that live across iterations are disjoint, at start and end;
* every read finds all bytes of its buffer still there, and the write of each is before the read;
* every write is after all reads and writes of the previous value;
* an operation overwrites its own input only if it reads each element at the place that it writes;
* every lane is in the order of the clock, and waits point to earlier ticks, so no two instructions wait for
  each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ProgramError
from .program import Compute, Instruction, MultiFetch, PartitionedGraph, Program

Offsets = Sequence[Sequence[int]]
Waits = Sequence[Sequence[Sequence[tuple[int, int]]]]
Known = npt.NDArray[np.int64]
"""For each lane, the last of its instructions that is known to have finished."""

LANES = 2
"""The lanes of a worker: computations, then transfers."""

ADVICE = (
    "plan memory and waits again with plan_memory and schedule; if they came from there, report it as a "
    "defect of Tofu"
)

_NEVER = -1


def check_memory(
    program: PartitionedGraph, offsets: Offsets, arena_bytes: Sequence[int], waits: Waits
) -> None:
    """Raise ProgramError naming the first instruction that uses memory wrongly.

    `offsets[worker][buffer]` are bytes in the worker's arena; `waits[worker][index]` are (other worker, index
    of its instruction that has finished before).
    """
    try:
        _check(program, offsets, arena_bytes, waits)
    except ProgramError as error:
        raise ProgramError(f"{error}; {ADVICE}") from error


def _check(program: PartitionedGraph, offsets: Offsets, arena_bytes: Sequence[int], waits: Waits) -> None:
    counts = {
        "programs": len(program.programs),
        "lists of offsets": len(offsets),
        "arenas": len(arena_bytes),
        "lists of waits": len(waits),
    }
    for what, count in counts.items():
        if count != program.workers:
            raise ProgramError(f"the program has {program.workers} workers, but there are {count} {what}")
    walk = _Walk(program, offsets, arena_bytes, waits)
    for _, worker, index in sorted(
        (tick, worker, index) for worker, ticks in enumerate(walk.ticks) for index, tick in enumerate(ticks)
    ):
        walk.run(worker, index)
    walk.finish()


class _Arena:
    """One worker's memory, cut into ranges at the bounds of its buffers."""

    def __init__(self, spans: Sequence[tuple[int, int]], workers: int) -> None:
        edges = np.unique(np.array(spans, np.int64).reshape(-1))
        self.spans = [
            slice(int(start), int(stop))
            for start, stop in np.searchsorted(edges, np.array(spans, np.int64).reshape(-1, 2))
        ]
        self.holder = np.full(len(edges), _NEVER, np.int64)
        self.written = np.full((LANES, len(edges)), _NEVER, np.int64)
        self.read = np.full((LANES * workers, len(edges)), _NEVER, np.int64)


class _Walk:
    def __init__(
        self, program: PartitionedGraph, offsets: Offsets, arena_bytes: Sequence[int], waits: Waits
    ) -> None:
        self._program = program
        self._graph = program.graph
        self._waits = waits
        self.ticks = [_ticks(one) for one in program.programs]
        self._latest = [_NEVER] * (LANES * program.workers)
        self._arenas = [self._arena(w, offsets[w], arena_bytes[w]) for w in range(program.workers)]
        self._known = [
            np.full((len(one.instructions), LANES * program.workers), _NEVER, np.int64)
            for one in program.programs
        ]
        for worker, listed in enumerate(waits):
            if len(listed) != len(program.programs[worker].instructions):
                raise ProgramError(
                    f"worker {worker}: waits are listed for {len(listed)} instructions, but it has "
                    f"{len(program.programs[worker].instructions)}"
                )
        produced = {tensor for operation in self._graph.operations for tensor in operation.outputs}
        for tensor in self._graph.tensors:
            if tensor.index not in produced:
                for worker, buffer in program.homes[tensor.index]:
                    self._place(worker, buffer)

    def run(self, worker: int, index: int) -> None:
        """Check one instruction; all instructions before it have been checked."""
        instruction = self._program.programs[worker].instructions[index]
        name = self._graph.operations[instruction.operation].name
        here = f"operation {name!r}, instruction {index} of worker {worker}"
        known, lane = self._known[worker][index], _lane(worker, instruction)
        before = self._latest[lane]
        if before >= 0:
            known[:] = self._known[worker][before]
            known[lane] = before
        self._latest[lane] = index
        for other, last in self._waits[worker][index]:
            if not (0 <= other < len(self.ticks) and 0 <= last < len(self.ticks[other])):
                there = (
                    "missing" if not 0 <= other < len(self.ticks) else f"0 to {len(self.ticks[other]) - 1}"
                )
                raise ProgramError(
                    f"{here}: waits for instruction {last} of worker {other}, which does not exist; the "
                    f"instructions of that worker are {there}"
                )
            if self.ticks[other][last] >= self.ticks[worker][index]:
                raise ProgramError(
                    f"{here}: waits for instruction {last} of worker {other}, which is not earlier on the "
                    f"clock: the workers could deadlock"
                )
            np.maximum(known, self._known[other][last], out=known)
            awaited = _lane(other, self._program.programs[other].instructions[last])
            known[awaited] = max(int(known[awaited]), last)
        reads = list(_reads(worker, instruction))
        for owner, buffer in reads:
            self._check_read(owner, buffer, lane, known, here)
        self._check_overlaps(worker, instruction, reads, here)
        for buffer in _writes(instruction):
            self._check_write(worker, buffer, lane, known, here)
        for owner, buffer in reads:
            self._arenas[owner].read[lane, self._arenas[owner].spans[buffer]] = index
        for buffer in _writes(instruction):
            arena = self._arenas[worker]
            arena.holder[arena.spans[buffer]] = buffer
            arena.written[lane % LANES, arena.spans[buffer]] = index

    def finish(self) -> None:
        """Check that tensors that live across iterations, and those that a user reads, are still there."""
        kept = {tensor.index for tensor in self._graph.tensors if tensor.role.persistent}
        for tensor in sorted(kept | set(self._graph.outputs)):
            for worker, buffer in self._program.homes[tensor]:
                if not self._holds(worker, buffer):
                    raise ProgramError(
                        f"tensor {self._graph.tensors[tensor].name!r}: worker {worker} overwrites its part, "
                        f"buffer {buffer}, before the iteration ends"
                    )

    def _arena(self, worker: int, offsets: Sequence[int], size: int) -> _Arena:
        buffers = self._program.programs[worker].buffers
        if len(offsets) != len(buffers):
            raise ProgramError(f"worker {worker}: {len(offsets)} offsets for {len(buffers)} buffers")
        for buffer, offset in zip(buffers, offsets, strict=True):
            if buffer.nbytes and not 0 <= offset <= size - buffer.nbytes:
                raise ProgramError(
                    f"worker {worker}: buffer {buffer.index} of {self._tensor(worker, buffer.index)!r} lies "
                    f"at {offset} to {offset + buffer.nbytes}, outside its arena of {size} bytes"
                )
            itemsize = self._graph.tensors[buffer.tensor].itemsize
            if buffer.nbytes and offset % itemsize:
                raise ProgramError(
                    f"worker {worker}: buffer {buffer.index} of {self._tensor(worker, buffer.index)!r} lies "
                    f"at {offset}, which is not a multiple of its elements' {itemsize} bytes"
                )
        spans = [(o, o + b.nbytes) for o, b in zip(offsets, buffers, strict=True)]
        return _Arena(spans, self._program.workers)

    def _place(self, worker: int, buffer: int) -> None:
        """Put a part of a tensor into memory before the iteration starts."""
        arena = self._arenas[worker]
        there = set(arena.holder[arena.spans[buffer]].tolist()) - {_NEVER, buffer}
        if there:
            raise ProgramError(
                f"worker {worker}: its parts of {self._tensor(worker, buffer)!r} and "
                f"{self._tensor(worker, min(there))!r} share memory from the start"
            )
        arena.holder[arena.spans[buffer]] = buffer

    def _check_read(self, owner: int, buffer: int, lane: int, known: Known, here: str) -> None:
        arena = self._arenas[owner]
        span = arena.spans[buffer]
        if not self._holds(owner, buffer):
            raise ProgramError(
                f"{here}: reads {self._tensor(owner, buffer)!r} from buffer {buffer} of worker {owner}, "
                f"but {self._intruder(owner, buffer)}"
            )
        if self._unknown_writer(owner, span, lane, known):
            raise ProgramError(
                f"{here}: may read {self._tensor(owner, buffer)!r} from worker {owner} before it is written; "
                f"a wait is missing"
            )

    def _check_write(self, worker: int, buffer: int, lane: int, known: Known, here: str) -> None:
        arena = self._arenas[worker]
        span = arena.spans[buffer]
        last = arena.read[:, span].max(axis=1, initial=_NEVER)
        last[lane] = _NEVER
        if (last > known).any():
            reader = int((last > known).argmax()) // LANES
            raise ProgramError(
                f"{here}: may write buffer {buffer} while worker {reader} still reads that memory; a wait is "
                f"missing"
            )
        if self._unknown_writer(worker, span, lane, known):
            raise ProgramError(
                f"{here}: may write buffer {buffer} while another instruction of the worker still writes "
                f"that memory; a wait is missing"
            )

    def _unknown_writer(self, owner: int, span: slice, lane: int, known: Known) -> bool:
        """Tell whether an owner's lane, other than `lane`, may still write the memory."""
        written = self._arenas[owner].written[:, span]
        return any(
            own != lane and bool((written[own % LANES] > known[own]).any())
            for own in (LANES * owner, LANES * owner + 1)
        )

    def _check_overlaps(
        self, worker: int, instruction: Instruction, reads: Sequence[tuple[int, int]], here: str
    ) -> None:
        """Check that an instruction's outputs overlap nothing that it touches, updates in place excepted."""
        written = _writes(instruction)
        for number, buffer in enumerate(written):
            for other in written[:number]:
                if self._overlap(worker, buffer, other):
                    raise ProgramError(
                        f"{here}: its outputs {self._tensor(worker, other)!r} and "
                        f"{self._tensor(worker, buffer)!r} share memory, buffers {other} and {buffer}"
                    )
            for owner, source in reads:
                if owner != worker or not self._overlap(worker, buffer, source):
                    continue
                if not isinstance(instruction, Compute) or not self._in_place(
                    worker, instruction, buffer, source
                ):
                    raise ProgramError(
                        f"{here}: writes {self._tensor(worker, buffer)!r} over its input "
                        f"{self._tensor(worker, source)!r}, which it still reads: buffers {buffer} and "
                        f"{source}"
                    )

    def _in_place(self, worker: int, compute: Compute, output: int, source: int) -> bool:
        """Tell whether an output may overwrite this input: each element is read only at the place written."""
        buffers = self._program.programs[worker].buffers
        bound = self._graph.operations[compute.operation].bound
        names = bound.description.tensor_names
        readers = {n for n, buffer in zip(names, compute.inputs, strict=True) if buffer == source}
        dtypes = {self._graph.tensors[buffers[b].tensor].dtype for b in (output, source)}
        spans = self._arenas[worker].spans
        return (
            readers <= set(bound.in_place)
            and len(dtypes) == 1
            and buffers[output].region == buffers[source].region
            and spans[output] == spans[source]
        )

    def _overlap(self, worker: int, first: int, second: int) -> bool:
        a, b = self._arenas[worker].spans[first], self._arenas[worker].spans[second]
        return bool(max(a.start, b.start) < min(a.stop, b.stop))

    def _holds(self, worker: int, buffer: int) -> bool:
        arena = self._arenas[worker]
        return bool((arena.holder[arena.spans[buffer]] == buffer).all())

    def _intruder(self, worker: int, buffer: int) -> str:
        """Say which buffer lies where this one should."""
        arena = self._arenas[worker]
        found = next(there for there in arena.holder[arena.spans[buffer]].tolist() if there != buffer)
        return (
            "nothing was written there" if found == _NEVER else f"buffer {found} has overwritten that memory"
        )

    def _tensor(self, worker: int, buffer: int) -> str:
        return self._graph.tensors[self._program.programs[worker].buffers[buffer].tensor].name


def _ticks(program: Program) -> list[int]:
    """Return every instruction's tick. Raises ProgramError if a list is not in the order of the clock."""
    ticks = [instruction.tick for instruction in program.instructions]
    for number in range(1, len(ticks)):
        if ticks[number] < ticks[number - 1]:
            raise ProgramError(
                f"worker {program.worker}: instruction {number} has tick {ticks[number]}, after one with "
                f"tick {ticks[number - 1]}"
            )
    return ticks


def _lane(worker: int, instruction: Instruction) -> int:
    return LANES * worker + (not isinstance(instruction, Compute))


def _reads(worker: int, instruction: Instruction) -> Iterator[tuple[int, int]]:
    match instruction:
        case Compute(inputs=inputs):
            yield from ((worker, buffer) for buffer in inputs if buffer is not None)
        case MultiFetch(pieces=pieces):
            yield from ((piece.worker, piece.buffer) for piece in pieces)
        case _:
            yield from ((piece.worker, piece.buffer) for part in instruction.parts for piece in part)


def _writes(instruction: Instruction) -> tuple[int, ...]:
    return instruction.outputs if isinstance(instruction, Compute) else (instruction.target,)

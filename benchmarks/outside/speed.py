"""The kernels that Tofu derives against PyTorch, in 32 bits, on one thread, at sizes that are used.

Both are prepared once and then take turns. A gradient is timed alone, after one forward pass. Seconds are
those of the processor, so that other work on the machine counts less.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import process_time

from threadpoolctl import threadpool_limits

from tofu.dataflow.graph import Phase

from .apart import Report, Row
from .distance import distance
from .outsider import Outsider
from .peer import torch
from .program import Prepared, Program
from .rival import Rival

Run = Callable[[], object]

GUARD_SECONDS = 20.0
"""A kernel that takes longer is not run again."""
RUNS = (3, 31)
"""The least and the largest number of turns; as many are taken as there is time for."""
TURN_SECONDS = 2.0


def race(outsider: Outsider, seed: int, report: Report) -> None:
    """Report medians of both passes and the memory of Tofu's. Raises TofuError."""
    torch.set_num_threads(1)
    tensors = outsider.tensors(outsider.large, seed, "float32")
    with threadpool_limits(1):
        started = process_time()
        program = Program.of(outsider, outsider.large, "float32")
        program.write(tensors)
        rival = Rival(outsider, outsider.large, tensors)
        report({"doing": "preparing forward"})
        forward = program.prepare(Phase.FORWARD)
        report({"doing": "forward"})
        row = timed(forward.run, rival.forward)
        row["wrong"] = distance(program.outputs, rival.forward())
        report({"forward": row | memory(forward, program)})
        if program.backward:
            report({"gradient": backward(outsider, program, rival, seed, report)})
    report({"seconds": process_time() - started})


def backward(outsider: Outsider, program: Program, rival: Rival, seed: int, report: Report) -> Row:
    """Return all gradients against `torch.autograd.grad` alone."""
    heads = program.draw_heads(seed)
    rival.record()
    report({"doing": "preparing the gradient"})
    prepared = program.prepare(Phase.BACKWARD)
    report({"doing": "the gradient"})
    row = timed(prepared.run, lambda: rival.gradient(heads))
    expected = rival.gradient(heads)
    known = {name: ours for name in outsider.learned if (ours := program.gradient(name)) is not None}
    row["wrong"] = distance(known.values(), [expected[name] for name in known])
    return row | memory(prepared, program)


def memory(prepared: Prepared, program: Program) -> Row:
    """Return the largest temporary, and how often it has the size of all arguments and outputs."""
    used = prepared.temporary_bytes
    return {"temporary_bytes": used, "temporary": used / max(program.visible_bytes, 1)}


def timed(ours: Run, theirs: Run) -> Row:
    """Medians in milliseconds and of the ratios of turns; one that takes very long is run once alone."""
    first = seconds_of(ours)
    if first > GUARD_SECONDS:
        return {"tofu_ms": 1e3 * first, "torch_ms": 1e3 * seconds_of(theirs), "runs": 1} | {"slow": True}
    turn = seconds_of(ours) + max(seconds_of(theirs), seconds_of(theirs))
    runs = int(min(max(TURN_SECONDS / turn, RUNS[0]), RUNS[1]))
    times = [(seconds_of(ours), seconds_of(theirs)) for _ in range(runs)]
    return {
        "tofu_ms": 1e3 * statistics.median(one for one, _ in times),
        "torch_ms": 1e3 * statistics.median(other for _, other in times),
        "ratio": statistics.median(one / other for one, other in times),
        "runs": runs,
    }


def seconds_of(run: Run) -> float:
    started = process_time()
    run()
    return process_time() - started

"""Whether an operator computes, in 64 bits and on small sizes, what the interpreter and PyTorch compute.

Forward and gradients are compared, and every claim of the analysis is audited for 2, 3 and 4 workers with the
kernels that Tofu derives: parts make the whole.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import tofu
from tofu.analyzer.audit.finding import Verdict
from tofu.dataflow.graph import Phase

from .apart import Report, Row
from .distance import distance
from .outsider import Array, Outsider
from .program import Program
from .rival import Rival

WORKERS = (2, 3, 4)


def check(outsider: Outsider, seed: int, report: Report) -> None:
    """Report how far results are apart, then what the audit finds. Raises TofuError."""
    sizes = outsider.small
    tensors = outsider.tensors(sizes, seed, "float64")
    bound = outsider.operator.bind(outsider.shapes(sizes), **outsider.attributes(sizes))
    computed = bound.compute(tensors)
    rival = Rival(outsider, sizes, tensors)
    report(
        {
            "interpreter": distance(computed, bound.interpret(tensors)),
            "forward": distance(computed, rival.forward()),
        }
    )
    program = Program.of(outsider, sizes, "float64")
    program.write(tensors)
    report({"doing": "the gradient"})
    report({"gradient": gradient_distance(outsider, program, rival, seed)})
    report({"doing": "the audit"})
    report(audited(outsider))


def gradient_distance(outsider: Outsider, program: Program, rival: Rival, seed: int) -> float:
    """Return how far gradients are apart for random gradients of the outputs."""
    heads = program.draw_heads(seed)
    program.prepare(Phase.FORWARD).run()
    program.prepare(Phase.BACKWARD).run()
    rival.record()
    expected = rival.gradient(heads)
    pairs = [_pair(program, name, value) for name, value in expected.items()]
    return distance([ours for ours, _ in pairs], [theirs for _, theirs in pairs])


def _pair(program: Program, name: str, value: Array | None) -> tuple[Array, Array]:
    """Tofu's gradient of an argument and PyTorch's; one that is left out is zero."""
    ours = program.gradient(name)
    nothing = np.zeros_like(program.buffers[program.places[name]])
    return nothing if ours is None else ours, nothing if value is None else np.asarray(value)


def audited(outsider: Outsider) -> Row:
    """Return the number of claims by verdict, and how long it took to try them."""
    shapes, attributes = outsider.shapes(outsider.small), outsider.attributes(outsider.small)
    data = {name: kind.maker(outsider.small) for name, kind in outsider.kinds.items()}
    started = perf_counter()
    audit = tofu.audit(outsider.operator, shapes=shapes, attributes=attributes, workers=WORKERS, data=data)
    counts = {verdict.value: count for verdict, count in audit.counts.items()}
    refuted = [f"{found.operator}: {found.check} {found.variable or ''}" for found in audit.refuted]
    missing = {found.reason for found in audit.findings if found.verdict is Verdict.NOT_APPLICABLE}
    return {
        "claims": counts,
        "refuted": refuted,
        "not_applicable": sorted(missing),
        "audit_seconds": perf_counter() - started,
    }

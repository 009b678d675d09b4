"""How long the analysis of a description takes, and binding an analysed one to new shapes.

    python -m benchmarks.analysis

Over every stage of every library operator and of their gradients, at the operators' example shapes. An
analysis starts with empty caches, those of SymPy too; a binding is to shapes not seen before, the median of
several. Seconds are those of the process, so that other work on the machine does not count; an analysis does
not pay for collecting the garbage of all others.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

from sympy.core.cache import clear_cache

from benchmarks.machine import described
from benchmarks.record import keep
from tofu import operators
from tofu.analyzer.bind import analysis
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.indices.region import Shape
from tofu.errors import OperatorError, ShapeError
from tofu.operators.operator import Operator
from tofu.operators.stages.stage import Stage
from tofu.tdl import parse
from tofu.tdl.ast import Description

Shapes = dict[str, Shape]
BINDINGS = 20
FIRST = "def first(a, b):\n    return lambda i: Sum(lambda k: a[i + k] * b[k])"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the analysis of the operator library.")
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    first = parse(FIRST)
    started = process_time()
    analyze(first)
    cold = process_time() - started
    found = dict(stages())
    analyses = {name: analysis_seconds(description) for name, (description, _) in found.items()}
    bindings = [median(seconds) for part in found.values() if (seconds := list(binding_seconds(*part)))]
    slowest = max(analyses, key=analyses.__getitem__)
    result = {
        **described(),
        "descriptions": len(found),
        "first analysis of a process, milliseconds": round(1e3 * cold, 1),
        "analysis, milliseconds": _spread(list(analyses.values()), 1e3),
        "slowest analysis": slowest,
        "descriptions bound": len(bindings),
        "binding, microseconds": _spread(bindings, 1e6),
    }
    print(keep(result, arguments.save))


def _spread(seconds: list[float], unit: float) -> dict[str, float]:
    ordered = sorted(seconds)
    high = ordered[int(0.99 * (len(ordered) - 1))]
    return {
        "median": round(unit * median(ordered), 2),
        "99 of 100 below": round(unit * high, 2),
        "max": round(unit * ordered[-1], 2),
    }


def stages() -> Iterator[tuple[str, tuple[Description, Shapes]]]:
    """Yield every distinct description of the library and its gradients, with example shapes."""
    for name in operators.names():
        operator = operators.get(name)
        if operator.example is not None:
            yield from _stages_of(operator)


def _stages_of(operator: Operator) -> Iterator[tuple[str, tuple[Description, Shapes]]]:
    assert operator.example is not None
    attributes = dict(operator.example.attributes)
    names = (*operator.arguments(attributes), *operator.auxiliary)
    inferred = operator.infer(attributes, {name: operator.example.shapes.get(name) for name in names})
    known: Shapes = dict.fromkeys(operator.seeds, (1,))
    known |= {name: tuple(e or 0 for e in shape) for name, shape in inferred.items() if shape is not None}
    for stage in operator.stages(attributes, known):
        bound = stage.bind(known)
        produced = dict(zip(stage.produces, bound.output_shapes, strict=True))
        yield stage.name, (stage.description, {tensor: known[tensor] for tensor in stage.inputs})
        heads = {f"grad_{k}": shape for k, shape in enumerate(bound.output_shapes)}
        results = {f"output_{k}": shape for k, shape in enumerate(bound.output_shapes)}
        for adjoint in _adjoints(stage):
            shapes = {**known, **heads, **results}
            yield adjoint.name, (adjoint.description, {tensor: shapes[tensor] for tensor in adjoint.inputs})
        known |= produced


def _adjoints(stage: Stage) -> Iterator[Stage]:
    for tensor in stage.inputs:
        try:
            yield from stage.adjoint(tensor)
        except OperatorError:
            continue


def analysis_seconds(description: Description) -> float:
    clear_cache()
    analysis._analyze.cache_clear()
    gc.disable()
    started = process_time()
    analyze(description)
    seconds = process_time() - started
    gc.enable()
    return seconds


def binding_seconds(description: Description, shapes: Shapes) -> Iterator[float]:
    """Seconds of bindings to shapes not seen before; every first dimension grows by the same factor."""
    known = analyze(description)
    for factor in range(2, 2 + BINDINGS):
        grown = {name: (factor * shape[0], *shape[1:]) if shape else shape for name, shape in shapes.items()}
        started = process_time()
        try:
            known.bind(grown)
        except ShapeError:
            continue
        yield process_time() - started


if __name__ == "__main__":
    main()

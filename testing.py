"""Assertions for the tests of users' own operators and kernels, and on the sharding rules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import TofuError
from .operators.audit import Audit, audit
from .operators.operator import Operator
from .partitioner.sharding_audit.survey import (
    ShardingSurvey,
    ShardingVerdict,
    Workers,
    judged,
    mesh_sizes,
    survey,
)
from .partitioner.translation.dtensor import as_placement
from .partitioner.translation.placements import Placements
from .tdl.ast import Description

__all__ = ["assert_partitionable", "assert_sharding", "survey_shardings"]


def assert_partitionable(
    operator: Operator | Description,
    kernel: Callable[..., Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> Audit:
    """Audit an operator, and a kernel if there is one; fail with the report if anything is refuted.

        def test_my_kernel():
            tofu.testing.assert_partitionable(conv1d, kernel=my_kernel, shapes={"data": (4, 3, 12), ...})

    Takes what `tofu.audit` takes. Raises AssertionError, and what `tofu.audit` raises.
    """
    __tracebackhide__ = True
    try:
        report = audit(operator, kernel, shapes, **options)
    except TofuError as mistake:
        raise mistake.with_traceback(None) from None
    if report.refuted:
        raise AssertionError(str(report))
    return report


def assert_sharding(
    torch_op: Callable[..., Any],
    placements: Sequence[Any],
    inputs: Sequence[Any],
    workers: Workers = 2,
    *,
    gradients: bool = False,
) -> ShardingVerdict:
    """Hold DTensor's rule for an operator of PyTorch against its description and against plain PyTorch.

        def test_products():
            tofu.testing.assert_sharding(torch.mm, [Shard(1), Shard(0)], [a, b])

    `placements` say how each input lies on the `workers`, in the words of PyTorch or of `tofu.plans`. On a
    mesh, such as `workers=(2, 2)`, each input has a placement for each axis. The operator runs on DTensors,
    with a thread for each worker. With `gradients` so does its backward pass, and the rule is that of the
    gradients of inputs. Fails if the numbers are wrong, or if DTensor moves anything or refuses and the
    description needs neither.

    Raises AssertionError with the verdict, TofuError without PyTorch, for what is not a placement, and if
    DTensor sends parts from rank to rank, and GraphError for an operator without a description.
    """
    __tracebackhide__ = True
    verdict = judged(torch_op, _known(placements, inputs, workers), inputs, workers, gradients)
    if verdict.kind == "unjudged":
        raise TofuError(str(verdict))
    if verdict.kind in ("unsound", "missing"):
        raise AssertionError(str(verdict))
    return verdict


def _known(placements: Any, inputs: Any, workers: Workers) -> list[Placements]:
    """Return a placement of each input for each axis. Raises TofuError for what is not that."""
    for name, given in (("placements", placements), ("inputs", inputs)):
        if not isinstance(given, tuple | list):
            raise TofuError(f"the {name} are {str(given)[:80]}; give a list")
    axes = len(mesh_sizes(workers))
    on_mesh = isinstance(workers, tuple | list)
    found = [_axes(each if on_mesh else (each,), axes) for each in placements]
    if None in found or len(found) != len(inputs):
        each = f"each of the {axes} axes of the mesh, for each input" if on_mesh else "each"
        raise TofuError(
            f"{len(found)} placements for {len(inputs)} inputs: {str(list(placements))[:80]}; give "
            f"Shard(dim), Replicate() or Partial() for {each}"
        )
    return [each for each in found if each is not None]


def _axes(placements: Any, axes: int) -> Placements | None:
    """Return a placement for each axis; None for what is not that."""
    if not isinstance(placements, tuple | list) or len(placements) != axes:
        return None
    found = tuple(map(as_placement, placements))
    return None if None in found else found  # type: ignore[return-value]  # there is no None


def survey_shardings(
    torch_op: Callable[..., Any], inputs: Sequence[Any], workers: Workers = 2, *, gradients: bool = False
) -> ShardingSurvey:
    """Judge DTensor's rule for every way in which the inputs of an operator may lie on workers.

    Along each axis inputs lie whole, along each dimension that the workers divide, and in terms of a sum. On
    a mesh of two axes that is the square of their number for one. The result counts and lists rules that are
    unsound, and rules that are missing. Takes and raises what `assert_sharding` does, but for AssertionError.
    """
    return survey(torch_op, inputs, workers, gradients)

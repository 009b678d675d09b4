"""Assertions for the tests of users' own operators and kernels, and on the sharding rules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import TofuError
from .operators.audit import Audit, audit
from .operators.operator import Operator
from .partitioner.sharding_audit.survey import ShardingSurvey, ShardingVerdict, judged, survey
from .partitioner.translation.dtensor import as_placement
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
    torch_op: Callable[..., Any], placements: Sequence[Any], inputs: Sequence[Any], workers: int = 2
) -> ShardingVerdict:
    """Hold DTensor's rule for an operator of PyTorch against its description and against plain PyTorch.

        def test_products():
            tofu.testing.assert_sharding(torch.mm, [Shard(1), Shard(0)], [a, b])

    `placements` say how each input lies along one axis of `workers`, in the words of PyTorch or of
    `tofu.plans`. The operator runs on DTensors, with a thread for each worker. Fails if the numbers are
    wrong, or if DTensor moves inputs or refuses them and the description needs neither.

    Raises AssertionError with the verdict, TofuError without PyTorch or for what is not a placement, and
    GraphError for an operator without a description.
    """
    __tracebackhide__ = True
    found = [as_placement(each) for each in placements]
    strange = next((each for each, place in zip(placements, found, strict=True) if place is None), None)
    if strange is not None or len(found) != len(inputs):
        raise TofuError(
            f"{len(found)} placements for {len(inputs)} inputs: {str(list(placements))[:80]}; give "
            "Shard(dim), Replicate() or Partial() for each"
        )
    verdict = judged(torch_op, [each for each in found if each is not None], inputs, workers)
    if verdict.kind in ("unsound", "missing"):
        raise AssertionError(str(verdict))
    return verdict


def survey_shardings(torch_op: Callable[..., Any], inputs: Sequence[Any], workers: int = 2) -> ShardingSurvey:
    """Judge DTensor's rule for every way in which the inputs of an operator may lie along one axis.

    Inputs lie whole, along each dimension that `workers` divides, and in terms of a sum. The result counts
    and lists rules that are unsound, and rules that are missing. Raises as `assert_sharding`, but for
    AssertionError.
    """
    return survey(torch_op, inputs, workers)

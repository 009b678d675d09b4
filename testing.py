"""Assertions for the tests of users' own operators and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import TofuError
from .operators.audit import Audit, audit
from .operators.operator import Operator
from .tdl.ast import Description

__all__ = ["assert_partitionable"]


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

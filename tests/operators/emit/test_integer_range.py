"""Kernels compute no integer that does not fit into 64 bits; another kernel has those that may not fit."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators.cuda import compute
from tofu.operators.cuda.launch.workspace import DeviceWorkspace
from tofu.operators.emit.integer_range import fits_64_bits
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.native import generated
from tofu.operators.stages.stage import derived

from ..native.cases import called

N = 8


def call_of(value: str) -> KernelCall:
    """Return a call of a description with this value, of an element `a[i]`, where `i` is below `N`."""
    description = tdl.parse(f"def f(a):\n    return lambda i=a.shape[0]: {value}")
    return called(derived(description).bind({"a": (N,)}), {}, "float64", loose=False).call


FIT = (
    *(
        "a[i] + 2**62",
        "a[i] + 9223372036854775807",
        "a[i] * 1e300",
        "exp(a[i]) + i * 2**59",
        "a[i] // 3 + i % 3",
    ),
    *("a[i] + Sum(lambda k=8: k * 2**57)", "a[i] * Prod(lambda k=8: k)", "a[i] + 2**100.0", "a[i] ** 63"),
    *("where(i < 2**60, a[i], 0)", "a[i] + maximum(2**62, i)", "a[i] + 2**64 // 1.0 if i < 3 else a[i]"),
)
DO_NOT_FIT = (
    *("a[i] + 2**63", "a[i] * 10**38", "where(i * 2**61 < 4, a[i], 2)", "a[i] % (2**62 * 2)"),
    *("a[i] + Sum(lambda k=8: k + 2**60)", "a[i] * Prod(lambda k=8: k + 1000)", "a[i] + square(2**32)"),
    *("pad(a[i - 4], 2**63)", "a[i] if i < 2**63 else 0", "a[i] + -(2**63 + i)", "a[i] + 2**60 * a.shape[0]"),
)


@pytest.mark.parametrize("value", FIT)
def test_integers_that_fit(value: str) -> None:
    assert fits_64_bits(call_of(value))


@pytest.mark.parametrize("value", DO_NOT_FIT)
def test_integers_that_do_not_fit(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of(value)
    assert not fits_64_bits(call)
    monkeypatch.setattr(generated, "is_asked", lambda: True)
    assert generated.generated(call) is None
    with pytest.raises(OperatorError, match="f: an integer may not fit 64 bits; write its factors as floats"):
        compute.derived(call, DeviceWorkspace())

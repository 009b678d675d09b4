"""A kernel that a user attaches to a description."""

from collections.abc import Callable

import numpy as np
import pytest

import tofu
from tofu.errors import OperatorError
from tofu.operators.kernels.kernel import KernelCall

TEXT = """
def squared(data):
    total = lambda i: Sum(lambda k: data[i, k])
    return lambda i: total[i] ** 2
"""


def _calls(scale: float) -> tuple[list[KernelCall], Callable[[KernelCall], Callable[[], None]]]:
    seen: list[KernelCall] = []

    def kernel(call: KernelCall) -> Callable[[], None]:
        seen.append(call)

        def run() -> None:
            np.multiply(call.inputs["total"], call.inputs["total"], out=call.outputs[0])
            call.outputs[0][...] *= scale

        return run

    return seen, kernel


def test_it_computes_the_last_stage() -> None:
    seen, kernel = _calls(1)
    operator = tofu.parse(TEXT, kernel=kernel)
    (result,) = operator.bind({"data": (2, 3)}).compute({"data": np.arange(6.0).reshape(2, 3)})
    assert result.tolist() == [9, 144]
    assert len(seen) == 1
    assert operator != tofu.parse(TEXT)


def test_the_audit_holds_it_against_the_text() -> None:
    right, wrong = _calls(1)[1], _calls(2)[1]
    assert not tofu.audit(tofu.parse(TEXT, kernel=right), shapes={"data": (4, 3)}).refuted
    assert tofu.audit(tofu.parse(TEXT, kernel=wrong), shapes={"data": (4, 3)}).refuted


def test_files_take_one_too(tmp_path) -> None:
    path = tmp_path / "squared.tdl"
    path.write_text(TEXT)
    seen, kernel = _calls(1)
    tofu.load(path, kernel=kernel).bind({"data": (2, 3)}).compute({"data": np.ones((2, 3))})
    assert len(seen) == 1


def test_decorated_functions_take_one_too() -> None:
    seen, kernel = _calls(1)

    @tofu.op(kernel=kernel)
    def squared(total):
        return lambda i: total[i] ** 2

    assert squared != tofu.parse(str(squared))
    squared.bind({"total": (2,)}).compute({"total": np.ones(2)})
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (3, "is 3, not a function"),
        (lambda data, weight: data, r"<lambda>\(data, weight\), is not .*can be audited"),
        (lambda: None, r"<lambda>\(\), is not a function of one KernelCall"),
    ],
)
def test_what_cannot_be_a_kernel_is_refused(kernel, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        tofu.parse(TEXT, kernel=kernel)


def test_a_kernel_that_prepares_nothing_to_run() -> None:
    squared = tofu.parse(TEXT, kernel=lambda call: None)
    message = "the kernel of 'squared' returns NoneType, not the function that fills call.outputs"
    with pytest.raises(OperatorError, match=message):
        squared.bind({"data": (2, 3)}).compute({"data": np.ones((2, 3))})
    assert message in str(tofu.audit(squared, shapes={"data": (4, 3)}))
    single = tofu.parse("def squared(total):\n    return lambda i: total[i] ** 2")
    assert message in str(tofu.audit(single, lambda call: None, {"total": (4,)}))

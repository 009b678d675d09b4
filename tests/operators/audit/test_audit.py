"""The reports of `tofu.audit`, its counterexamples, and its refusals."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tofu
from tofu import tdl
from tofu.analyzer.audit.finding import Check, Grade, Verdict
from tofu.errors import ShapeError
from tofu.operators.audit import Audit

CONV = tofu.parse(
    "def conv1d(data, filters):\n"
    "    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])"
)
SHAPES = {"data": (3, 2, 7), "filters": (2, 3, 3)}
MEAN = tofu.parse("def mean(data):\n    return lambda j: Sum(lambda i: data[i, j]) / data.shape[0]")


def checks(report: Audit) -> Counter[tuple[Check, Verdict]]:
    return Counter((finding.check, finding.verdict) for finding in report.findings)


def local_mean(data: Any) -> Any:
    return data.mean(axis=0)


def test_claims_about_a_convolution_and_its_gradients_are_proven() -> None:
    report = tofu.audit(CONV, shapes=SHAPES)
    assert not report.refuted
    assert set(report.grades) == {"conv1d", "conv1d_grad_data", "conv1d_grad_filters"}
    assert set(report.grades.values()) == {Grade.EXACT}
    found = checks(report)
    assert found[Check.REGIONS, Verdict.PROVEN] == 5 * 3
    assert found[Check.REDUCE, Verdict.PROVEN] == 2 + 2 + 2
    assert found[Check.WHOLE, Verdict.TRIED] == 3


def test_claims_about_divisors_whose_sign_depends_on_shapes_hold() -> None:
    """Patches inside an image, in the order of `p`, which a difference of extents divides."""
    patches = tofu.parse(
        "def patches(x):\n"
        "    return lambda k=9, p=(x.shape[0] - 2) * (x.shape[1] - 2): x[\n"
        "        p // (x.shape[1] - 2) + k // 3, p % (x.shape[1] - 2) + k % 3\n"
        "    ]"
    )
    report = tofu.audit(patches, shapes={"x": (4, 5)})
    assert not report.refuted
    assert {each.variable for each in patches.bind({"x": (4, 5)}).strategies} == {"k", "p"}


def test_counterexample_is_the_smallest_and_complete() -> None:
    report = tofu.audit(MEAN, local_mean, {"data": (7, 4)})
    (finding,) = report.refuted
    assert (finding.check, finding.variable) == (Check.REPLAY, "i")
    example = finding.counterexample
    assert example is not None
    assert (example.shapes, example.workers, example.place) == ({"data": (2, 1)}, 2, (0,))
    assert example.expected is not None
    assert example.found == pytest.approx(2 * example.expected), "two means are added"
    assert "expected" in str(report)
    assert "C: replay" in str(report)


def test_padding_is_the_affair_of_a_function_that_sees_local_arrays_alone() -> None:
    same = tofu.parse(
        "def same(data, filters):\n"
        "    return lambda x=data.shape[0]: Sum(lambda d: pad(data[x + d - 1], 0) * filters[d])"
    )
    report = tofu.audit(
        same, lambda data, filters: np.correlate(data, filters, "same"), {"data": (8,), "filters": (3,)}
    )
    assert not report.refuted
    (finding,) = [f for f in report.findings if f.check is Check.REPLAY and f.variable == "x"]
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert "a function cannot know where its part lies" in finding.reason


def test_gradients_that_cannot_be_derived_are_reported() -> None:
    operator = tofu.parse("def apply(data):\n    f = Opaque()\n    return lambda b, i: f(data[b, :])[i]")
    report = tofu.audit(operator, shapes={"data": (3, 2)})
    (gradient,) = [finding for finding in report.findings if finding.check is Check.GRADIENT]
    assert gradient.operator == "apply_grad_data"
    assert gradient.verdict is Verdict.NOT_APPLICABLE
    assert "opaque function" in gradient.reason


def test_opaque_operators_keep_what_can_be_proven() -> None:
    operator = tofu.parse(
        "def batch_cholesky(batch):\n"
        "    cholesky = Opaque()\n"
        "    return lambda b, i, j: cholesky(batch[b, :, :])[i, j]"
    )
    report = tofu.audit(operator, np.linalg.cholesky, {"batch": (3, 2, 2)})
    found = checks(report)
    assert found[Check.REGIONS, Verdict.PROVEN] == 1
    assert found[Check.CONCAT, Verdict.PROVEN] == 1
    assert found[Check.WHOLE, Verdict.NOT_APPLICABLE] == 1


def test_stages_are_audited_each_and_as_one_with_a_kernel() -> None:
    operator = tofu.parse(
        "def linear(data, weight, bias):\n"
        "    product = lambda n, o: Sum(lambda k: data[n, k] * weight[o, k])\n"
        "    return lambda n, o: product[n, o] + bias[o]"
    )
    shapes = {"data": (3, 4), "weight": (2, 4), "bias": (2,)}
    assert {"linear_product", "linear"} <= {
        finding.operator for finding in tofu.audit(operator, shapes=shapes).findings
    }
    right = tofu.audit(operator, lambda data, weight, bias: data @ weight.T + bias, shapes)
    assert not right.refuted
    leaky = tofu.audit(operator, lambda data, weight, bias: data @ weight.T + bias + 0 * bias.sum(), shapes)
    assert [finding.check for finding in leaky.refuted] == [Check.FOOTPRINT]


def test_without_isl_regions_are_run_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tofu.analyzer.audit.strategies.find_spec", lambda name: None)
    report = tofu.audit(CONV, lambda data, filters: data, SHAPES)
    regions = [finding for finding in report.findings if finding.check is Check.REGIONS]
    assert {finding.verdict for finding in regions} == {Verdict.TRIED}
    assert {finding.grade for finding in regions} == {Grade.EXACT}
    assert "islpy is not installed" in regions[0].reason


def test_coefficients_that_isl_cannot_express_are_run_through() -> None:
    operator = tofu.parse(
        "def flat(data, rows):\n    return lambda i, j: data[i * rows.shape[1] + j] * rows[i, j]"
    )
    report = tofu.audit(operator, shapes={"data": (12,), "rows": (3, 4)})
    (along_i, *_) = [f for f in report.findings if f.check is Check.REGIONS and f.operator == "flat"]
    assert along_i.verdict is Verdict.TRIED
    assert "isl cannot express a product" in along_i.reason


def test_one_line_in_a_test() -> None:
    tofu.testing.assert_partitionable(CONV, shapes=SHAPES)
    with pytest.raises(AssertionError, match=r"C: replay +refuted"):
        tofu.testing.assert_partitionable(MEAN, kernel=local_mean, shapes={"data": (4, 2)})


def test_what_cannot_be_audited_fails_with_its_own_error() -> None:
    with pytest.raises(ShapeError, match="data"):
        tofu.testing.assert_partitionable(CONV, shapes={**SHAPES, "data": (2, 2)})
    rows = tdl.parse("def rows(a):\n    return lambda i: Sum(lambda j: a[i, j])")
    assert not tofu.testing.assert_partitionable(rows, shapes={"a": (3, 4)}).refuted


def test_what_is_refuted_is_printed_first() -> None:
    text = "def f(a):\n    total = lambda i: Sum(lambda k: a[i, k])\n    return lambda i: total[i] + 1"
    nothing = tofu.parse(text, kernel=lambda call: lambda: None)
    described = [line.strip() for line in str(tofu.audit(nothing, shapes={"a": (3, 2)})).splitlines()]
    assert [line for line in described if line in ("f", "f_total")] == ["f", "f_total"]


def test_attribute_called_kernel_is_told_from_a_kernel() -> None:
    pooling = tofu.operators.get("Pooling")
    report = tofu.audit(
        pooling, shapes={"data": (1, 2, 4, 4)}, kernel=(2, 2), stride=(2, 2), pool_type="max", workers=(2,)
    )
    assert not report.refuted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((CONV,), "needs shapes"),
        ((CONV, None, {"data": (3, 2, 7)}), "does not follow"),
        ((CONV, None, SHAPES | {"extra": (1,)}), "has no tensor 'extra'"),
        (("Convolution",), "an operator or a description"),
    ],
)
def test_mistakes(arguments: Any, says: str) -> None:
    with pytest.raises(tofu.TofuError, match=says):
        tofu.audit(*arguments)


def test_workers_are_counts() -> None:
    with pytest.raises(tofu.OperatorError, match="at least 2"):
        tofu.audit(CONV, shapes=SHAPES, workers=(1,))
    with pytest.raises(tofu.OperatorError, match=r"such as \(2, 3\), found 4"):
        tofu.audit(CONV, shapes=SHAPES, workers=4)  # type: ignore[arg-type]


def test_contract_kernels_compute_one_stage() -> None:
    operator = tofu.parse("def two(a):\n    b = lambda i: a[i] + 1\n    return lambda i: b[i] * 2")
    with pytest.raises(tofu.OperatorError, match="has stages"):
        tofu.audit(operator, lambda call: lambda: None, {"a": (3,)})


def test_isl_is_imported_by_audits_alone() -> None:
    code = "import sys, tofu; tofu.audit, tofu.testing; assert 'islpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CHOLESKY = """def batch_cholesky(m):
    Cholesky = Opaque()
    return lambda b, i, j: Cholesky(m[b, :, :])[i, j]
"""


def permuted(matrices: Any) -> Any:
    """Defined for permutations of columns alone."""
    if not (np.sort(matrices, axis=-1)[..., :-1] == 0).all():
        raise ValueError("no permutation")
    return matrices


def identity(uniform: Any) -> Any:
    return 0 * uniform + np.eye(uniform.shape[-1])


def test_opaque_function_is_audited_on_positive_definite_matrices() -> None:
    report = tofu.audit(
        tofu.parse(CHOLESKY, opaque={"Cholesky": np.linalg.cholesky}), shapes={"m": (4, 3, 3)}
    )
    assert not report.refuted
    assert checks(report)[Check.WHOLE, Verdict.TRIED] == 1
    assert checks(report)[Check.REPLAY, Verdict.TRIED] == 1


def test_opaque_function_is_audited_on_data_that_it_takes() -> None:
    operator = tofu.parse(CHOLESKY, opaque={"Cholesky": permuted})
    with pytest.raises(
        tofu.DataError,
        match=r"raises ValueError for .3, 3.: no permutation; say how to make some: data=\{'m'",
    ):
        tofu.audit(operator, shapes={"m": (4, 3, 3)})
    report = tofu.audit(operator, shapes={"m": (4, 3, 3)}, data={"m": identity})
    assert not report.refuted
    assert checks(report)[Check.REPLAY, Verdict.TRIED] == 1


def test_kernel_of_an_opaque_function_without_inside_is_replayed() -> None:
    def audited(kernel: Any) -> Audit:
        return tofu.audit(tofu.parse(CHOLESKY), kernel, {"m": (4, 3, 3)})

    assert not audited(np.linalg.cholesky).refuted
    (finding,) = audited(lambda m: np.linalg.cholesky(m.mean(axis=0, keepdims=True) + 0 * m)).refuted
    assert finding.check is Check.REPLAY
    assert finding.counterexample is not None
    assert finding.counterexample.shapes == {"m": (2, 1, 1)}
    for broken in (lambda m: m[0], lambda m: m / None):
        (finding,) = audited(broken).refuted
        assert finding.check is Check.WHOLE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"x": identity}, "takes no tensor 'x', only m"),
        ({"m": lambda uniform: uniform[0]}, r"makes an array of shape \(3, 3\) of one of shape \(4, 3, 3\)"),
        ({"m": lambda uniform: uniform / None}, "raises TypeError for an array of shape"),
    ],
)
def test_wrong_data_is_refused(data: Any, said: str) -> None:
    with pytest.raises(tofu.TofuError, match=said):
        tofu.audit(tofu.parse(CHOLESKY), np.linalg.cholesky, {"m": (4, 3, 3)}, data=data)


def test_tensors_without_dimensions() -> None:
    scale = tofu.parse("def scale(a, s):\n    return lambda i: a[i] * s[()]")
    report = tofu.audit(scale, shapes={"a": (4,), "s": ()})
    assert not report.refuted
    assert set(report.grades) == {"scale", "scale_grad_a", "scale_grad_s"}
    total = tofu.parse("def total(a):\n    return lambda: Sum(lambda i: a[i])")
    assert not tofu.audit(total, lambda a: a.sum(), {"a": (4,)}).refuted
    refuted = tofu.audit(total, lambda a: a.mean(), {"a": (4,)}).refuted
    assert {finding.check for finding in refuted} == {Check.WHOLE, Check.REPLAY}

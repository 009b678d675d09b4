"""Metrics by their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tofu.mx as mx

PRED = mx.nd.array([[0.3, 0.5, 0.2], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7]])
LABEL = mx.nd.array([1, 0, 1, 2])
CHOSEN = np.array([0.5, 0.6, 0.3, 0.7])


@pytest.mark.parametrize(
    ("metric", "name", "expected"),
    [
        ("acc", "accuracy", 0.75),
        (mx.metric.TopKAccuracy(2), "top_k_accuracy_2", 1.0),
        ("ce", "cross-entropy", -np.log(CHOSEN).mean()),
        ("nll_loss", "nll-loss", -np.log(CHOSEN).mean()),
        (mx.metric.Perplexity(), "perplexity", math.exp(-np.log(CHOSEN).mean())),
        (mx.metric.Perplexity(ignore_label=0), "perplexity", math.exp(-np.log(CHOSEN[[0, 2, 3]]).mean())),
        (mx.metric.np(lambda label, pred: (label * pred[:, 1]).sum()), "<lambda>", 0.5 + 0.3 + 0.4),
        (lambda label, pred: float((label * pred[:, 1]).sum()), "custom(<lambda>)", 1.2),
        (mx.metric.CustomMetric(lambda label, pred: (6.0, 4), name="mine"), "mine", 1.5),
        ("loss", "loss", PRED.asnumpy().mean()),
    ],
)
def test_values(metric: object, name: str, expected: float) -> None:
    measure = mx.metric.create(metric)
    assert math.isnan(measure.get()[1])
    for _ in range(2):
        measure.update([LABEL], [PRED])
    assert measure.get()[0] == name
    assert measure.get()[1] == pytest.approx(expected, rel=1e-5)
    measure.reset()
    assert math.isnan(measure.get()[1])


@pytest.mark.parametrize(("name", "expected"), [("mae", 1.5), ("mse", 2.5), ("rmse", math.sqrt(2.5))])
def test_regressions(name: str, expected: float) -> None:
    measure = mx.metric.create(name)
    measure.update([mx.nd.array([1, 2])], [mx.nd.array([[2], [4]])])
    assert measure.get() == (name, pytest.approx(expected))


def test_f1_of_batches_and_of_all() -> None:
    scores = [
        mx.nd.array([[0.2, 0.8], [0.7, 0.3], [0.1, 0.9]]),
        mx.nd.array([[0.2, 0.8], [0.7, 0.3], [0.9, 0.1]]),
    ]
    labels = [mx.nd.array([1, 1, 0]), mx.nd.array([1, 0, 0])]
    macro, micro = mx.metric.create("f1"), mx.metric.F1(average="micro")
    for measure in (macro, micro):
        for label, score in zip(labels, scores, strict=True):
            measure.update([label], [score])
    assert macro.get()[1] == pytest.approx((0.5 + 1) / 2)
    assert micro.get()[1] == pytest.approx(2 * 2 / (2 * 2 + 2))
    with pytest.raises(mx.MXNetError, match="for two classes, but there is a label 2"):
        macro.update([LABEL], [PRED])


def test_several_at_once_and_of_chosen_outputs() -> None:
    both = mx.metric.create(["acc", mx.metric.CrossEntropy(output_names=["a"], label_names=["l"])])
    both.add("mse")
    assert [name for name, _ in both.get_name_value()] == ["accuracy", "cross-entropy", "mse"]
    assert isinstance(both.get_metric(0), mx.metric.Accuracy)
    chosen = mx.metric.Accuracy(output_names=["a"], label_names=["l"])
    chosen.update_dict({"l": LABEL, "m": None}, {"b": None, "a": PRED})
    assert chosen.get()[1] == 0.75
    assert str(chosen) == "EvalMetric: {'accuracy': 0.75}"
    extra = mx.metric.CustomMetric(lambda label, pred: 1.0, allow_extra_outputs=True)
    extra.update([LABEL], [PRED, PRED])
    assert extra.get()[1] == 1.0


def test_classes_along_another_dimension() -> None:
    measure = mx.metric.Accuracy()
    measure.update([mx.nd.array([[0, 1]])], [mx.nd.array([[[0.9, 0.2], [0.1, 0.8]]])])
    assert measure.get()[1] == 1.0
    measure.update([mx.nd.array([[1, 1]])], [mx.nd.array([[1, 0]])])
    assert measure.get()[1] == 0.75


def test_what_does_not_fit() -> None:
    with pytest.raises(mx.MXNetError, match="no metric 'acuracy'; did you mean 'accuracy'"):
        mx.metric.create("acuracy")
    with pytest.raises(mx.MXNetError, match="'accuracy' got 1 labels for 2 outputs; choose some"):
        mx.metric.Accuracy().update([LABEL], [PRED, PRED])
    with pytest.raises(mx.MXNetError, match="has 3 labels for 4 outputs"):
        mx.metric.Accuracy().update([LABEL[:3]], [PRED])
    for name in ("f1", mx.metric.TopKAccuracy(2), "ce", "perplexity"):
        with pytest.raises(mx.MXNetError, match=r"the output has shape \(4, 3\) and the label \(3,\)"):
            mx.metric.create(name).update([LABEL[:3]], [PRED])
    for name in ("f1", mx.metric.TopKAccuracy(2)):
        with pytest.raises(mx.MXNetError, match=r"the output has shape \(4,\) and the label \(4,\)"):
            mx.metric.create(name).update([LABEL], [LABEL])
    with pytest.raises(mx.MXNetError, match=r"has no dimension 1 in outputs \(3,\)"):
        mx.metric.Accuracy().update([LABEL], [LABEL[:3]])
    for wrong in (3, -1):
        with pytest.raises(mx.MXNetError, match=r"labels run from .*, but there are 3 classes"):
            mx.metric.CrossEntropy().update([mx.nd.array([1, 0, 1, wrong])], [PRED])
    with pytest.raises(mx.MXNetError, match=r"'mse' has a label \(4,\) for an output \(4, 3\)"):
        mx.metric.MSE().update([LABEL], [PRED])
    with pytest.raises(mx.MXNetError, match="top_k is 1"):
        mx.metric.TopKAccuracy(1)


def test_f1_counts_all_outputs_of_a_batch_together() -> None:
    """MXNet 1.9.1 gives these numbers. Columns after the second are classes that are not counted as 1."""
    labels = [mx.nd.array([0, 1]), mx.nd.array([0, 1])]
    preds = [mx.nd.array([[0.3, 0.7], [0.2, 0.8]]), mx.nd.array([[0.9, 0.1], [0.2, 0.8]])]
    measure = mx.metric.F1(average="macro")
    measure.update(labels, preds)
    assert measure.get()[1] == pytest.approx(0.8)
    wide = mx.metric.F1()
    wide.update([mx.nd.array([0, 1])], [mx.nd.array([[0.1, 0.2, 0.7], [0.2, 0.7, 0.1]])])
    assert wide.get()[1] == 1
    with pytest.raises(mx.MXNetError, match="average is 'weighted'; expected 'macro' or 'micro'"):
        mx.metric.F1(average="weighted")


@pytest.mark.parametrize("metric", [["acc", "ce"], mx.metric.F1(average="micro")])
def test_reset_local_forgets_all_that_is_counted(metric: Any) -> None:
    measure = mx.metric.create(metric)
    measure.update([np.array([1])], [np.array([[0.2, 0.8]])])
    measure.reset_local()
    assert np.isnan(measure.get()[1]).all()
    measure.update([np.array([1])], [np.array([[0.8, 0.2]])])
    assert np.ravel(measure.get()[1])[0] == 0

"""Distributions over classes, and operators that start the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .case import Case, Values, case, listed


def cases(values: Values) -> Iterator[Case]:
    yield from _softmaxes(values)
    yield from _outputs(values)
    yield from _regressions(values)


def _softmaxes(values: Values) -> Iterator[Case]:
    """Over the last of three dimensions MXNet's gradient of SoftmaxActivation is that over channels."""
    for shape in ((4,), (2, 4), (2, 3, 4), (2, 3, 2, 2)):
        for axis in range(-len(shape), len(shape)):
            yield case("softmax", {"axis": axis}, data=values.signed(*shape))
            yield case("log_softmax", {"axis": axis}, data=values.signed(*shape))
    for name in ("softmax", "log_softmax"):
        yield case(name, data=values.signed(2, 3) * 50)
        yield case(name, {"temperature": 2.5}, data=values.signed(2, 3))
    for shape in ((2, 4), (2, 3, 2), (2, 3, 2, 2)):
        consistent = len(shape) == 2
        yield case("SoftmaxActivation", training=consistent, data=values.signed(*shape))
        if len(shape) > 2:
            yield case("SoftmaxActivation", {"mode": "channel"}, data=values.signed(*shape))
    labels = values.whole(0, 4, 3)
    yield case("softmax_cross_entropy", fixed=("label",), data=values.signed(3, 4), label=labels)


def _outputs(values: Values) -> Iterator[Case]:
    labelled = (
        ((3, 4), {}, (3,)),
        ((3, 4), {}, (3, 4)),
        ((2, 3, 2), {}, (2,)),
        ((2, 3, 4), {"preserve_shape": True}, (2, 3)),
        ((2, 3, 4), {"multi_output": True}, (2, 4)),
        ((2, 3, 2, 2), {"multi_output": True}, (2, 2, 2)),
        ((2, 3, 2, 2), {"multi_output": True}, (2, 4)),
        ((2, 3, 2, 2), {"multi_output": True}, (2, 1, 2, 2)),
    )
    for shape, attributes, label in labelled:
        for normalization, ignoring in product(("null", "batch", "valid"), (False, True)):
            given = {**attributes, "normalization": normalization, "grad_scale": 0.5}
            if ignoring:
                given |= {"use_ignore": True, "ignore_label": 1}
            classes = values.unit(*label) if label == shape else values.whole(0, 3, *label)
            yield case("SoftmaxOutput", given, fixed=("label",), data=values.signed(*shape), label=classes)
    ignored = listed(2, 2, 2)
    given = {"normalization": "valid", "use_ignore": True, "ignore_label": 2}
    yield case("SoftmaxOutput", given, fixed=("label",), data=values.signed(3, 4), label=ignored)
    smoothed = {"smooth_alpha": 0.1}
    yield case("SoftmaxOutput", smoothed, fixed=("label",), data=values.signed(3, 4), label=ignored)


def _regressions(values: Values) -> Iterator[Case]:
    for name in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
        for data, label in (
            ((4,), (4,)),
            ((3, 1), (3,)),
            ((3, 1), (3, 1)),
            ((2, 3), (2, 3)),
            ((2, 2, 3), (2, 2, 3)),
        ):
            for scale in (1.0, 0.3):
                tensors = {"data": values.signed(*data), "label": values.signed(*label)}
                yield case(name, {"grad_scale": scale}, fixed=("label",), **tensors)
    for attributes in ({}, {"margin": 0.5, "regularization_coefficient": 2.0}):
        for linear in (False, True):
            given = {**attributes, "use_linear": linear}
            tensors = {"data": values.signed(3, 4), "label": values.whole(0, 4, 3)}
            yield case("SVMOutput", given, fixed=("label",), **tensors)
    for normalization in ("null", "batch", "valid"):
        for threshold in (0.0, 0.5):
            given = {"normalization": normalization, "valid_thresh": threshold, "grad_scale": 3.0}
            yield case("MakeLoss", given, data=values.signed(3, 4))

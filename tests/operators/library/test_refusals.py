"""Whatever attributes and shapes the library is given, it accepts them or says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest

from tofu.analyzer.indices.region import Shape
from tofu.errors import OperatorError, ShapeError, TofuError
from tofu.operators import get, names
from tofu.operators.operator import Operator
from tofu.operators.stages.attributes import AttributeType, SliceBounds

STRANGE = {
    AttributeType.INT: (0, -7, 100),
    AttributeType.FLOAT: (0, float("inf"), float("nan"), 1e308),
    AttributeType.SHAPE: ((), (0, 0), (-1,), (1, 1, 1, 1, 1)),
    AttributeType.BOUNDS: (SliceBounds(), SliceBounds((None,)), SliceBounds((-9,))),
}
RANKS = range(6)
SAMPLED = {"transform_type": "affine", "sampler_type": "bilinear"}
IMAGE = {"data": (2, 3, 5, 5)}
MATRIX = {"data": (2, 3)}
UPSAMPLING = {"scale": 2, "sample_type": "nearest", "num_args": 2}


def cases(operator: Operator) -> Iterator[tuple[Mapping[str, Shape], Mapping[str, object]]]:
    """The operator's example with one attribute changed, or with other ranks."""
    example = operator.example
    assert example is not None
    for spec in operator.specs:
        for value in (*spec.choices, *STRANGE.get(spec.kind, ())):
            yield example.shapes, {**example.attributes, spec.name: value}
    for rank in RANKS:
        for extent in (0, 2):
            yield dict.fromkeys(example.shapes, (extent,) * rank), example.attributes
            for name in example.shapes:
                yield {**example.shapes, name: (extent,) * rank}, example.attributes
                yield {name: (extent,) * rank}, example.attributes


@pytest.mark.parametrize("name", names())
def test_every_refusal_is_an_error_of_ours(name: str) -> None:
    operator = get(name)
    for shapes, attributes in cases(operator):
        with suppress(TofuError):
            operator.infer(attributes, shapes)
        with suppress(TofuError):
            operator.bind(shapes, **attributes)


@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "message"),
    [
        ("_arange", {"start": 0.0, "stop": 2.0, "step": 0.0}, {}, "step must not be 0"),
        (
            "Crop",
            {"num_args": 3},
            {f"arg{k}": (1, 1, 4, 4) for k in range(3)},
            "num_args=3, but it takes data",
        ),
        (
            "Convolution",
            {"kernel": (3, 3), "num_filter": 5, "num_group": 2},
            {"data": (1, 4, 5, 5)},
            "num_filter=5 .* num_group=2",
        ),
        (
            "LeakyReLU",
            {"act_type": "rrelu", "lower_bound": 0.5, "upper_bound": 0.2},
            MATRIX,
            r"lower_bound=0\.5 to upper_bound=0\.2",
        ),
        (
            "ROIPooling",
            {"pooled_size": (2,), "spatial_scale": 1.0},
            {**IMAGE, "rois": (1, 5)},
            r"pooled_size=\(2,\) must be \(height, width\)",
        ),
        (
            "UpSampling",
            {"scale": 2, "sample_type": "bilinear"},
            IMAGE,
            "needs num_filter, the number of channels",
        ),
        ("slice", {"begin": (0,), "end": (2,), "step": (0,)}, MATRIX, "step is 0 in dimension 0"),
        ("tile", {"reps": (2, 0)}, MATRIX, r"reps=\(2, 0\) must be 1 or more"),
    ],
)
def test_attributes_that_mean_nothing(
    name: str, attributes: dict[str, object], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    refused(OperatorError, name, attributes, shapes, message)


@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "message"),
    [
        ("BatchNorm", {"axis": 7}, MATRIX, "axis 7 is outside a tensor with 2 dimensions"),
        ("log_softmax", {"axis": 2}, MATRIX, "axis 2 is outside a tensor with 2 dimensions"),
        ("Flatten", {}, {"data": ()}, r"data has 0 dimensions, but must be batch, \.\.\.$"),
        ("_arange", {"start": 0.0, "stop": float("inf")}, {}, "gives no finite number of elements"),
        ("_arange", {"start": 3.0, "stop": 1.0}, {}, r"start=3\.0, stop=1\.0, step=1\.0 gives no elements"),
        (
            "Crop",
            {"num_args": 1, "h_w": (2, 2)},
            {"arg0": (4, 4)},
            r"shapes \(4, 4\) and \(0, 0, 2, 2\) must have 4 dim",
        ),
        (
            "Crop",
            {"num_args": 1, "h_w": (4, 4), "offset": (2, 0)},
            {"arg0": (1, 1, 5, 5)},
            r"\(4, 4\) at offset \(2, 0\) does not lie",
        ),
        (
            "Deconvolution",
            {"kernel": (3, 3), "num_filter": 2},
            {"data": (1, 3, 5), "weight": (3, 2, 3, 3)},
            "data has 3 dimensions .* needs 4",
        ),
        (
            "Pooling",
            {"kernel": (2, 2), "pool_type": "max"},
            {"data": (1, 3, 5)},
            "data has 3 dimensions .* needs 4",
        ),
        (
            "RNN",
            {"state_size": 2, "num_layers": 1, "mode": "gru"},
            MATRIX,
            "data has 2 dimensions, but must be time, batch, features",
        ),
        (
            "SliceChannel",
            {"num_outputs": 2, "squeeze_axis": True},
            {"data": (2, 6)},
            "squeeze_axis needs parts of 1 element, but they have 3",
        ),
        ("SoftmaxOutput", {}, {"data": (2,)}, "data has 1 dimension, but must be batch, class"),
        (
            "SpatialTransformer",
            SAMPLED,
            {**MATRIX, "loc": (2, 6)},
            "data has 2 dimensions, but must be batch, channel, height, width",
        ),
        (
            "UpSampling",
            UPSAMPLING,
            {"arg0": (2, 2, 2, 2), "arg1": (2, 2, 3, 4)},
            r"arg1 has shape \(2, 2, 3, 4\); .* divide 4 and 4",
        ),
        (
            "UpSampling",
            {**UPSAMPLING, "multi_input_mode": "sum"},
            {"arg0": (2, 2, 2, 2), "arg1": (2, 3, 2, 2)},
            "arg1 has 3 channels, arg0 has 2",
        ),
        (
            "broadcast_axis",
            {"axis": (0, 1), "size": (4,)},
            {"data": (1, 1)},
            r"axis=\(0, 1\) and size=\(4,\) must be equally long",
        ),
        ("broadcast_to", {"shape": (2, 4)}, MATRIX, r"data of shape \(2, 3\) does not stretch to \(2, 4\)"),
        ("expand_dims", {"axis": 4}, MATRIX, "axis 4 is outside a tensor with 3 dimensions"),
        ("linalg_potrf", {}, {"A": (3,)}, "A has 1 dimension, but is read with 2 indices or more"),
        (
            "slice",
            {"begin": (0, 0), "end": (2,)},
            MATRIX,
            r"begin=\(0, 0\), end=\(2,\), step=\(\) do not fit data of shape \(2, 3\)",
        ),
        ("transpose", {"axes": (0, 0)}, MATRIX, r"axes=\(0, 0\) is not a permutation of 2 dimensions"),
    ],
)
def test_shapes_that_do_not_fit(
    name: str, attributes: dict[str, object], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    refused(ShapeError, name, attributes, shapes, message)


def refused(
    kind: type[TofuError],
    name: str,
    attributes: dict[str, object],
    shapes: dict[str, tuple[int, ...]],
    message: str,
) -> None:
    with pytest.raises(kind, match=f"{name}.*{message}"):
        get(name).infer(attributes, shapes)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("repeat", {"repeats": 0}),
        ("_arange", {"start": 1, "repeat": 0}),
    ],
)
def test_counts_are_at_least_one(name: str, attributes: Mapping[str, object]) -> None:
    with pytest.raises(OperatorError, match=rf"^{name}: attribute \w+ is .*an integer of at least 1$"):
        get(name).attributes(attributes)


@pytest.mark.parametrize("number", [0, -1, 10**20])
@pytest.mark.parametrize(
    ("name", "attribute"),
    [("SliceChannel", "num_outputs"), ("add_n", "num_args"), ("Crop", "num_args"), ("RNN", "num_layers")],
)
def test_numbers_of_tensors_are_bounded(name: str, attribute: str, number: int) -> None:
    with pytest.raises(OperatorError, match=rf"^{name}: attribute {attribute} .* from 1 to 100000$"):
        get(name).attributes({"state_size": 4, attribute: number} if name == "RNN" else {attribute: number})

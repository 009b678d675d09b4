"""Whatever attributes and shapes the library is given, it accepts them or says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest

from tofu.analyzer.region import Shape
from tofu.errors import OperatorError, ShapeError, TofuError
from tofu.operators import get, names
from tofu.operators.attributes import Bounds, Kind
from tofu.operators.operator import Operator

STRANGE = {
    Kind.INT: (0, -7, 100),
    Kind.FLOAT: (0, float("inf"), float("nan"), 1e308),
    Kind.SHAPE: ((), (0, 0), (-1,), (1, 1, 1, 1, 1)),
    Kind.BOUNDS: (Bounds(), Bounds((None,)), Bounds((-9,))),
}
RANKS = range(6)
SAMPLED = {"transform_type": "affine", "sampler_type": "bilinear"}


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
    ("name", "shape", "attributes", "message"),
    [
        ("Flatten", (), {}, r"^Flatten: data has 0 dimensions; it is batch, \.\.\.$"),
        ("SpatialTransformer", (2, 3, 4), SAMPLED, "data has 3 dimensions; it is batch, channel"),
        ("BatchNorm", (2, 3), {"axis": 7}, r"^BatchNorm: there is no axis 7 in 2 dimensions$"),
        ("_arange", None, {"start": 0, "stop": float("inf")}, "gives no finite number of elements"),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    name: str, shape: Shape | None, attributes: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        get(name).bind({} if shape is None else {"data": shape}, **attributes)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("Concat", {"num_args": 0}), ("SliceChannel", {"num_outputs": 0}), ("add_n", {"num_args": -1})],
)
def test_counts_are_at_least_one(name: str, attributes: Mapping[str, object]) -> None:
    with pytest.raises(OperatorError, match=rf"^{name}: attribute num_\w+ is .*an integer of at least 1$"):
        get(name).attributes(attributes)

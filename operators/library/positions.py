"""Elements at positions that a tensor lists: gather_nd and scatter_nd.

`indices[k, *y]` is the index along dimension k. An index outside of its dimension is an error of gather_nd;
scatter_nd leaves its element out. scatter_nd adds up the elements that go to one place, so each of the two is
the gradient of the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments
from .texts import element, joined, names, sized


def _positions(
    operator: str, shapes: Mapping[str, Shape], rank: int
) -> tuple[list[str], tuple[str, ...], str]:
    """Return the index along each listed dimension, the variables of the others, and those of a position."""
    indices = shapes["indices"]
    if len(indices) < 2 or indices[0] > rank:
        raise ShapeError(
            f"{operator}: indices has shape {indices}; give one row for each of the first dimensions, "
            f"at most {rank}, and one position or more"
        )
    at = names("y", len(indices) - 1)
    listed = [element("indices", [str(row), *at]) for row in range(indices[0])]
    return listed, names("x", rank - indices[0]), joined(at)


def _gather(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    listed, others, at = _positions("gather_nd", shapes, len(shapes["data"]))
    binders = joined([at, *others])
    return variant(
        f"def gather_nd(data, indices):\n    return lambda {binders}: {element('data', [*listed, *others])}"
    )


def _scatter(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    made = attributes.shape("shape")
    listed, others, at = _positions("scatter_nd", shapes, len(made))
    places = names("z", len(listed))
    same = " and ".join(f"{index} == {place}" for index, place in zip(listed, places, strict=True))
    value = element("data", [at, *others])
    return variant(
        "def scatter_nd(data, indices):\n"
        f"    return lambda {sized([*places, *others], made)}: Sum(lambda {at}: where({same}, {value}, 0))"
    )


INDICES = arguments("indices")

OPERATORS = (
    Operator(
        name="gather_nd",
        definition=ByShape(_gather, lambda attributes: ("data", "indices")),
        argument_names=arguments("data", "indices"),
        example=Example({"data": (3, 4, 2), "indices": (2, 5)}, whole={"indices": (0, 3)}),
    ),
    Operator(
        name="scatter_nd",
        definition=ByShape(_scatter, INDICES),
        argument_names=arguments("data", "indices"),
        specs=(shape("shape"),),
        example=Example({"data": (5, 2), "indices": (2, 5)}, {"shape": (3, 4, 2)}, {"indices": (0, 3)}),
    ),
)

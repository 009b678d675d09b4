"""Products of the elements that are written at a place, which another tensor holds for each of them.

The gradient of an element is the product of the others. It is the whole product divided by the element, or,
at the only zero of a place, the product of all that are not zero. So it takes time in proportion to the
elements, where the derived gradient would compare all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..stages.attributes import Attributes, integer
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .texts import axis_in, element, joined, names

PRODUCT = """
def scatter_prod(data, index):
    return lambda {places}: Prod(lambda {write}: where({hit}, {source}, 1))
"""

GRADIENT = """
def scatter_prod_grad(grad_0, data, index):
    zeros = lambda {places}: Sum(lambda {write}: where({hit} and {source} == 0, 1, 0))
    product = lambda {places}: Prod(lambda {write}: where({hit} and {source} != 0, {source}, 1))
    whole = lambda {places}: where(zeros[{place}] == 0, grad_0[{place}] * product[{place}], 0)
    others = lambda {places}: where(zeros[{place}] == 1, grad_0[{place}] * product[{place}], 0)
    divided = lambda {writes}: Sum(lambda {row}: where({hit}, whole[{place}], 0))
    alone = lambda {writes}: Sum(lambda {row}: where({hit}, others[{place}], 0))
    return lambda {writes}: where({source} == 0, alone[{source_place}],
        divided[{source_place}] / where({source} == 0, 1, {source}))
"""


def _filled(template: str, attributes: Attributes, rank: int) -> str:
    """Fill a template: `v` is the position that is written at, `k` that of the write along the same axis."""
    axis = axis_in("scatter_prod", attributes.integer("axis"), rank)
    source, place = list(names("i", rank)), list(names("i", rank))
    source[axis], place[axis] = "k", "v"
    extents = [f"{name}=data.shape[{number}]" for number, name in enumerate(source)]
    rows = [*extents]
    rows[axis] = row = f"v={attributes.integer('size')}"
    return template.format(
        places=joined(rows),
        writes=joined(extents),
        place=joined(place),
        row=row,
        write=extents[axis],
        hit=f"{element('index', source)} == v",
        source=element("data", source),
        source_place=joined(source),
    )


def _product(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    return variant(_filled(PRODUCT, attributes, ranks["data"]))


def _product_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return variant(_filled(GRADIENT, attributes, len(shapes["data"])), targets={"data": "output_0"})


OPERATORS = (
    Operator(
        name="scatter_prod",
        definition=ByRank(_product),
        argument_names=arguments("data", "index"),
        specs=(integer("axis", 0), integer("size")),
        gradient_definition=_product_gradient,
        example=Example({"data": (4, 3), "index": (4, 3)}, {"axis": 0, "size": 3}, {"index": (0, 3)}),
    ),
)

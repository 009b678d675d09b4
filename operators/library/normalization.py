"""BatchNorm, InstanceNorm, LayerNorm, L2Normalization, LRN.

BatchNorm's gradient is given, not derived: differentiating through mean and variance stage by stage is
correct but takes more passes. It stays exact if the batch is split, because its sums are separate stages
and `data.shape` counts the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, ignored, integer, number
from ..stages.definition import ByRank, ByShape, Definition, Fixed, Variant, text, variant
from .arguments import arguments, of_data
from .texts import axis_in, check_rank, joined, names, product_of_extents

BATCH_STATISTICS = """
def BatchNorm(data, {parameters}, *, eps):
    mean = lambda {c}: Sum(lambda {others}: data[{all}]) / ({count})
    var = lambda {c}: Sum(lambda {others}: (data[{all}] - mean[{c}]) * (data[{all}] - mean[{c}])) / ({count})
    return {before}lambda {all}: {scale}(data[{all}] - mean[{c}]) * rsqrt(var[{c}] + eps) + beta[{c}]{after}
"""

MOVING_STATISTICS = """
def BatchNorm(data, {parameters}, moving_mean, moving_var, *, eps):
    return {before}lambda {all}: ({scale}(data[{all}] - moving_mean[{c}])
        * rsqrt(moving_var[{c}] + eps) + beta[{c}]){after}
"""

GRADIENT = """
def BatchNorm_grad(grad_0, data, {gamma}mean, var, *, eps):
    grad_sum = lambda {c}: Sum(lambda {others}: grad_0[{all}])
    product_sum = lambda {c}: (rsqrt(var[{c}] + eps)
        * Sum(lambda {others}: grad_0[{all}] * (data[{all}] - mean[{c}])))
    return lambda {all}: {scale}rsqrt(var[{c}] + eps) * (grad_0[{all}] - (grad_sum[{c}]
        + (data[{all}] - mean[{c}]) * rsqrt(var[{c}] + eps) * product_sum[{c}]) / ({count}))
"""

INSTANCE = """
def InstanceNorm(data, gamma, beta, *, eps):
    mean = lambda n, c: Sum(lambda *i: data[n, c, *i]) / ({count})
    var = lambda n, c: Sum(lambda *i: (data[n, c, *i] - mean[n, c]) ** 2) / ({count})
    return lambda n, c, *i: gamma[c] * (data[n, c, *i] - mean[n, c]) * rsqrt(var[n, c] + eps) + beta[c]
"""

L2_INSTANCE = """
def L2Normalization(data, *, eps):
    squares = lambda n: Sum(lambda *i: data[n, *i] ** 2)
    return lambda n, *i: data[n, *i] * rsqrt(squares[n] + eps)
"""

L2_CHANNEL = """
def L2Normalization(data, *, eps):
    squares = lambda n, *i: Sum(lambda c: data[n, c, *i] ** 2)
    return lambda n, c, *i: data[n, c, *i] * rsqrt(squares[n, *i] + eps)
"""

L2_SPATIAL = """
def L2Normalization(data, *, eps):
    squares = lambda n, c: Sum(lambda *i: data[n, c, *i] ** 2)
    return lambda n, c, *i: data[n, c, *i] * rsqrt(squares[n, c] + eps)
"""

LOCAL_RESPONSE = """
def LRN(data, *, alpha, beta, knorm, nsize):
    energy = lambda n, c=data.shape[1], *i: knorm + alpha / nsize * Sum(lambda k=nsize:
        square(pad(data[n, c + k - nsize // 2, *i], 0)))
    return lambda n, c, *i: data[n, c, *i] * energy[n, c, *i] ** -beta
"""

MOVE = """
def BatchNorm_moving_{statistic}(moving_{statistic}, {statistic}, *, momentum):
    return lambda c: momentum * moving_{statistic}[c] + (1 - momentum) * {statistic}[c]
"""


MOVE_UNBIASED = """
def BatchNorm_moving_var(moving_var, var, *, momentum, correction):
    return lambda c: momentum * moving_var[c] + (1 - momentum) * correction * var[c]
"""


def _filled(template: str, attributes: Attributes, rank: int, moving: str = "") -> str:
    """Return the template with its index variables; `fix_gamma` takes gamma to be one.

    With `output_mean_var` the mean and the inverse of the deviation are outputs too, as in MXNet.
    """
    axis = axis_in("BatchNorm", attributes.integer("axis"), rank)
    variables = ["c" if d == axis else v for d, v in enumerate(names("i", rank))]
    others = [variable for variable in variables if variable != "c"]
    fixed, several = attributes.flag("fix_gamma"), attributes.flag("output_mean_var")
    return template.format(
        c="c",
        all=joined(variables),
        others=joined(others),
        count=product_of_extents("data", [d for d in range(rank) if d != axis]),
        parameters="beta" if fixed else "gamma, beta",
        gamma="" if fixed else "gamma, ",
        scale="" if fixed else "gamma[c] * ",
        before="(" if several else "",
        after=f", lambda c: {moving}mean[c], lambda c: rsqrt({moving}var[c] + eps))" if several else "",
    )


def _moving(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    return variant(
        _filled(MOVING_STATISTICS, attributes, ranks["data"], "moving_"), {"eps": attributes.number("eps")}
    )


def _batch_norm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    if attributes.flag("use_global_stats"):
        return _moving(attributes, ranks)
    return variant(_filled(BATCH_STATISTICS, attributes, ranks["data"]), {"eps": attributes.number("eps")})


def _batch_norm_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant | None:
    if "mean" not in shapes:
        return None
    targets = {"data": "output_0", "beta": "grad_sum"}
    if not attributes.flag("fix_gamma"):
        targets["gamma"] = "product_sum"
    return variant(
        _filled(GRADIENT, attributes, len(shapes["data"])),
        {"eps": attributes.number("eps")},
        targets=targets,
    )


def _updates(attributes: Attributes) -> Mapping[str, Definition]:
    """Return updates of the moving averages of the batch's statistics; none if these are not computed."""
    if attributes.flag("use_global_stats"):
        return {}
    updates: dict[str, Definition] = {
        f"moving_{statistic}": text(MOVE.format(statistic=statistic)) for statistic in ("mean", "var")
    }
    if attributes.flag("unbiased"):
        updates["moving_var"] = ByShape(_move_unbiased, of_data)
    return updates


def _move_unbiased(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the update of a moving variance that divides by one less than the number of elements."""
    data = shapes["data"]
    axis = axis_in("BatchNorm", attributes.integer("axis"), len(data))
    count = prod(extent for d, extent in enumerate(data) if d != axis)
    constants = {"momentum": attributes.number("momentum"), "correction": count / max(count - 1, 1)}
    return variant(MOVE_UNBIASED, constants)


def _per_channel(
    operator: str, *tensors: str
) -> Callable[[Attributes, Mapping[str, PartialShape]], Mapping[str, PartialShape]]:
    """Return hints: each of these tensors has one element for every channel of data."""

    def hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
        data = shapes["data"]
        if data is None:
            return {}
        axis = attributes.integer("axis") if "axis" in attributes else 1
        return dict.fromkeys(tensors, (data[axis_in(operator, axis, len(data))],))

    return hints


def _instance_norm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    check_rank("InstanceNorm", "data", ranks["data"], "batch, channel, ...")
    count = product_of_extents("data", range(2, ranks["data"]))
    return variant(INSTANCE.format(count=count), {"eps": attributes.number("eps")})


def _layer_norm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    variables = list(names("i", ranks["data"]))
    axis = axis_in("LayerNorm", attributes.integer("axis"), len(variables))
    everywhere, feature = joined(variables), variables[axis]
    outer = joined([v for v in variables if v != feature])
    binders, kept = (outer, outer) if outer else ("one=1", "0")
    return variant(
        "def LayerNorm(data, gamma, beta, *, eps):\n"
        f"    mean = lambda {binders}: Sum(lambda {feature}: data[{everywhere}]) / data.shape[{axis}]\n"
        f"    var = lambda {binders}: Sum(lambda {feature}: (data[{everywhere}] - mean[{kept}]) ** 2)"
        f" / data.shape[{axis}]\n"
        f"    return lambda {everywhere}: gamma[{feature}] * (data[{everywhere}] - mean[{kept}])"
        f" * rsqrt(var[{kept}] + eps) + beta[{feature}]",
        {"eps": attributes.number("eps")},
    )


def _response(attributes: Attributes) -> Variant:
    """Return each element over a power of the mean square of its `nsize` neighbouring channels."""
    constants = {name: attributes.number(name) for name in ("alpha", "beta", "knorm", "nsize")}
    return variant(LOCAL_RESPONSE, constants)


def _l2_normalization(attributes: Attributes) -> Variant:
    return variant(L2_MODES[attributes.text("mode")], {"eps": attributes.number("eps")})


L2_MODES = {"instance": L2_INSTANCE, "channel": L2_CHANNEL, "spatial": L2_SPATIAL}
CHANNELS = {"gamma": (3,), "beta": (3,)}

OPERATORS = (
    Operator(
        name="BatchNorm",
        definition=ByRank(_batch_norm),
        inference_definition=ByRank(_moving),
        argument_names=arguments("data", "gamma", "beta"),
        output_count=lambda attributes: 3 if attributes.flag("output_mean_var") else 1,
        visible_names=("output", "mean", "var"),
        auxiliary=("moving_mean", "moving_var"),
        specs=(
            number("eps", 0.001),
            number("momentum", 0.9),
            flag("fix_gamma", True),
            flag("use_global_stats", False),
            flag("output_mean_var", False),
            flag("unbiased", False),
            integer("axis", 1),
            ignored("cudnn_off"),
        ),
        gradient_definition=_batch_norm_gradient,
        update_definitions=_updates,
        hints=_per_channel("BatchNorm", "gamma", "beta", "moving_mean", "moving_var"),
        example=Example(
            {"data": (2, 3, 4, 4), **CHANNELS, "moving_mean": (3,), "moving_var": (3,)}, {"fix_gamma": False}
        ),
    ),
    Operator(
        name="InstanceNorm",
        definition=ByRank(_instance_norm),
        argument_names=arguments("data", "gamma", "beta"),
        specs=(number("eps", 0.001),),
        hints=_per_channel("InstanceNorm", "gamma", "beta"),
        example=Example({"data": (2, 3, 4), **CHANNELS}),
    ),
    Operator(
        name="LayerNorm",
        definition=ByRank(_layer_norm),
        argument_names=arguments("data", "gamma", "beta"),
        specs=(integer("axis", -1), number("eps", 1e-5)),
        hints=_per_channel("LayerNorm", "gamma", "beta"),
        example=Example({"data": (2, 4, 3), **CHANNELS}),
    ),
    Operator(
        name="LRN",
        definition=Fixed(_response),
        argument_names=arguments("data"),
        specs=(number("alpha", 1e-4), number("beta", 0.75), number("knorm", 2.0), integer("nsize", least=1)),
        example=Example({"data": (2, 5, 3)}, {"nsize": 3, "alpha": 0.5}),
    ),
    Operator(
        name="L2Normalization",
        definition=Fixed(_l2_normalization),
        argument_names=arguments("data"),
        specs=(number("eps", 1e-10), choice("mode", *L2_MODES, default="instance")),
        example=Example({"data": (2, 3, 4)}),
    ),
)

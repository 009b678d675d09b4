"""SoftmaxOutput: softmax forward, softmax minus one-hot label backward."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, number
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .softmax import SOFTMAX, distribution
from .texts import check_rank, flat_index, joined, names, product_of_extents


def _classes(attributes: Attributes, rank: int) -> Collection[int]:
    """Return the dimensions of classes: dimension 1, the last one, or all but the first, flattened."""
    if attributes.flag("multi_output"):
        return (1,)
    return (rank - 1,) if attributes.flag("preserve_shape") else range(1, rank)


def _forward(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    rank = ranks["data"]
    check_rank("SoftmaxOutput", "data", rank, "batch, class, ...")
    return variant(distribution(rank, _classes(attributes, rank)).fill(SOFTMAX, "SoftmaxOutput"))


def _gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data, label = shapes["data"], shapes["label"]
    variables = names("i", len(data))
    equal = label == data and not attributes.flag("multi_output")
    everywhere = "*i" if equal else joined(variables)
    head, times = ("grad_0, ", f" * grad_0[{everywhere}]") if attributes.flag("out_grad") else ("", "")
    constants = {"grad_scale": attributes.number("grad_scale")}
    targets = {"data": "output_0"}
    if equal:
        return variant(
            f"def SoftmaxOutput_grad({head}output_0, label, *, grad_scale):\n"
            f"    return lambda *i: (output_0[*i] - label[*i]) * grad_scale{times}",
            constants,
            targets=targets,
        )
    classes = _classes(attributes, len(data))
    position = flat_index([variables[d] for d in classes], [data[d] for d in classes])
    at = joined(_label_indices(attributes, data, label, variables))
    hit, miss = _targets(attributes, prod(data[d] for d in classes))
    body = f"output_0[{everywhere}] - where(label[{at}] == {position}, {hit!r}, {miss!r})"
    ignores = attributes.flag("use_ignore") or attributes.text("normalization") == "valid"
    if ignores:
        constants["ignore_label"] = attributes.number("ignore_label")
    if attributes.flag("use_ignore"):
        body = f"where(label[{at}] == ignore_label, 0, {body})"
    stage, scale = _scale(attributes, len(data))
    return variant(
        f"def SoftmaxOutput_grad({head}output_0, label, *, {joined(tuple(constants))}):\n"
        f"{stage}    return lambda {everywhere}: ({body}) * {scale}{times}",
        constants,
        targets=targets,
    )


def _targets(attributes: Attributes, classes: int) -> tuple[float, float]:
    """Return the probability wanted of the label's class, and that of each other class."""
    smooth = attributes.number("smooth_alpha")
    if not 0 <= smooth <= 1:
        raise OperatorError(f"SoftmaxOutput: smooth_alpha={smooth} must be between 0 and 1")
    return (1 - smooth, smooth / (classes - 1)) if smooth and classes > 1 else (1, 0)


def _scale(attributes: Attributes, rank: int) -> tuple[str, str]:
    """Return a stage that the scale needs, and the scale: MXNet divides several outputs by their
    number, too.
    """
    space = range(2, rank) if attributes.flag("multi_output") else range(0)
    rows = range(1, rank - 1) if attributes.flag("preserve_shape") else space
    match attributes.text("normalization"):
        case "batch":
            return "", f"(grad_scale / ({product_of_extents('output_0', (0, *rows))}))"
        case "valid":
            valid = "    valid = lambda one=1: Sum(lambda *j: where(label[*j] != ignore_label, 1, 0))\n"
            return valid, "(grad_scale / maximum(valid[0], 1))"
        case _:
            return "", f"(grad_scale / ({product_of_extents('output_0', space)}))" if space else "grad_scale"


def _label_indices(
    attributes: Attributes, data: Shape, label: Shape, variables: Sequence[str]
) -> Sequence[str]:
    """Return the index of an output's label. Raises ShapeError if the label's shape fits no output."""
    classes = set(_classes(attributes, len(data)))
    kept = [d for d in range(len(data)) if d not in classes]
    shape = tuple(data[d] for d in kept)
    if label == shape:
        return [variables[d] for d in kept]
    if label == tuple(1 if d in classes else extent for d, extent in enumerate(data)):
        return ["0" if d in classes else v for d, v in enumerate(variables)]
    if label == (data[0], prod(shape[1:])):
        return [variables[0], flat_index([variables[d] for d in kept[1:]], shape[1:])]
    raise ShapeError(f"SoftmaxOutput: label has shape {label}, but data of shape {data} needs {shape}")


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data, label = shapes["data"], shapes["label"]
    if data is None or label is not None:
        return {}
    classes = set(_classes(attributes, len(data)))
    return {"label": tuple(extent for d, extent in enumerate(data) if d not in classes)}


OPERATORS = (
    Operator(
        name="SoftmaxOutput",
        aliases=("Softmax",),
        definition=ByRank(_forward),
        argument_names=arguments("data", "label"),
        specs=(
            number("grad_scale", 1.0),
            number("ignore_label", -1.0),
            flag("multi_output", False),
            flag("use_ignore", False),
            flag("preserve_shape", False),
            choice("normalization", "null", "batch", "valid", default="null"),
            flag("out_grad", False),
            number("smooth_alpha", 0.0),
        ),
        gradient_definition=_gradient,
        hints=_hints,
        is_loss=True,
        head_attribute="out_grad",
        example=Example({"data": (3, 4), "label": (3,)}),
    ),
)

"""Make the graph that is planned and run from a symbol and shapes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..analyzer.indices.region import Shape
from ..errors import DataError, GraphError
from ..support.checked_argument import require, require_count, shown
from ..support.gc_pause import gc_paused
from ..support.wording import alternatives
from .autodiff import differentiate
from .builder import GraphBuilder
from .element_types import MIXED, checked_type
from .expand import ExpandedSymbol, expand
from .graph import Graph, Role
from .loss_scale import checked_scale, divided, scaled_heads
from .micro_batches import unrolled
from .optimizer import Optimizer, get_optimizer
from .precision import mixed_precision
from .recompute import recomputed
from .symbol import Symbol
from .symbol.shapes import complete, infer_symbol
from .updates import Updates


@gc_paused()
def inference_graph(
    symbol: Symbol, shapes: Mapping[str, Sequence[int]], *, name: str | None = None, dtype: str = "float32"
) -> Graph:
    """Return the forward pass as used after training. Variables in `shapes` are data, the others parameters.

    `dtype` is that of `training_graph`.
    """
    builder, expansion = _forward(symbol, shapes, name, dtype, training=False)
    return _built(builder, expansion.outputs, dtype)


@gc_paused()
def training_graph(
    symbol: Symbol,
    shapes: Mapping[str, Sequence[int]],
    optimizer: Optimizer | str = "sgd",
    *,
    fixed: Collection[str] = (),
    heads: bool = False,
    micro_batches: int = 1,
    unroll: bool = False,
    name: str | None = None,
    dtype: str = "float32",
    loss_scale: float | None = None,
    recompute: int = 1,
) -> Graph:
    """Return one training iteration: forward, backward and the update of every parameter (Tofu, section 2).

    `shapes` holds the data and the labels, which are fed; other variables are parameters, updated unless they
    are `fixed`, have a learning rate multiplier of 0, or a gradient of zero. Outputs are the symbol's. The
    learning rate is a tensor `learning_rate` of shape (1,), times each `__lr_mult__`. Raises ShapeError,
    OperatorError, and GraphError for an unknown name in `fixed` or if no output is a loss. With `heads`,
    gradients are fed instead, as for `gradient_graph`.

    With several `micro_batches` the graph is that of one of them, and `shapes` are its: gradients are summed
    in tensors that persist, which the updates read. The tensor `micro_batch` of shape (1,) is fed the number
    of the micro-batch, from 0, where sums begin; updates are to run with the last one alone (`Graph.learns`).
    With `unroll` the graph has the operations of all micro-batches, whose data are fed separately: `data@0`,
    `data@1`, ... One iteration is then a whole update, with the same bits, see `unrolled`.

    With the `dtype` float16 or bfloat16 large activations and gradients are stored in it, all that lasts in
    float32, see `mixed_precision`; float32 and float64 are the type of all tensors. Gradients are
    `loss_scale` times as large until the updates divide by it; None is 128 for float16 and 1 for others.

    With `recompute` above 1, the forward pass is cut into that many segments at most. Tensors that pass
    between them are kept, and most other activations are computed again in the backward pass, see
    `recomputed`.
    """
    require_count(micro_batches, "micro_batches", GraphError, 1)
    scale = checked_scale(loss_scale, dtype)
    builder, expansion = _forward(symbol, shapes, name, dtype, training=True)
    _check_known(fixed, "fixed", expansion, "parameters are to be fixed:")
    losses = _losses(expansion)
    if not losses and not heads:
        raise _no_loss(symbol)
    fed = {} if losses else _heads(builder, expansion, losses)
    updates = Updates(
        builder, get_optimizer(optimizer), _batch(shapes) * micro_batches, scale, micro_batches > 1
    )
    variables = {node.name: node for node in symbol.nodes if node.is_variable}
    trained = {
        expansion.variables[name]: variables[name]
        for name in _parameters(builder, expansion)
        if name not in fixed and updates.rate_multiplier(variables[name]) != 0
    }
    gradients = differentiate(builder, expansion, trained, scaled_heads(builder, fed, scale), scale)
    updates.add({trained[tensor]: (tensor, gradient) for tensor, gradient in gradients.items()})
    graph = recomputed(_built(builder, expansion.outputs, dtype), recompute)
    return unrolled(graph, micro_batches) if unroll else graph


def micro_shapes(shapes: Mapping[str, Shape], count: int) -> dict[str, Shape]:
    """Return the shapes of one of `count` equal parts of a batch. Raises DataError if it cannot be split."""
    require_count(count, "accumulate", DataError, 1)
    for name, shape in shapes.items():
        if count > 1 and (not shape or shape[0] % count):
            raise DataError(
                f"a batch whose '{name}' has shape {shape} does not split into {shown(count)} micro-batches; "
                f"use a batch size that is a multiple of {shown(count)}"
            )
    return {name: (shape[0] // count, *shape[1:]) if count > 1 else shape for name, shape in shapes.items()}


def gradient_graph(
    symbol: Symbol,
    shapes: Mapping[str, Sequence[int]],
    wrt: Collection[str] | None = None,
    *,
    name: str | None = None,
    dtype: str = "float32",
    loss_scale: float | None = None,
) -> Graph:
    """Forward and backward without updates. Outputs are the symbol's, then `grad(x)` for each x in `wrt`.

    `wrt` defaults to all parameters. An output that is not a loss gets its gradient from a data tensor
    that is fed, `head(fc1_output)`. A gradient that is zero everywhere is left out. `dtype` and
    `loss_scale` are those of `training_graph`; the outputs are divided by it.
    """
    scale = checked_scale(loss_scale, dtype)
    builder, expansion = _forward(symbol, shapes, name, dtype, training=True)
    names = _parameters(builder, expansion) if wrt is None else list(wrt)
    _check_known(names, "wrt", expansion, "gradients are wanted for")
    heads = scaled_heads(builder, _heads(builder, expansion, _losses(expansion)), scale)
    targets = [expansion.variables[name] for name in names]
    gradients = differentiate(builder, expansion, targets, heads, scale)
    found = [divided(builder, gradient, scale) for gradient in gradients.values()]
    return _built(builder, (*expansion.outputs, *found), dtype)


def _forward(
    symbol: Symbol, shapes: Mapping[str, Sequence[int]], name: str | None, dtype: str, *, training: bool
) -> tuple[GraphBuilder, ExpandedSymbol]:
    table = infer_symbol(symbol, shapes)
    complete(symbol, table)
    builder = GraphBuilder(
        name or symbol.name or "graph", "float32" if dtype in MIXED else checked_type(dtype)
    )
    return builder, expand(builder, symbol, table, shapes.keys(), training)


def _built(builder: GraphBuilder, outputs: Sequence[int], dtype: str) -> Graph:
    graph = builder.build(outputs)
    return mixed_precision(graph, dtype) if dtype in MIXED else graph


def _parameters(builder: GraphBuilder, expansion: ExpandedSymbol) -> list[str]:
    return [
        name for name, index in expansion.variables.items() if builder.tensors[index].role is Role.PARAMETER
    ]


def _check_known(names: Collection[str], argument: str, expansion: ExpandedSymbol, wish: str) -> None:
    fits = isinstance(names, Collection) and not isinstance(names, str)
    require(fits, names, argument, "a list of names", GraphError)
    unknown = [str(name) for name in names if name not in expansion.variables]
    if unknown:
        raise GraphError(
            f"{wish} {', '.join(unknown)}, which the symbol does not have"
            f"{alternatives(unknown[0], expansion.variables)}"
        )


def _losses(expansion: ExpandedSymbol) -> set[int]:
    return {
        output
        for application in expansion.applications
        if application.is_loss
        for output in application.outputs
    }


def _heads(builder: GraphBuilder, expansion: ExpandedSymbol, losses: Collection[int]) -> dict[int, int]:
    """Add a data tensor for the gradient of each output that is not a loss."""
    return {
        output: builder.tensor(
            f"head({builder.tensors[output].name})", builder.tensors[output].shape, Role.DATA
        )
        for output in dict.fromkeys(expansion.outputs)
        if output not in losses
    }


def _no_loss(symbol: Symbol) -> GraphError:
    return GraphError(
        f"nothing starts the backward pass: none of {', '.join(symbol.list_outputs()[:4])} comes from a "
        "loss operator; end the network in SoftmaxOutput, a regression output or MakeLoss"
    )


def _batch(shapes: Mapping[str, Shape | Sequence[int]]) -> int:
    """Return the extent of the first dimension of the first data tensor."""
    for shape in shapes.values():
        if len(shape):
            return int(shape[0])
    return 1

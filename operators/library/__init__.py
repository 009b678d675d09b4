"""The operator library: one description for each operator, under the names that MXNet uses."""

from . import (
    broadcast,
    convolution,
    elementwise,
    embedding,
    initial,
    linear,
    loss,
    normalization,
    optimizer,
    pooling,
    reduction,
    reshape,
    shape,
    softmax,
    softmax_output,
)

OPERATORS = (
    *elementwise.OPERATORS,
    *broadcast.OPERATORS,
    *reduction.OPERATORS,
    *linear.OPERATORS,
    *convolution.OPERATORS,
    *pooling.OPERATORS,
    *normalization.OPERATORS,
    *softmax.OPERATORS,
    *embedding.OPERATORS,
    *reshape.OPERATORS,
    *shape.OPERATORS,
    *initial.OPERATORS,
    *loss.OPERATORS,
    *softmax_output.OPERATORS,
    *optimizer.OPERATORS,
)

"""Small graphs written as descriptions, and a way to draw random ones."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import strategies as st

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.dataflow.graph import Graph, Operation, Role, Tensor

MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
ADD = "def add(a, b):\n    return lambda i, j: a[i, j] + b[i, j]"
MULTIPLY = "def multiply(a, b):\n    return lambda i, j: a[i, j] * b[i, j]"
TRANSPOSE = "def transpose(a):\n    return lambda i, j: a[j, i]"
RELU = "def relu(a):\n    return lambda i, j: maximum(a[i, j], 0)"
BIAS = "def bias(a, b):\n    return lambda i, j: a[i, j] + b[j]"
COLUMN_SUM = "def column_sum(a):\n    return lambda j: Sum(lambda i: a[i, j])"
ROW_MAX = "def row_max(a):\n    return lambda i: Max(lambda j: a[i, j])"
TOTAL = "def total(a):\n    return lambda i=1: Sum(lambda j, k: a[j, k])"
EVERY_SECOND = "def every_second(a):\n    return lambda i=(a.shape[0] + 1) // 2, j=a.shape[1]: a[2 * i, j]"
NEIGHBOURS = "def neighbours(a):\n    return lambda i=a.shape[0], j=a.shape[1]: a[i, j] + pad(a[i - 1, j], 0)"
MOMENTS = """def moments(a):
    return (lambda j: Sum(lambda i: a[i, j]), lambda j: Sum(lambda i: a[i, j] * a[i, j]))"""
UPDATE = (
    "def update(weight, gradient, rate):\n    return lambda i, j: weight[i, j] - rate[0] * gradient[i, j]"
)
CONV1D = """def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])"""

MATRIX_TO_MATRIX = (TRANSPOSE, RELU, EVERY_SECOND, NEIGHBOURS)
TWO_MATRICES = (ADD, MULTIPLY)
MATRIX_TO_VECTORS = (COLUMN_SUM, ROW_MAX, MOMENTS, TOTAL)


parsed = cache(tdl.parse)


class Toy:
    """A graph in the making; tensors are referred to by number."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []

    def tensor(self, *shape, role=Role.PARAMETER, dtype="float32", alias=None, name=None):
        index = len(self.tensors)
        self.tensors.append(Tensor(index, name or f"t{index}", shape, role, dtype, alias))
        return index

    def apply(self, text, *inputs, tie=None, aliases=None):
        description = parsed(text)
        shapes = {n: self.tensors[i].shape for n, i in zip(description.tensor_names, inputs, strict=True)}
        bound = analyze(description).bind(shapes)
        dtype = self.tensors[inputs[0]].dtype
        outputs = tuple(
            self.tensor(*shape, role=Role.ACTIVATION, dtype=dtype, alias=aliases[k] if aliases else None)
            for k, shape in enumerate(bound.output_shapes)
        )
        index = len(self.operations)
        name = f"{description.name}{index}"
        self.operations.append(Operation(index, name, bound, tuple(inputs), outputs, tie=tie))
        return outputs[0] if len(outputs) == 1 else outputs

    def graph(self):
        return Graph("toy", tuple(self.tensors), tuple(self.operations), ())


def mlp(batch=6, width=5, layers=2):
    """Forward, backward and update of a small multi-layer perceptron."""
    toy = Toy()
    rate = toy.tensor(1, role=Role.SCALAR, name="rate")
    value = toy.tensor(batch, width, role=Role.DATA, name="data")
    weights = [toy.tensor(width, width, name=f"weight{layer}") for layer in range(layers)]
    inputs = []
    for weight in weights:
        inputs.append(value)
        value = toy.apply(RELU, toy.apply(MATMUL, value, weight))
    gradient = value
    for weight, data in zip(reversed(weights), reversed(inputs), strict=True):
        of_weight = toy.apply(MATMUL, toy.apply(TRANSPOSE, data), gradient)
        gradient = toy.apply(MATMUL, gradient, toy.apply(TRANSPOSE, weight))
        toy.apply(UPDATE, weight, of_weight, rate, aliases=(weight,))
    toy.apply(TOTAL, gradient)
    return toy.graph()


def conv():
    """Two convolutions with odd extents, in half precision."""
    toy = Toy()
    data = toy.tensor(3, 2, 9, role=Role.DATA, dtype="float16")
    first = toy.apply(CONV1D, data, toy.tensor(2, 5, 3, dtype="float16"))
    toy.apply(CONV1D, first, toy.tensor(5, 4, 2, dtype="float16"))
    return toy.graph()


def unrolled(steps=4):
    """A recurrent cell whose copies at different time steps are tied."""
    toy = Toy()
    weight = toy.tensor(4, 4)
    state = toy.tensor(6, 4, role=Role.DATA)
    for _ in range(steps):
        state = toy.apply(RELU, toy.apply(MATMUL, state, weight, tie="product"), tie="activation")
    return toy.graph()


def shared_reads():
    """Tensors read twice by one operation, through the same and through different regions."""
    toy = Toy()
    square = toy.tensor(4, 4)
    toy.apply(MULTIPLY, square, square)
    toy.apply(MATMUL, square, square)
    toy.apply(MULTIPLY, square, toy.apply(TRANSPOSE, square))
    return toy.graph()


def odds_and_ends():
    """Unsplittable extents, strided and shifted windows, several outputs, a tensor that nothing reads."""
    toy = Toy()
    toy.tensor(7, 3)
    a = toy.tensor(7, 5, dtype="float64")
    toy.apply(MOMENTS, toy.apply(EVERY_SECOND, a))
    b = toy.apply(NEIGHBOURS, a)
    toy.apply(BIAS, b, toy.apply(COLUMN_SUM, a))
    toy.apply(ROW_MAX, b)
    toy.apply(ADD, toy.tensor(1, 1), toy.tensor(1, 1))
    return toy.graph()


GRAPHS = {
    "mlp": mlp,
    "conv": conv,
    "unrolled": unrolled,
    "shared_reads": shared_reads,
    "odds_and_ends": odds_and_ends,
}


@st.composite
def random_graphs(draw, max_operations=3):
    """Graphs of a few operations over small matrices, which may share inputs, overwrite and be tied."""
    toy = Toy()
    extents = st.sampled_from([1, 2, 3, 4, 5])
    matrices = [toy.tensor(draw(extents), draw(extents)) for _ in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(1, max_operations))):
        kind = draw(st.sampled_from(["one", "two", "matmul", "vector", "update"]))
        first = draw(st.sampled_from(matrices))
        rows, columns = toy.tensors[first].shape
        if kind == "one":
            matrices.append(toy.apply(draw(st.sampled_from(MATRIX_TO_MATRIX)), first))
        elif kind == "two":
            same = [m for m in matrices if toy.tensors[m].shape == (rows, columns)]
            matrices.append(
                toy.apply(draw(st.sampled_from(TWO_MATRICES)), first, draw(st.sampled_from(same)))
            )
        elif kind == "matmul":
            fitting = [m for m in matrices if toy.tensors[m].shape[0] == columns]
            second = draw(st.sampled_from(fitting)) if fitting else toy.tensor(columns, draw(extents))
            matrices.append(toy.apply(MATMUL, first, second, tie=draw(st.sampled_from([None, "matmul"]))))
        elif kind == "vector":
            toy.apply(draw(st.sampled_from(MATRIX_TO_VECTORS)), first)
        else:
            fresh = toy.tensor(rows, columns)
            toy.apply(UPDATE, fresh, first, toy.tensor(1, role=Role.SCALAR), aliases=(fresh,))
    return toy.graph()


@pytest.fixture(scope="session", params=sorted(GRAPHS))
def graph(request):
    return GRAPHS[request.param]()


@pytest.fixture(scope="session")
def toy():
    """The class to build further graphs with."""
    return Toy


@pytest.fixture(scope="session")
def texts():
    """The descriptions above, by name."""
    return {name: value for name, value in globals().items() if name.isupper() and isinstance(value, str)}


@pytest.fixture(scope="session")
def draw_graph():
    """The strategy of random graphs, for `data.draw`."""
    return random_graphs

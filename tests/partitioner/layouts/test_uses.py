"""The tensors that an operation touches, each once for reading and once for every output."""

from __future__ import annotations

from tofu.partitioner.layouts.uses import touched


def test_a_tensor_read_twice_is_one_use(toy, texts):
    builder = toy()
    a = builder.tensor(3, 3)
    product = builder.apply(texts["MATMUL"], a, a)
    moments = builder.apply(texts["MOMENTS"], product)
    multiplied, summed = builder.graph().operations
    assert touched(multiplied) == [(a, ("a", "b")), (product, 0)]
    assert touched(summed) == [(product, ("a",)), (moments[0], 0), (moments[1], 1)]


def test_a_parameter_that_is_not_read_is_no_use(toy):
    builder = toy()
    a, b = builder.tensor(4), builder.tensor(5)
    out = builder.apply("def f(a, b):\n    return lambda i=b.shape[0]: a[0] + i", a, b)
    (operation,) = builder.graph().operations
    assert touched(operation) == [(a, ("a",)), (out, 0)]

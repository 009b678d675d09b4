"""Ten small models as exporters write them, made with `onnx.helper`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Writer:
    """Writes a graph node by node; weights are drawn from a generator with a fixed seed."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.kept: list[Any] = []
        self.generator = np.random.default_rng(7)

    def weight(self, name: str, *shape: int, scale: float = 0.3) -> str:
        return self.value(name, self.generator.standard_normal(shape).astype(np.float32) * np.float32(scale))

    def value(self, name: str, array: Any) -> str:
        self.kept.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, name: str, *values: int) -> str:
        return self.value(name, np.array(values, np.int64))

    def node(self, kind: str, *inputs: str, name: str = "", outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return the names of its outputs."""
        name = name or f"{kind}_{len(self.nodes)}"
        made = [f"{name}:{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, made, name=name, **attributes))
        return made[0] if outputs == 1 else made

    def linear(self, data: str, name: str, inside: int, outside: int) -> str:
        """Multiply by a matrix and add a bias, as torch exports a Linear of three dimensions."""
        product = self.node(
            "MatMul", data, self.weight(f"{name}.weight", inside, outside), name=f"/{name}/MatMul"
        )
        added: str = self.node("Add", product, self.weight(f"{name}.bias", outside), name=f"/{name}/Add")
        return added

    def convolution(
        self, data: str, name: str, inside: int, outside: int, kernel: int, **attributes: Any
    ) -> str:
        groups = attributes.get("group", 1)
        weight = self.weight(f"{name}.weight", outside, inside // groups, kernel, kernel)
        found: str = self.node(
            "Conv",
            data,
            weight,
            self.weight(f"{name}.bias", outside),
            name=f"/{name}/Conv",
            kernel_shape=[kernel, kernel],
            pads=[kernel // 2] * 4,
            **attributes,
        )
        return found

    def normalised(self, data: str, name: str, channels: int) -> str:
        """Apply BatchNormalization."""
        positive = np.abs(self.generator.standard_normal(channels)).astype(np.float32) + np.float32(0.5)
        found: str = self.node(
            "BatchNormalization",
            data,
            self.weight(f"{name}.weight", channels),
            self.weight(f"{name}.bias", channels),
            self.weight(f"{name}.running_mean", channels),
            self.value(f"{name}.running_var", positive),
            name=f"/{name}/BatchNormalization",
        )
        return found

    def layer_normalised(self, data: str, name: str, width: int) -> str:
        scale = self.value(f"{name}.weight", np.ones(width, np.float32))
        found: str = self.node(
            "LayerNormalization",
            data,
            scale,
            self.weight(f"{name}.bias", width),
            name=f"/{name}/LayerNormalization",
            axis=-1,
        )
        return found

    def attention(self, data: str, name: str, width: int, heads: int, mask: str | None = None) -> str:
        """Apply self-attention with shape arithmetic, as torch exports it."""
        shape = self.node("Shape", data)
        batch, length = (
            self.node("Gather", shape, self.value(f"{name}.axis{axis}", np.array(axis, np.int64)), axis=0)
            for axis in (0, 1)
        )
        axes = self.integers(f"{name}.axes", 0)
        sizes = [self.node("Unsqueeze", each, axes) for each in (batch, length)]
        inner = self.integers(f"{name}.heads", heads, width // heads)
        split = self.node("Concat", *sizes, inner, axis=0)
        query, key, value = (
            self.node(
                "Transpose",
                self.node("Reshape", self.linear(data, f"{name}.{part}", width, width), split),
                perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        scale = self.node(
            "Constant", value=numpy_helper.from_array(np.array((width // heads) ** -0.5, np.float32))
        )
        scores = self.node("Mul", self.node("MatMul", query, key), scale)
        if mask is not None:
            scores = self.node("Add", scores, mask)
        weights = self.node("Softmax", scores, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        merged = self.node("Concat", *sizes, self.integers(f"{name}.width", width), axis=0)
        return self.linear(self.node("Reshape", mixed, merged), f"{name}.out", width, width)

    def feed_forward(self, data: str, name: str, width: int) -> str:
        """Widen, apply GELU as old exporters write it, and narrow."""
        wide = self.linear(data, f"{name}.up", width, 2 * width)
        root = self.node("Constant", value=numpy_helper.from_array(np.array(2**0.5, np.float32)))
        one = self.node("Constant", value=numpy_helper.from_array(np.array(1, np.float32)))
        half = self.node("Constant", value=numpy_helper.from_array(np.array(0.5, np.float32)))
        share = self.node("Add", self.node("Erf", self.node("Div", wide, root)), one)
        return self.linear(
            self.node("Mul", self.node("Mul", wide, share), half), f"{name}.down", 2 * width, width
        )

    def added(self, *inputs: str) -> str:
        found: str = self.node("Add", *inputs)
        return found

    def model(self, output: str, **inputs: Sequence[int | str]) -> Any:
        """Return the model with this output; inputs whose names begin with `ids` are whole numbers."""
        fed = [
            helper.make_tensor_value_info(
                name, TensorProto.INT64 if name.startswith("ids") else TensorProto.FLOAT, shape
            )
            for name, shape in inputs.items()
        ]
        made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "model", fed, made, self.kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def mlp() -> Any:
    w = Writer()
    hidden = w.node(
        "Gemm", "data", w.weight("fc1.weight", 32, 16), w.weight("fc1.bias", 32), transB=1, name="/fc1/Gemm"
    )
    hidden = w.node("Relu", hidden)
    output = w.node(
        "Gemm", hidden, w.weight("fc2.weight", 10, 32), w.weight("fc2.bias", 10), transB=1, name="/fc2/Gemm"
    )
    return w.model(output, data=["N", 16])


def lenet() -> Any:
    w = Writer()
    found = w.node("Relu", w.convolution("data", "conv1", 1, 6, 5))
    found = w.node("MaxPool", found, kernel_shape=[2, 2], strides=[2, 2])
    found = w.node("Tanh", w.convolution(found, "conv2", 6, 16, 3))
    found = w.node("AveragePool", found, kernel_shape=[2, 2], strides=[2, 2])
    found = w.node("Flatten", found)
    found = w.node(
        "Gemm", found, w.weight("fc.weight", 10, 144, scale=0.1), w.weight("fc.bias", 10), transB=1
    )
    return w.model(w.node("LogSoftmax", found, axis=1), data=["N", 1, 12, 12])


def resnet() -> Any:
    w = Writer()
    found = w.node("Relu", w.normalised(w.convolution("data", "conv1", 8, 16, 3, strides=[2, 2]), "bn1", 16))
    found = w.normalised(w.convolution(found, "conv2", 16, 16, 3), "bn2", 16)
    short = w.node("Conv", "data", w.weight("down.weight", 16, 8, 1, 1), kernel_shape=[1, 1], strides=[2, 2])
    found = w.node("Relu", w.added(found, short))
    found = w.node("Flatten", w.node("GlobalAveragePool", found))
    return w.model(w.linear(found, "fc", 16, 10), data=["N", 8, 8, 8])


def mobilenet() -> Any:
    w = Writer()
    zero, six = w.value("zero", np.array(0, np.float32)), w.value("six", np.array(6, np.float32))
    found = w.normalised(w.convolution("data", "expand", 8, 16, 1), "bn1", 16)
    found = w.node("Clip", found, zero, six)
    found = w.convolution(found, "depthwise", 16, 16, 3, group=16)
    found = w.node("HardSwish", w.normalised(found, "bn2", 16))
    pooled = w.node("ReduceMean", found, axes=[2, 3], keepdims=1)
    gate = w.node(
        "HardSigmoid",
        w.convolution(w.node("Relu", w.convolution(pooled, "squeeze", 16, 8, 1)), "excite", 8, 16, 1),
    )
    found = w.normalised(w.convolution(w.node("Mul", found, gate), "project", 16, 8, 1), "bn3", 8)
    found = w.node("ReduceMean", w.added(found, "data"), axes=[2, 3], keepdims=0)
    return w.model(w.linear(found, "fc", 8, 10), data=["N", 8, 6, 6])


def gpt() -> Any:
    w, width, length = Writer(), 16, 8
    table = w.weight("wte.weight", 32, width)
    found = w.node("Gather", table, "ids", axis=0)
    count = w.node("Gather", w.node("Shape", "ids"), w.value("one", np.array(1, np.int64)), axis=0)
    start, step = w.value("start", np.array(0, np.int64)), w.value("step", np.array(1, np.int64))
    places = w.node("Unsqueeze", w.node("Range", start, count, step), w.integers("front", 0))
    found = w.added(found, w.node("Gather", w.weight("wpe.weight", length, width), places, axis=0))
    mask = w.node(
        "Constant",
        value=numpy_helper.from_array(np.triu(np.full((1, 1, length, length), -1e9, np.float32), 1)),
    )
    found = w.added(found, w.attention(w.layer_normalised(found, "ln1", width), "attn", width, 2, mask))
    found = w.added(found, w.feed_forward(w.layer_normalised(found, "ln2", width), "mlp", width))
    found = w.layer_normalised(found, "ln_f", width)
    return w.model(w.node("MatMul", found, w.node("Transpose", table, perm=[1, 0])), ids=["N", length])


def lstm() -> Any:
    w, hidden = Writer(), 8
    parameters = [
        w.weight("W", 2, 4 * hidden, 6),
        w.weight("R", 2, 4 * hidden, hidden),
        w.weight("B", 2, 8 * hidden),
    ]
    steps = w.node("Transpose", "data", perm=[1, 0, 2])
    every = w.node("LSTM", steps, *parameters, hidden_size=hidden, direction="bidirectional")
    every = w.node("Reshape", w.node("Transpose", every, perm=[0, 2, 1, 3]), w.integers("shape", 0, 0, -1))
    last = w.node("Gather", every, w.value("last", np.array(-1, np.int64)), axis=0)
    return w.model(w.linear(last, "fc", 2 * hidden, 10), data=["N", 5, 6])


def vit() -> Any:
    w, width = Writer(), 16
    patches = w.node(
        "Conv",
        "data",
        w.weight("patch.weight", width, 3, 4, 4),
        w.weight("patch.bias", width),
        kernel_shape=[4, 4],
        strides=[4, 4],
    )
    flat = w.node("Transpose", w.node("Reshape", patches, w.integers("flat", 0, width, -1)), perm=[0, 2, 1])
    batch = w.node("Slice", w.node("Shape", flat), w.integers("s", 0), w.integers("e", 1))
    whole = w.node("Concat", batch, w.integers("rest", 1, width), axis=0)
    token = w.node("Expand", w.weight("cls_token", 1, 1, width), whole)
    found = w.added(w.node("Concat", token, flat, axis=1), w.weight("pos_embed", 1, 5, width))
    found = w.added(found, w.attention(w.layer_normalised(found, "norm1", width), "attn", width, 4))
    found = w.added(found, w.feed_forward(w.layer_normalised(found, "norm2", width), "mlp", width))
    first = w.node("Gather", found, w.value("first", np.array(0, np.int64)), axis=1)
    return w.model(w.linear(first, "head", width, 10), data=["N", 3, 8, 8])


def unet() -> Any:
    w = Writer()
    outer = w.node("Relu", w.convolution("data", "down1", 3, 8, 3))
    inner = w.node(
        "Relu",
        w.convolution(w.node("MaxPool", outer, kernel_shape=[2, 2], strides=[2, 2]), "down2", 8, 16, 3),
    )
    up = w.node(
        "ConvTranspose",
        inner,
        w.weight("up.weight", 16, 8, 2, 2),
        w.weight("up.bias", 8),
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    scales = w.value("scales", np.array([1, 1, 2, 2], np.float32))
    large = w.node("Resize", inner, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    joined = w.node("Concat", outer, up, large, axis=1)
    return w.model(w.node("Sigmoid", w.convolution(joined, "out", 32, 2, 3)), data=["N", 3, 8, 8])


def recommender() -> Any:
    w = Writer()
    user = w.node("Gather", w.weight("users.weight", 20, 8), "ids_user", axis=0)
    item = w.node("Gather", w.weight("items.weight", 30, 8), "ids_item", axis=0)
    dense = w.node("Relu", w.linear("data", "bottom", 4, 8))
    stacked = w.node(
        "Concat",
        *(
            w.node("Unsqueeze", each, w.integers(f"axis_{place}", 1))
            for place, each in enumerate((user, item, dense))
        ),
        axis=1,
    )
    crossed = w.node("MatMul", stacked, w.node("Transpose", stacked, perm=[0, 2, 1]))
    joined = w.node("Concat", w.node("Flatten", crossed), dense, axis=1)
    score = w.node("Sigmoid", w.linear(w.node("Relu", w.linear(joined, "top1", 17, 8)), "top2", 8, 1))
    return w.model(score, ids_user=["N"], ids_item=["N"], data=["N", 4])


def bert() -> Any:
    w, width, length = Writer(), 16, 6
    words = w.node("Gather", w.weight("word.weight", 40, width), "ids", axis=0)
    kinds = w.node("Gather", w.weight("kind.weight", 2, width), "ids_kind", axis=0)
    found = w.layer_normalised(
        w.added(w.added(words, kinds), w.weight("place.weight", 1, length, width)), "ln", width
    )
    wide = w.node("Unsqueeze", "mask", w.integers("middle", 1, 2))
    one, low = w.value("one", np.array(1, np.float32)), w.value("low", np.array(-10000, np.float32))
    mask = w.node("Mul", w.node("Sub", one, wide), low)
    found = w.layer_normalised(w.added(found, w.attention(found, "attn", width, 2, mask)), "ln1", width)
    found = w.layer_normalised(w.added(found, w.feed_forward(found, "mlp", width)), "ln2", width)
    first = w.node("Gather", found, w.value("first", np.array(0, np.int64)), axis=1)
    pooled = w.node("Tanh", w.linear(first, "pooler", width, width))
    output = w.linear(pooled, "classifier", width, 10)
    return w.model(output, ids=["N", length], ids_kind=["N", length], mask=["N", length])


MODELS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (mlp, lenet, resnet, mobilenet, gpt, lstm, vit, unet, recommender, bert)
}
"""By name, a function that returns the model."""

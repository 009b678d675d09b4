"""Matrix products found in descriptions, on whatever strides, against the interpreter."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.indices.region import to_region
from tofu.operators.cuda.compute import compute
from tofu.operators.cuda.launch.commands import Command, KernelLaunch, MatrixProduct, MemoryCopy
from tofu.operators.cuda.launch.workspace import DeviceWorkspace
from tofu.operators.cuda.vendor.products import product
from tofu.operators.declare import parse
from tofu.operators.kernels.kernel import KernelCall

from ..arrays import guarded_call, random_box
from ..comparison import agree
from ..unit import Unit
from ..vendor_stand_ins import run_product, view_of

PRODUCTS = {
    "row major": ("a[i, k] * b[k, j]", "i, j", "k", {"a": (5, 6), "b": (6, 7)}),
    "transposed": ("a[k, i] * b[j, k]", "i, j", "k", {"a": (6, 5), "b": (7, 6)}),
    "batch": ("a[b0, i, k] * b[b0, k, j]", "b0, i, j", "k", {"a": (3, 5, 6), "b": (3, 6, 7)}),
    "two batches": (
        "a[b0, b1, i, k] * b[b1, k, j, b0]",
        "b0, i, b1, j",
        "k",
        {"a": (2, 3, 4, 5), "b": (3, 5, 6, 2)},
    ),
    "several sums": ("a[i, k, l] * b[l, j, k]", "j, i", "k, l", {"a": (5, 3, 4), "b": (4, 6, 3)}),
    "rows of two": ("a[i, l, k] * b[k, j]", "i, l, j", "k", {"a": (4, 3, 5), "b": (5, 6)}),
    "a vector": ("a[k] * b[k, j]", "j", "k", {"a": (6,), "b": (6, 7)}),
    "overlapping windows": ("a[i + k] * b[j, k]", "i, j", "k", {"a": (9,), "b": (3, 4)}),
    "every other": ("a[2 * i, k] * b[k, j]", "i=3, j", "k", {"a": (6, 5), "b": (5, 4)}),
    "scaled": ("-2.5 * (a[i, k] * b[k, j])", "i, j", "k", {"a": (5, 6), "b": (6, 7)}),
}
NO_PRODUCTS = {
    "a sum": ("a[i, k] + b[k, i]", "i", "k", {"a": (5, 6), "b": (6, 5)}),
    "a batch of dots": ("a[i, k] * b[k, i]", "i", "k", {"a": (5, 6), "b": (6, 5)}),
    "a guarded element": ("pad(a[i - 1, k], 0) * b[k, j]", "i=6, j", "k", {"a": (5, 6), "b": (6, 7)}),
    "a sum of one factor alone": ("a[i, k] * b[k, l]", "i", "k, l", {"a": (5, 6), "b": (6, 3)}),
    "an output of neither": ("a[i, k] * b[k]", "i, j=3", "k", {"a": (5, 6), "b": (6,)}),
    "indices from data": ("a[i, k] * b[a[i, k], j]", "i, j", "k", {"a": (5, 6), "b": (6, 7)}),
}


def bound_to(entry: tuple[str, str, str, dict[str, tuple[int, ...]]]) -> Any:
    body, output, summed, shapes = entry
    text = f"def product(a, b):\n    return lambda {output}: Sum(lambda {summed}: {body})\n"
    return parse(text).bind(shapes)


def device_call(call: KernelCall, types: dict[str, str], output: str) -> KernelCall:
    inputs: Any = {name: view_of(array, types[name]) for name, array in call.inputs.items()}
    outputs: Any = tuple(view_of(array, output) for array in call.outputs)
    return KernelCall(call.bound, call.box, inputs, call.regions, outputs)


def run(commands: tuple[Command, ...], folder: Path) -> None:
    sources = dict.fromkeys(each.source for each in commands if isinstance(each, KernelLaunch))
    unit = Unit(list(sources), folder) if sources else None
    for command in commands:
        match command:
            case KernelLaunch():
                assert unit is not None
                unit.run(command)
            case MemoryCopy(target, source, nbytes):
                ctypes.memmove(target, source, nbytes)
            case MatrixProduct():
                run_product(command)


def prepared(call: KernelCall) -> tuple[tuple[Command, ...], Any]:
    """Commands on scratch that is there, and the scratch."""
    probe = DeviceWorkspace()
    compute(call, probe, lambda command: 0)
    scratch = np.full(probe.used_bytes + 64, 0xFF, np.uint8)
    start = scratch.ctypes.data + -scratch.ctypes.data % 64
    return compute(call, DeviceWorkspace(start), lambda command: 0), scratch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("products")


@pytest.mark.parametrize(
    ("name", "type"),
    [*((name, "float32") for name in PRODUCTS), ("row major", "bfloat16"), ("scaled", "float64")],
)
def test_products_on_random_boxes(name: str, type: str, folder: Path) -> None:
    bound = bound_to(PRODUCTS[name])
    rng = np.random.default_rng(len(name))
    types = {"a": type, "b": type}
    tensors = {key: rng.integers(-4, 5, shape) / 4 for key, shape in bound.shapes.items()}
    found = 0
    for number in range(6):
        box = random_box(bound, rng) if number else bound.full_box
        guarded = guarded_call(bound, box, tensors, types, [type], rng if number % 2 else None)
        call = device_call(guarded.call, types, type)
        guarded.reset()
        commands, scratch = prepared(call)
        found += any(isinstance(command, MatrixProduct) for command in commands)
        run(commands, folder)
        intervals = dict(zip(bound.variables, to_region(box), strict=True))
        (expected,) = tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, box=intervals)
        agree(guarded.call.outputs[0], expected, type, f"{name}, box {number}")
        assert guarded.intact()
        del scratch
    assert found


@pytest.mark.parametrize("name", NO_PRODUCTS)
def test_what_is_no_product_is_left_to_its_own_kernel(name: str) -> None:
    bound = bound_to(NO_PRODUCTS[name])
    rng = np.random.default_rng(0)
    tensors = {key: rng.integers(0, 3, shape).astype(float) for key, shape in bound.shapes.items()}
    types = {"a": "float32", "b": "float32"}
    guarded = guarded_call(bound, bound.full_box, tensors, types, ["float32"], None)
    assert product(device_call(guarded.call, types, "float32")) is None

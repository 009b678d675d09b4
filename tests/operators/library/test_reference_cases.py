"""Cases that MXNet computed, where `TOFU_MXNET_CASES` names a file of them: outputs and input gradients."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.operators import get
from tofu.operators.operator import Operator

CASES = os.environ.get("TOFU_MXNET_CASES")
RECORDS = json.loads(Path(CASES).read_text())["records"] if CASES else []


def arrays(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: array(each) for name, each in given.items()}


def array(given: Mapping[str, Any]) -> np.ndarray:
    return np.reshape(np.array(given["data"], float), given["shape"])


@pytest.mark.skipif(not RECORDS, reason="TOFU_MXNET_CASES names no file")
@pytest.mark.parametrize(
    "record", RECORDS, ids=[f"{number}-{record['op']}" for number, record in enumerate(RECORDS)]
)
def test_case(
    record: Mapping[str, Any], forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    operator, tensors = get(record["op"]), arrays(record["inputs"]) | arrays(record.get("states", {}))
    attributes = dict(record["attrs"])
    if operator.count_attribute is not None:
        attributes.setdefault(operator.count_attribute, len(tensors))
    if "lr" in attributes:
        tensors["lr"] = np.array([attributes.pop("lr")], float)
    shapes = operator.infer(attributes, {name: tensor.shape for name, tensor in tensors.items()})
    for state in operator.auxiliary:
        tensors.setdefault(state, np.ones(shapes[state]))
    for seed in operator.seeds:
        tensors.setdefault(seed, np.zeros(1))
    values = forward(operator, attributes, tensors, record.get("training", True))
    assert len([name for name in values if name.startswith("output_")]) == len(record["outputs"])
    for number, output in enumerate(record["outputs"]):
        compare(values[f"output_{number}"], array(output), f"output {number}")
    for state, expected in record.get("states_after", {}).items():
        compare(updated(operator, attributes, values, state), array(expected), state)
    if record.get("grads") is None:
        return
    heads = tuple(
        np.reshape(np.array(head, float), values[f"output_{number}"].shape)
        for number, head in enumerate(record["head_grads"])
    )
    found = gradients(operator, attributes, tensors, heads)
    for name, numbers in record["grads"].items():
        expected = np.reshape(np.array(numbers, float), tensors[name].shape)
        compare(found.get(name, np.zeros(expected.shape)), expected, f"gradient of {name}", scale=2.5)


def compare(found: np.ndarray, expected: np.ndarray, name: str, scale: float = 1.0) -> None:
    """MXNet computes in float32: an element may err by a small part of the largest one."""
    finite = np.abs(expected[np.isfinite(expected)])
    atol = 2e-6 * scale * max(1.0, finite.max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=2e-5 * scale, atol=atol, err_msg=name)


def updated(
    operator: Operator, attributes: Mapping[str, Any], values: Mapping[str, np.ndarray], state: str
) -> np.ndarray:
    """The state after a training iteration, itself where nothing overwrites it."""
    shapes = {name: values[name].shape for name in (*operator.arguments(attributes), *operator.auxiliary)}
    stage = operator.updates(attributes, shapes).get(state)
    if stage is None:
        return values[state]
    return stage.bind({name: values[name].shape for name in stage.inputs}).compute(values)[0]

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

CASES = os.environ.get("TOFU_MXNET_CASES")
RECORDS = json.loads(Path(CASES).read_text())["records"] if CASES else []


def arrays(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.reshape(np.array(each["data"], float), each["shape"]) for name, each in given.items()}


@pytest.mark.skipif(not RECORDS, reason="TOFU_MXNET_CASES names no file")
@pytest.mark.parametrize(
    "record", RECORDS, ids=[f"{number}-{record['op']}" for number, record in enumerate(RECORDS)]
)
def test_case(
    record: Mapping[str, Any], forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    operator, tensors = get(record["op"]), arrays(record["inputs"])
    attributes = dict(record["attrs"])
    if operator.count_attribute is not None:
        attributes.setdefault(operator.count_attribute, len(tensors))
    shapes = operator.infer(attributes, {name: array.shape for name, array in tensors.items()})
    for state in operator.auxiliary:
        tensors.setdefault(state, np.ones(shapes[state]))
    values = forward(operator, attributes, tensors)
    for number, output in enumerate(record["outputs"]):
        expected = np.reshape(np.array(output["data"], float), output["shape"])
        np.testing.assert_allclose(values[f"output_{number}"], expected, rtol=2e-5, atol=2e-6)
    if record.get("grads") is None:
        return
    heads = tuple(
        np.reshape(np.array(head, float), values[f"output_{number}"].shape)
        for number, head in enumerate(record["head_grads"])
    )
    found = gradients(operator, attributes, tensors, heads)
    for name, expected in record["grads"].items():
        gradient = found.get(name, np.zeros(tensors[name].shape))
        np.testing.assert_allclose(gradient.ravel(), expected, rtol=5e-5, atol=5e-6, err_msg=name)

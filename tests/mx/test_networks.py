"""Network scripts written for MXNet run unchanged, train, and do so over several workers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu.mx as mx

NETWORKS = Path(__file__).with_name("networks")
SHAPE = (3, 16, 16)
CASES = [
    ("plain", {}),
    ("plain", {"batch_norm": False, "dtype": "float16"}),
    ("towers", {}),
    ("residual", {}),
    ("residual", {"memonger": True, "num_group": 1, "dtype": "float16"}),
]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "mxnet", mx)
    yield
    for name in [name for name in sys.modules if name.startswith("mxnet.")]:
        monkeypatch.delitem(sys.modules, name)


def network(name: str, **options: Any) -> Any:
    spec = importlib.util.spec_from_file_location(f"network_{name}", NETWORKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.get_symbol(num_classes=5, **options)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_scripts_train_over_several_workers_as_over_one(name: str, options: dict[str, Any]) -> None:
    with mx.name.NameManager():
        symbol = network(name, **options)
    generator = np.random.default_rng(1)
    images = generator.normal(size=(8, *SHAPE)).astype(np.float32)
    labels = generator.integers(0, 5, 8)
    learned = []
    for workers in (1, 4):
        data = mx.io.NDArrayIter(images, labels, batch_size=4)
        module = mx.mod.Module(symbol, context=[mx.cpu(worker) for worker in range(workers)])
        module.fit(data, num_epoch=1, initializer=mx.init.Xavier(magnitude=2))
        outputs = module.predict(data).asnumpy()
        assert outputs.shape == (8, 5)
        np.testing.assert_allclose(outputs.sum(axis=1), 1, rtol=1e-5)
        learned.append(
            {name: array.asnumpy() for part in module.get_params() for name, array in part.items()}
        )
        module.close()
    for name in learned[0]:
        np.testing.assert_allclose(learned[0][name], learned[1][name], rtol=1e-3, atol=2e-5, err_msg=name)


def test_names_are_those_that_mxnet_gives() -> None:
    """Checked against MXNet 1.9.1, which runs the same scripts."""
    with mx.name.NameManager():
        symbol = network("towers")
    outputs = symbol.get_internals().list_outputs()
    assert outputs[:6] == [
        "data",
        "stem_conv2d_weight",
        "stem_conv2d_output",
        "stem_batchnorm_gamma",
        "stem_batchnorm_beta",
        "stem_batchnorm_moving_mean",
    ]
    assert [name for name in outputs if name[-8:-1] == "0_outpu"] == [
        "pooling0_output",
        "concat0_output",
        "_mulscalar0_output",
        "_plus0_output",
        "activation0_output",
        "flatten0_output",
        "dropout0_output",
    ]


def test_settings_of_a_node() -> None:
    with mx.name.NameManager():
        symbol = network("residual", memonger=True)
    assert symbol.attr_dict()["stage1_unit1_sc"]["__mirror_stage__"] == "True"
    assert symbol.attr_dict()["stage1_unit1_sc"]["mirror_stage"] == "True"

"""The same script gives what MXNet 1.9.1 gives, over one worker and over several."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu.mx as mx

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "mxnet_training.json").read_text(encoding="utf-8"))


@pytest.fixture(params=[1, 3])
def found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setitem(sys.modules, "mxnet", mx)
    spec = importlib.util.spec_from_file_location("training_script", HERE / "training_script.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    results: dict[str, Any] = script.everything([mx.cpu(worker) for worker in range(request.param)])
    return results


def test_training_gives_what_mxnet_gives(found: dict[str, Any]) -> None:
    assert set(found) == set(EXPECTED)
    for case, expected in EXPECTED.items():
        assert [name for name, _ in found[case]["metrics"]] == [name for name, _ in expected["metrics"]]
        for (name, value), (_, wanted) in zip(found[case]["metrics"], expected["metrics"], strict=True):
            assert value == pytest.approx(wanted, abs=5e-5), (case, name)
        for name, values in expected["learned"].items():
            np.testing.assert_allclose(
                found[case]["learned"][name], values, rtol=0, atol=5e-5, err_msg=f"{case}: {name}"
            )
    np.testing.assert_allclose(
        found["by hand"]["predicted"], EXPECTED["by hand"]["predicted"], rtol=0, atol=2e-5
    )

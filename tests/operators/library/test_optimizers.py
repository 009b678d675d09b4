"""Updates of weights against MXNet's formulas written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.operators import get

RNG = np.random.default_rng(14)
WEIGHT, GRAD, FIRST = RNG.normal(size=(3, 2, 3))
SECOND = RNG.uniform(0.1, 1, size=(2, 3))
LR = np.array([0.1])


def update(name: str, tensors: dict[str, np.ndarray], **attributes: float) -> tuple[np.ndarray, ...]:
    shapes = {tensor: array.shape for tensor, array in tensors.items()}
    return get(name).bind(shapes, **attributes).compute(tensors)


def step(wd: float, clip: float, *, decayed: bool = False) -> np.ndarray:
    gradient = 0.5 * GRAD + (wd * WEIGHT if decayed else 0)
    return gradient if clip < 0 else np.clip(gradient, -clip, clip)


@pytest.mark.parametrize("clip", [-1.0, 0.2])
@pytest.mark.parametrize("wd", [0.0, 0.01])
def test_updates(clip: float, wd: float) -> None:
    common = {"wd": wd, "rescale_grad": 0.5, "clip_gradient": clip}
    given = {"weight": WEIGHT, "grad": GRAD, "lr": LR}
    plain = WEIGHT - 0.1 * (step(wd, clip) + wd * WEIGHT)
    np.testing.assert_allclose(update("sgd_update", given, **common)[0], plain)

    weight, momentum = update("sgd_mom_update", {**given, "mom": FIRST}, momentum=0.9, **common)
    np.testing.assert_allclose(momentum, 0.9 * FIRST - 0.1 * (step(wd, clip) + wd * WEIGHT))
    np.testing.assert_allclose(weight, WEIGHT + momentum)

    states = {"mean": FIRST, "var": SECOND}
    weight, mean, var = update(
        "adam_update", {**given, **states}, beta1=0.8, beta2=0.9, epsilon=1e-3, **common
    )
    gradient = step(wd, clip, decayed=True)
    np.testing.assert_allclose(mean, 0.8 * FIRST + 0.2 * gradient)
    np.testing.assert_allclose(var, 0.9 * SECOND + 0.1 * gradient**2)
    np.testing.assert_allclose(weight, WEIGHT - 0.1 * mean / (np.sqrt(var) + 1e-3))


@pytest.mark.parametrize("name", ["sgd_update", "sgd_mom_update", "adam_update"])
def test_updates_may_overwrite_what_they_read(name: str) -> None:
    operator = get(name)
    assert operator.example is not None
    (stage,) = operator.stages({}, operator.example.shapes)
    bound = stage.bind(operator.example.shapes)
    assert set(operator.overwrites) <= bound.in_place
    assert len(operator.overwrites) == len(bound.output_shapes) == len(operator.outputs({}))

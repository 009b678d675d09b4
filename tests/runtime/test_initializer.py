import math

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.initializer import Normal, Uniform, Xavier, initial_value


@pytest.mark.parametrize(
    ("name", "value"),
    [("fc1_bias", 0), ("bn_beta", 0), ("bn_moving_mean", 0), ("bn_gamma", 1), ("bn_moving_var", 1)],
)
def test_by_the_end_of_the_name(name: str, value: int) -> None:
    made = initial_value(name, (4,), Xavier(), 0)
    assert made.tolist() == [value] * 4
    assert made.dtype == np.float32


def test_random_values_depend_on_name_and_seed_alone() -> None:
    first = initial_value("a_weight", (30, 20), Xavier(), 7)
    initial_value("b_weight", (5, 5), Xavier(), 7)
    np.testing.assert_array_equal(first, initial_value("a_weight", (30, 20), Xavier(), 7))
    assert (first != initial_value("b_weight", (30, 20), Xavier(), 7)).any()
    assert (first != initial_value("a_weight", (30, 20), Xavier(), 8)).any()


def test_spread() -> None:
    shape = (64, 32, 3, 3)
    uniform = initial_value("w_weight", shape, Xavier(), 0)
    scale = math.sqrt(3 / ((64 + 32) * 9 / 2))
    assert 0.99 * scale < np.abs(uniform).max() <= scale
    assert abs(uniform.mean()) < scale / 50
    he = initial_value("w_weight", shape, Xavier(2, "in", gaussian=True), 0)
    assert he.std() == pytest.approx(math.sqrt(2 / (32 * 9)), rel=0.02)
    assert initial_value("w_weight", (1000,), Normal(2.0), 0).std() == pytest.approx(2, rel=0.1)
    assert np.abs(initial_value("w_weight", (1000,), Uniform(0.5), 0)).max() <= 0.5


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(DataError, match=r"no initial value for 'scale' of shape \(3,\)"):
        initial_value("scale", (3,), Xavier(), 0)
    with pytest.raises(DataError, match=r"Xavier needs weights \[out, in, ...\], but the shape is \(3,\)"):
        initial_value("a_weight", (3,), Xavier(), 0)
    with pytest.raises(DataError, match=r"factor is 'middle', expected one of in, out, avg"):
        initial_value("a_weight", (3, 3), Xavier(factor="middle"), 0)

import math
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import DataError
from tofu.optimizer import ConstantRate, CosineRate, LinearRate, StepRate, adam, sgd
from tofu.runtime.learning_rate import fed_rate, rate_at


def test_schedules() -> None:
    assert [ConstantRate(0.5)(step) for step in (0, 9)] == [0.5, 0.5]
    cosine = CosineRate(1.0, steps=12, warmup_steps=2, final_rate=0.1)
    assert [cosine(0), cosine(1), cosine(2)] == [0.5, 1.0, 1.0]
    assert cosine(7) == pytest.approx(0.55)
    assert cosine(12) == cosine(100) == pytest.approx(0.1)


def test_adam_is_fed_a_corrected_rate() -> None:
    assert fed_rate(sgd(), 0.1, 0) == 0.1
    settings = adam(beta1=0.9, beta2=0.99)
    assert fed_rate(settings, 0.1, 0) == pytest.approx(0.1 * math.sqrt(0.01) / 0.1)
    assert fed_rate(settings, 0.1, 10_000) == pytest.approx(0.1)


def test_a_linear_rate_rises_and_falls() -> None:
    linear = LinearRate(1.0, steps=12, warmup_steps=2, final_rate=0.5)
    assert [linear(step) for step in (0, 1, 2, 7, 12, 20)] == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.5])


def test_a_rate_changes_at_steps() -> None:
    assert [StepRate(1.0, 0.1, 10)(step) for step in (0, 9, 10, 25)] == pytest.approx([1, 1, 0.1, 0.01])
    at = StepRate(1.0, 0.5, (3, 5))
    assert [at(step) for step in (0, 2, 3, 4, 5, 99)] == pytest.approx([1, 1, 0.5, 0.5, 0.25, 0.25])
    for wrong in (0, (), (2, -1), 1.5):
        with pytest.raises(DataError, match=r"steps is .* give an integer from 1 on, or a tuple of them"):
            StepRate(1.0, 0.5, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ConstantRate("a"), r"rate is 'a' \(str\); give a finite number"),
        (lambda: CosineRate("a", 3), "rate is 'a'"),
        (lambda: CosineRate(0.1, "a"), r"steps is 'a' \(str\); give an integer from 0 on"),
        (lambda: LinearRate(0.1, 3, -1), "warmup_steps is -1"),
        (lambda: LinearRate(0.1, 3, 1, math.nan), "final_rate is nan"),
        (lambda: StepRate("a", 0.1, 2), "rate is 'a'"),
        (lambda: StepRate(0.1, "a", 2), "factor is 'a'"),
    ],
)
def test_settings_of_rates_are_numbers(make: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"^{says}"):
        make()


def test_a_schedule_needs_one_plan() -> None:
    """The rate is fed, so a run with another rate in every step plans its graph once."""
    net = tofu.sym.LinearRegressionOutput(
        tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=1, name="fc"), name="out"
    )
    data = np.ones((8, 3), "f4")
    iterator = tofu.ArrayIterator({"data": data}, {"out_label": data[:, :1]}, 2)
    rates: list[float] = []
    with tofu.Module(net, [tofu.cpu()] * 2) as module:
        module.fit(
            iterator,
            learning_rate=LinearRate(0.1, 4),
            metric="mse",
            on_step=lambda done: rates.append(done.learning_rate),
        )
        assert len(module.plans) == 1
    assert rates == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_a_rate_beyond_all_floats_is_refused() -> None:
    with pytest.raises(DataError, match=r"the learning rate of step 400 is inf \(float\); give a finite num"):
        rate_at(StepRate(0.1, 10.0, 1), 400)

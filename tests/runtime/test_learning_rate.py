import math

import pytest

from tofu.dataflow.optimizer import adam, sgd
from tofu.runtime.learning_rate import ConstantRate, CosineRate, fed_rate


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

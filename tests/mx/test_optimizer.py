"""Optimizers as settings, and schedules by their definitions."""

from __future__ import annotations

import math

import pytest

import tofu.mx as mx
from tofu.mx.lr_scheduler import CosineScheduler, FactorScheduler, MultiFactorScheduler, PolyScheduler


def test_settings_are_those_of_an_update_operator() -> None:
    sgd = mx.optimizer.create("sgd", momentum=0.5, wd=0.1, clip_gradient=2, rescale_grad=0.25).settings
    assert (sgd.operator, dict(sgd.attributes)) == ("sgd_mom_update", {"momentum": 0.5, "clip_gradient": 2.0})
    assert (sgd.weight_decay, sgd.rescale) == (0.1, 0.25)
    assert mx.optimizer.SGD().settings.operator == "sgd_update"
    assert mx.optimizer.Adam(beta1=0.8).settings.attributes["beta1"] == 0.8
    assert mx.optimizer.AdamW().settings.operator == "adamw_update"
    assert mx.optimizer.RMSProp(clip_weights=3).settings.attributes["clip_weights"] == 3
    assert mx.optimizer.RMSProp(centered=True).settings.attributes["gamma2"] == 0.9
    adam = mx.optimizer.Adam()
    assert mx.optimizer.create(adam) is adam
    adam.set_wd_mult({"fc_bias": 0})
    assert dict(adam.settings.decay_multipliers) == {"fc_bias": 0}
    assert (adam.learning_rate, mx.optimizer.SGD().learning_rate) == (0.001, 0.01)


def test_the_rate_may_be_set_unless_a_schedule_decides() -> None:
    optimizer = mx.optimizer.SGD(learning_rate=0.1)
    optimizer.set_learning_rate(0.5)
    assert optimizer.rate(3) == 0.5
    scheduled = mx.optimizer.SGD(learning_rate=0.8, lr_scheduler=FactorScheduler(10, 0.5))
    assert (scheduled.rate(1), scheduled.rate(11)) == (0.8, 0.4)
    with pytest.raises(mx.MXNetError, match="decided by lr_scheduler"):
        scheduled.set_learning_rate(1)
    assert mx.optimizer.SGD(lr_scheduler=lambda update: update / 10).rate(3) == 0.3
    with pytest.raises(mx.MXNetError, match=r"call Module\.update"):
        optimizer.update(0, None, None, None)


def test_schedules() -> None:
    factor = FactorScheduler(step=10, factor=0.1, stop_factor_lr=0.005, base_lr=1.0)
    assert [factor(update) for update in (1, 10, 11, 21, 31, 1000)] == pytest.approx(
        [1, 1, 0.1, 0.01, 0.005, 0.005]
    )
    factors = MultiFactorScheduler([2, 5], 0.1, base_lr=1.0)
    assert [factors(update) for update in (1, 2, 3, 5, 6)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    poly = PolyScheduler(10, base_lr=1.0, final_lr=0.5)
    assert [poly(update) for update in (0, 5, 10, 20)] == pytest.approx([1, 0.625, 0.5, 0.5])
    cosine = CosineScheduler(10, base_lr=1.0)
    assert [cosine(update) for update in (0, 5, 10)] == pytest.approx([1, 0.5, 0])


def test_warm_up() -> None:
    poly = PolyScheduler(12, base_lr=1.0, pwr=1, warmup_steps=2, warmup_begin_lr=0.5)
    assert [poly(update) for update in (0, 1, 2, 7)] == pytest.approx([0.5, 0.75, 1.0, 0.5])
    still = FactorScheduler(5, 0.5, base_lr=1.0, warmup_steps=2, warmup_begin_lr=0.1, warmup_mode="constant")
    assert [still(update) for update in (0, 1, 2)] == pytest.approx([0.1, 0.1, 1.0])
    assert math.isclose(still(6), 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorScheduler(0), "step is 0 and factor 1.0"),
        (lambda: FactorScheduler(2, 1.5), "step is 2 and factor 1.5"),
        (lambda: MultiFactorScheduler([3, 2]), "expected rising steps"),
        (lambda: FactorScheduler(2, warmup_mode="cubic"), "warmup_mode is 'cubic'"),
    ],
)
def test_schedules_that_make_no_sense(make: object, message: str) -> None:
    with pytest.raises(mx.MXNetError, match=message):
        make()  # type: ignore[operator]

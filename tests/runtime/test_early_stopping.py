"""Runs that end before all epochs, because a metric gets no better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import DataError
from tofu.optimizer import EarlyStopping
from tofu.runtime.metrics import get_metric
from tofu.runtime.progress import Epoch

LOSS = get_metric("cross-entropy")
ACCURACY = get_metric("accuracy")


def history(*values: float, held_out: bool = True, name: str = "cross-entropy") -> list[Epoch]:
    measured: list[dict[str, float]] = [{name: value} for value in values]
    empty: dict[str, float] = {}
    return [
        Epoch(number, empty if held_out else each, each if held_out else empty, 1.0)
        for number, each in enumerate(measured)
    ]


@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((), False),
        ((3.0, 2.0, 1.0), False),
        ((3.0, 2.0, 2.5), False),
        ((3.0, 2.0, 2.5, 2.0), True),
        ((3.0, 2.0, 2.5, 1.9), False),
        ((3.0, 2.0, 2.5, 1.9, float("nan"), float("nan")), True),
        ((float("nan"), 2.0, 1.5), False),
    ],
)
def test_losses_fall(values: tuple[float, ...], ends: bool, held_out: bool) -> None:
    found = history(*values, held_out=held_out)
    assert EarlyStopping(2).ends(found, [LOSS, ACCURACY]) == ends


def test_accuracies_rise_by_more_than_the_least_gain() -> None:
    rising = history(0.5, 0.6, 0.62, 0.65, name="accuracy")
    assert not EarlyStopping(2, "accuracy").ends(rising, [LOSS, ACCURACY])
    assert EarlyStopping(2, "accuracy", least_gain=0.09).ends(rising, [LOSS, ACCURACY])


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match=r"patience is 0 .* give an integer from 1 on"):
        EarlyStopping(0)
    with pytest.raises(DataError, match=r"least_gain is -1 .* give a number from 0 on"):
        EarlyStopping(least_gain=-1)
    with pytest.raises(DataError, match=r"needs the metric 'acuracy', .* did you mean 'accuracy'"):
        EarlyStopping(metric="acuracy").chosen([ACCURACY])
    with pytest.raises(DataError, match=r"needs a metric, but the run measures nothing; name it in metric="):
        EarlyStopping().chosen([])


def trained(folder: Path | None = None, **options: Any) -> list[Epoch]:
    """Train with a rate of zero, so that no epoch is better than the first."""
    generator = np.random.default_rng(3)
    net = tofu.sym.SoftmaxOutput(
        tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=3, name="fc"), name="softmax"
    )
    iterator = tofu.ArrayIterator(
        {"data": generator.normal(size=(8, 5)).astype("f4")},
        {"softmax_label": generator.integers(0, 3, 8).astype("f4")},
        4,
    )
    with tofu.Module(net) as module:
        return module.fit(iterator, iterator, num_epoch=9, learning_rate=0.0, checkpoint=folder, **options)


def test_a_run_ends_and_its_resumption_too(tmp_path: Path) -> None:
    stopping = EarlyStopping(2)
    assert len(trained(tmp_path / "run", early_stopping=stopping)) == 3
    assert len(trained(tmp_path / "run", early_stopping=stopping, resume=True)) == 3
    assert len(trained(tmp_path / "run", early_stopping=EarlyStopping(4), resume=True)) == 5
    assert len(trained()) == 9
    with pytest.raises(DataError, match=r"early_stopping is 3 \(int\); give a tofu.optimizer.EarlyStopping"):
        trained(early_stopping=3)
    with pytest.raises(DataError, match=r"needs the metric 'mse', but the run measures accuracy"):
        trained(early_stopping=EarlyStopping(metric="mse"))

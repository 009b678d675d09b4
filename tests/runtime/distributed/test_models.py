"""Whole models over several processes: twenty steps, the optimizer's state and checkpoints of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.models.model import Model
from tofu.runtime.distributed.processes import Processes

from .forked import results
from .test_training import kept

BATCH = 12
SAMPLES = 5 * BATCH - 3
"""Five batches, the last of which is not full."""

EPOCHS = 4
"""Twenty steps."""


def wresnet() -> Model:
    return tofu.models.get("wresnet-10-2", batch=BATCH, image=(3, 16, 16), classes=10)


def transformer() -> Model:
    return tofu.models.get("gpt-2-64", batch=BATCH, steps=16, vocabulary=64)


def small_transformer() -> Model:
    return tofu.models.get("gpt-1-24", batch=BATCH, steps=6, vocabulary=18, heads=2)


METHODS = {"small transformer": "data-parallel"}
"""The search methods of models; `recursive` for others, which takes longer to search and to prepare."""

MODELS = {"wresnet-10-2": wresnet, "transformer": transformer, "small transformer": small_transformer}


def data_for(model: Model) -> tofu.ArrayIterator:
    draw = np.random.default_rng(11)
    shape, labels = model.shapes["data"][1:], model.shapes["softmax_label"][1:]
    if labels:
        tokens = draw.integers(0, 18, (SAMPLES, shape[0] + 1))
        data, label = tokens[:, :-1], tokens[:, 1:]
    else:
        data, label = draw.standard_normal((SAMPLES, *shape)), draw.integers(0, 10, SAMPLES)
    return tofu.ArrayIterator(data.astype(np.float32), label, BATCH, shuffle=True, seed=2)


def trained(context: Any, name: str, folder: Path, epochs: int, resume: bool = False) -> dict[str, bytes]:
    """Train, and return the weights; the folder has the optimizer's state."""
    model = MODELS[name]()
    method = METHODS.get(name, "recursive")
    with tofu.Module(model.symbol, context, parameters=model.start, method=method, seed=7) as module:
        module.fit(
            data_for(model),
            num_epoch=epochs,
            optimizer="adam",
            learning_rate=0.003,
            metric="cross-entropy",
            checkpoint=folder,
            resume=resume,
        )
        return {key: value.tobytes() for key, value in module.parameters().items()}


def alone(workers: int) -> list[Any]:
    return [tofu.cpu(worker) for worker in range(workers)]


def several(count: int, name: str, folder: Path, epochs: int, resume: bool = False) -> list[Any]:
    def work(processes: Processes) -> dict[str, bytes]:
        return trained(processes, name, folder, epochs, resume)

    return results(count, work, patience_seconds=600)


@pytest.mark.parametrize(
    ("name", "count"), [(name, count) for name in ("wresnet-10-2", "transformer") for count in (2, 3, 4, 6)]
)
@pytest.mark.slow
def test_twenty_steps_have_the_bits_of_one_process(tmp_path: Path, name: str, count: int) -> None:
    expected = trained(alone(count), name, tmp_path / "alone", EPOCHS)
    for found in several(count, name, tmp_path / "several", EPOCHS):
        assert found == expected
    assert kept(tmp_path / "several") == kept(tmp_path / "alone")


@pytest.mark.parametrize(
    "name",
    [
        "small transformer",
        pytest.param("wresnet-10-2", marks=pytest.mark.slow),
        pytest.param("transformer", marks=pytest.mark.slow),
    ],
)
def test_four_then_three_then_six_processes(tmp_path: Path, name: str) -> None:
    """Plans of different numbers of workers have other sums, so each run is compared with one process."""
    many, one = tmp_path / "many", tmp_path / "one"
    for epochs, count in enumerate((4, 3, 6), 1):
        expected = trained(alone(count), name, one, epochs, resume=epochs > 1)
        for found in several(count, name, many, epochs, resume=epochs > 1):
            assert found == expected
        assert kept(many) == kept(one)
    # one process goes on with what six have saved, and six with what one has
    again = trained(alone(1), name, many, 4, resume=True)
    assert again == trained(alone(1), name, one, 4, resume=True)
    assert several(6, name, one, 5, resume=True)[0] == trained(alone(6), name, many, 5, resume=True)

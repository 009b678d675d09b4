"""Training that stops and continues gives what training without a stop gives."""

from __future__ import annotations

import math
import os
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import adam, sgd
from tofu.errors import DataError
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.checkpoint_file import Checkpoint
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator, Batch, Batches
from tofu.runtime.learning_rate import CosineRate
from tofu.runtime.module import Epoch, Progress, TrainableModule

from .lowering import lowered

EPOCHS = 3


def module(workers: int) -> TrainableModule:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc1")
        net = sym.BatchNorm(net, fix_gamma=False, name="bn1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.FullyConnected(net, num_hidden=4, name="fc2")
        net = sym.SoftmaxOutput(net, name="softmax")
    return TrainableModule(net, [cpu(i) for i in range(workers)], lower=lowered)


def batches(seed: int = 5) -> ArrayIterator:
    data = np.random.default_rng(1).standard_normal((90, 12)).astype(np.float32)
    return ArrayIterator(data, data[:, :4].argmax(axis=1), 16, shuffle=True, seed=seed)


class Run:
    """One call of fit, with everything it reports."""

    def __init__(self, workers: int, epochs: int = EPOCHS, seed: int = 5, **settings: Any) -> None:
        self.steps: list[Progress] = []
        self.stop_at = settings.pop("stop_at", -1)
        with module(workers) as trained:
            try:
                self.epochs: list[Epoch] = trained.fit(
                    batches(seed),
                    batches(6),
                    num_epoch=epochs,
                    optimizer=adam(),
                    learning_rate=CosineRate(0.01, 18),
                    metric=("cross-entropy", "accuracy"),
                    on_step=self.on_step,
                    **settings,
                )
            finally:
                self.parameters = trained.parameters()

    def on_step(self, step: Progress) -> None:
        self.steps.append(step)
        if step.step == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)

    @property
    def losses(self) -> list[float]:
        return [step.metrics["cross-entropy"] for step in self.steps]

    @property
    def reported(self) -> list[Any]:
        return [(epoch.number, epoch.training, epoch.evaluation) for epoch in self.epochs]


@pytest.fixture(scope="module")
def uninterrupted() -> Run:
    return Run(4)


def test_after_an_epoch(tmp_path: Path, uninterrupted: Run) -> None:
    first = Run(4, epochs=1, checkpoint=tmp_path)
    second = Run(4, checkpoint=tmp_path, resume=True)
    assert first.losses + second.losses == uninterrupted.losses
    assert second.reported == uninterrupted.reported
    for name, value in uninterrupted.parameters.items():
        np.testing.assert_array_equal(second.parameters[name], value)


def test_a_relative_folder_stays_where_fit_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    Run(1, checkpoint="kept", on_epoch=lambda _: os.chdir(other))
    assert list(other.iterdir()) == []
    assert len(CheckpointFolder(tmp_path / "kept").load().state["standing"]["history"]) == EPOCHS


@pytest.mark.parametrize("stop_at", [1, 6, 8, 18])
def test_interrupted_from_the_keyboard(tmp_path: Path, uninterrupted: Run, stop_at: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Run(4, checkpoint=tmp_path, stop_at=stop_at)
    assert signal.getsignal(signal.SIGINT) is before
    second = Run(4, checkpoint=tmp_path, resume=True)
    assert second.losses == uninterrupted.losses[stop_at:]
    assert second.reported == uninterrupted.reported


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_over_another_number_of_workers(tmp_path: Path, uninterrupted: Run, workers: int) -> None:
    Run(4, epochs=1, checkpoint=tmp_path)
    saved = dict(CheckpointFolder(tmp_path).load().tensors)
    (path,) = CheckpointFolder(tmp_path).paths()
    path = path.rename(tmp_path / "checkpoint-000007.safetensors")
    with pytest.raises(DataError, match="with data"):
        Run(workers, checkpoint=tmp_path, resume=True, seed=9)
    same = Run(workers, epochs=1, checkpoint=tmp_path, resume=True)
    assert not same.steps
    for name, value in same.parameters.items():
        assert value.tobytes() == saved[name].tobytes()
    more = Run(workers, checkpoint=tmp_path, resume=True)
    np.testing.assert_allclose(more.losses, uninterrupted.losses[6:], rtol=1e-4)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_what_eight_workers_save_any_number_takes_up(tmp_path: Path, workers: int) -> None:
    Run(8, epochs=1, checkpoint=tmp_path)
    saved = CheckpointFolder(tmp_path).load()
    again = Run(workers, epochs=1, checkpoint=tmp_path, resume=True)
    assert again.parameters
    for name, value in again.parameters.items():
        assert value.tobytes() == saved.tensors[name].tobytes()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no checkpoint"):
        Run(1, checkpoint=tmp_path / "none", resume=True)
    with pytest.raises(DataError, match="name it as checkpoint"):
        Run(1, resume=True)
    Run(1, epochs=1, checkpoint=tmp_path)
    with pytest.raises(DataError, match="already holds checkpoints"):
        Run(1, epochs=1, checkpoint=tmp_path)
    metrics = ("cross-entropy", "accuracy")
    with (
        module(1) as other,
        pytest.raises(DataError, match=r"made with optimizer\.operator adam_update, but this run has sgd"),
    ):
        other.fit(batches(), metric=metrics, checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("name", "hidden", "says"),
    [
        ("fc0", 16, "is not in the checkpoint"),
        ("fc1", 8, r"\(8, 12\) in this model but \(16, 12\) in the checkpoint"),
    ],
)
def test_another_model_is_refused_as_such(tmp_path: Path, name: str, hidden: int, says: str) -> None:
    Run(1, epochs=1, checkpoint=tmp_path)
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=hidden, name=name)
        net = sym.SoftmaxOutput(net, name="softmax")
    with (
        TrainableModule(net, cpu(0), lower=lowered) as other,
        pytest.raises(DataError, match=f"by a different model: '{name}_weight' has shape .*{says}"),
    ):
        other.fit(batches(), checkpoint=tmp_path, resume=True)


def test_other_data_of_the_same_shape_are_refused(tmp_path: Path) -> None:
    first = batches()
    other = ArrayIterator(first.data["data"] + 1, first.label["softmax_label"], 16, shuffle=True, seed=5)
    with module(1) as trained:
        trained.fit(first, checkpoint=tmp_path)
    with (
        module(1) as trained,
        pytest.raises(DataError, match=r"made with data\.checksum \d+, but this run has"),
    ):
        trained.fit(other, checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, "its entry 'settings' is missing or not an object"),
        ({"settings": 5}, "its entry 'settings' is missing or not an object"),
        ({"standing": []}, "its entry 'standing' is missing or not an object"),
        ({"standing": {"batch": 0}}, "standing lacks 'rate_step'"),
    ],
)
def test_states_of_other_versions_are_refused(tmp_path: Path, state: dict[str, Any], says: str) -> None:
    """Their checksums are right."""
    Run(1, epochs=1, checkpoint=tmp_path)
    folder = CheckpointFolder(tmp_path)
    kept = folder.load()
    folder.save(Checkpoint(kept.tensors, {**kept.state, **state} if state else {}))
    with pytest.raises(DataError, match=rf"does not hold a run of this version of Tofu: {says}"):
        Run(1, checkpoint=tmp_path, resume=True)


def test_a_run_goes_on_without_memory_for_the_checkpoint(tmp_path: Path) -> None:
    """Tensors are checked in small pieces, and mapped from the file one at a time."""
    tensors = {f"w{number}": np.full((1 << 20,), number, np.float32) for number in range(8)}
    CheckpointFolder(tmp_path).save(Checkpoint(tensors, {}))
    written = dict.fromkeys(tensors, 0.0)
    tracemalloc.start()
    try:
        found = CheckpointFolder(tmp_path).load()
        for name in found.forms:
            (part,) = found.parts(name, [((5, 7),)])
            written[name] = float(part.sum())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written == {name: 2 * float(array[0]) for name, array in tensors.items()}
    assert peak < tensors["w0"].nbytes


class OwnBatches(Batches):
    """Batches whose shapes and settings a user states."""

    def __init__(self, own: Any) -> None:
        self._inner, self._own = batches(), own

    @property
    def shapes(self) -> dict[str, Any]:
        return {name: tuple(np.array(shape)) for name, shape in self._inner.shapes.items()}

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "own": self._own}

    def __len__(self) -> int:
        return len(self._inner)

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        return self._inner.epoch(number)


def numbered() -> ArrayIterator:
    """Return batches whose settings are NumPy's numbers."""
    arrays = batches()
    size, shuffle, seed = np.int64(16), np.bool_(True), np.int64(5)
    return ArrayIterator(arrays.data, arrays.label, size, shuffle=shuffle, seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [numbered(), OwnBatches(math.nan)], ids=["NumPy's numbers", "own"])
def test_settings_may_be_numbers_of_numpy_and_nan(tmp_path: Path, data: Batches) -> None:
    settings = sgd(np.float32(0.5), np.float32(0.01), np.float32(0.1))  # type: ignore[arg-type]
    for epochs in (1, 2):
        with module(2) as trained:
            done = trained.fit(
                data, optimizer=settings, num_epoch=epochs, checkpoint=tmp_path, resume=epochs == 2
            )
        assert len(done) == epochs


def test_settings_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    with module(1) as trained, pytest.raises(DataError, match=r"setting data\.own is array\(\[1, 2\]\)"):
        trained.fit(OwnBatches(np.array([1, 2])), checkpoint=tmp_path)


def test_a_name_that_no_checkpoint_can_hold_is_refused_at_once(tmp_path: Path) -> None:
    weight, steps = sym.Variable("__metadata__"), list[Progress]()
    net = sym.FullyConnected(sym.Variable("data"), weight, num_hidden=4, no_bias=True)
    with (
        TrainableModule(sym.SoftmaxOutput(net, name="softmax"), cpu(0), lower=lowered) as trained,
        pytest.raises(DataError, match="no checkpoint can hold a tensor named '__metadata__'"),
    ):
        trained.fit(batches(), checkpoint=tmp_path, on_step=steps.append)
    assert not steps


def test_running_statistics_of_several_calls(tmp_path: Path) -> None:
    """Two calls update the same states one after the other."""
    with NameScope():
        states = [sym.Variable(f"bn_{state}") for state in ("gamma", "beta", "moving_mean", "moving_var")]
        fc = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
        calls = [sym.BatchNorm(each, *states, fix_gamma=False) for each in (fc, 2 * fc)]
        net = sym.SoftmaxOutput(calls[0] + calls[1], name="softmax")

    def run(epochs: int, **settings: Any) -> dict[str, Any]:
        with TrainableModule(net, [cpu(i) for i in range(4)], lower=lowered) as trained:
            trained.fit(batches(), num_epoch=epochs, optimizer=adam(), **settings)
            return trained.parameters()

    run(1, checkpoint=tmp_path)
    continued, whole = run(EPOCHS, checkpoint=tmp_path, resume=True), run(EPOCHS)
    assert continued.keys() == whole.keys()
    for name, value in whole.items():
        assert np.array_equal(continued[name], value)

"""Modules whose iterations failed or were interrupted: no value is returned that is not the newest one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu import sym
from tofu.errors import ExecutionError
from tofu.operators.kernels.kernel import Array

DATA = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
UNDEFINED = r"iteration stopped halfway, so the values of 'fc_bias' and others are undefined; resume from"


class Doubled:
    """An operator that fails on request: it raises `error` once."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __call__(self, value: Array) -> Array:
        error, self.error = self.error, None
        if error is not None:
            raise error
        doubled: Array = value * 2
        return doubled

    def module(self) -> tofu.Module:
        text = "def double(x):\n    F = Opaque()\n    return lambda b, i: F(x[b, :])[i]"
        opaque = {"F": tofu.Differentiable(self, lambda head, *_: head * 2)}
        body = sym.apply(tofu.parse(text, opaque=opaque), sym.Variable("data"))
        net = sym.SoftmaxOutput(sym.FullyConnected(body, num_hidden=4, name="fc"), name="softmax")
        return tofu.Module(net, [tofu.cpu(0), tofu.cpu(1)])


@pytest.fixture
def doubled() -> Doubled:
    return Doubled()


@pytest.fixture
def failed(doubled: Doubled) -> Iterator[tofu.Module]:
    """A module that was trained, and whose last iteration failed."""
    with doubled.module() as module:
        module.fit(batches(), num_epoch=2)
        doubled.error = ValueError("no such luck")
        with pytest.raises(ExecutionError, match="no such luck"):
            module.fit(batches())
        yield module


def batches(size: int = 8) -> tofu.ArrayIterator:
    return tofu.ArrayIterator(DATA, DATA.argmax(1), size)


USES: dict[str, Callable[[tofu.Module], object]] = {
    "parameters": tofu.Module.parameters,
    "score": lambda module: module.score(batches()),
    "predict": lambda module: module.predict(batches(4)),
    "fit": lambda module: module.fit(batches()),
    "another optimizer": lambda module: module.fit(batches(), optimizer="adam"),
    "another batch": lambda module: module.fit(batches(4)),
    "bind": lambda module: module.bind(batches().shapes, "adam"),
    "gradients": lambda module: module.evaluator(batches().shapes, ["fc_weight"]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("close", [None, True, False])
def test_values_are_undefined_after_an_iteration_that_failed(
    failed: tofu.Module, use: Callable[[tofu.Module], object], close: bool | None
) -> None:
    if close is not None:
        failed.close(keep=close)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=UNDEFINED):
            use(failed)


@pytest.mark.parametrize("close", [False, True])
def test_values_that_are_given_are_defined(failed: tofu.Module, close: bool) -> None:
    values = {"fc_weight": np.eye(4, dtype=np.float32), "fc_bias": np.zeros(4, np.float32)}
    if close:
        failed.close()
    failed.set_parameters({"fc_weight": values["fc_weight"]})
    with pytest.raises(ExecutionError, match=r"values of 'fc_bias' are undefined"):
        failed.parameters()
    failed.set_parameters(values)
    for name, value in failed.parameters().items():
        np.testing.assert_array_equal(value, values[name])
    assert failed.score(batches()) == {"accuracy": 1.0}
    failed.fit(batches())
    assert not np.array_equal(failed.parameters()["fc_weight"], values["fc_weight"])


@pytest.mark.parametrize("close", [False, True])
def test_values_of_a_checkpoint_are_defined(doubled: Doubled, tmp_path: Path, close: bool) -> None:
    def fail(done: tofu.Progress) -> None:
        doubled.error = ValueError("no such luck") if done.step == 3 else None

    with doubled.module() as whole, doubled.module() as module:
        with pytest.raises(ExecutionError, match="no such luck"):
            module.fit(batches(), num_epoch=3, checkpoint=tmp_path, on_step=fail)
        if close:
            module.close()
        module.fit(batches(), num_epoch=3, checkpoint=tmp_path, resume=True)
        whole.fit(batches(), num_epoch=3)
        for name, value in whole.parameters().items():
            np.testing.assert_array_equal(module.parameters()[name], value)


@pytest.mark.parametrize(
    "error", [ValueError("no such luck"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
def test_a_failed_evaluation_leaves_the_module_usable(doubled: Doubled, error: BaseException) -> None:
    with doubled.module() as module:
        module.fit(batches())
        expected, values = module.predict(batches()), module.parameters()
        doubled.error = error
        with pytest.raises(ExecutionError, match=type(error).__name__):
            module.predict(batches())
        np.testing.assert_array_equal(module.predict(batches()), expected)
        for name, value in module.parameters().items():
            np.testing.assert_array_equal(value, values[name])


def test_the_first_interrupt_lets_the_iteration_end(doubled: Doubled) -> None:
    """Without checkpoints as well. The values are those of a run of as many iterations."""
    with doubled.module() as module, doubled.module() as whole:
        executor = module.bind(batches().shapes)
        run, runs = executor.run, []

        def signalled(*given: object, **named: object) -> object:
            runs.append(signal.raise_signal(signal.SIGINT))
            return run(*given, **named)  # type: ignore[arg-type]

        executor.run = signalled  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            module.fit(batches(), num_epoch=2)
        assert len(runs) == 1
        whole.fit(tofu.ArrayIterator(DATA[:8], DATA[:8].argmax(1), 8))
        for name, value in whole.parameters().items():
            np.testing.assert_array_equal(module.parameters()[name], value)


def test_values_stay_undefined_if_there_is_no_checkpoint(failed: tofu.Module, tmp_path: Path) -> None:
    with pytest.raises(tofu.errors.DataError):
        failed.fit(batches(), checkpoint=tmp_path, resume=True)
    with pytest.raises(ExecutionError, match=UNDEFINED):
        failed.parameters()
    with pytest.raises(ExecutionError, match=UNDEFINED):
        failed.fit(batches())

"""Training: steps of optimizers as PyTorch takes them, on 1 and 8 workers, and weights back into modules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

import tofu  # noqa: E402
from tests.importers.torch.agreement import fed, require_close  # noqa: E402
from tests.importers.torch.models import Gpt, Residual, normal, whole  # noqa: E402
from tofu.optimizer import Optimizer, adam, adamw, sgd  # noqa: E402

pytestmark = pytest.mark.torch
STEPS = 10


class Regression(torch.nn.Module):
    """A residual network with batch normalisation, and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Residual()

    def forward(self, image: Any, label: Any) -> Any:
        return torch.nn.functional.cross_entropy(self.network(image), label)


class TwoViews(torch.nn.Module):
    """The distance of two batches, normalised one after the other. The second is first in the symbol."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = torch.nn.Conv1d(3, 4, 3)
        self.norm = torch.nn.BatchNorm1d(4, momentum=0.3)

    def encoded(self, x: Any) -> Any:
        return torch.relu(self.norm(self.filters(x)))

    def forward(self, second: Any, first: Any) -> Any:
        left = self.encoded(first)
        right = self.encoded(second)
        return (torch.sigmoid(right) - self.norm(left)).square().mean()


def trained_by_torch(
    module: Any,
    batches: list[Any],
    make: Callable[[Any], Any],
    clip_norm: float | None = None,
    clip_value: float | None = None,
) -> Any:
    """Return a copy of the module after a step for each batch."""
    trained = copy.deepcopy(module)
    optimizer = make(trained.parameters())
    for batch in batches:
        optimizer.zero_grad()
        trained(*batch).backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(trained.parameters(), clip_norm)
        if clip_value is not None:
            torch.nn.utils.clip_grad_value_(trained.parameters(), clip_value)
        optimizer.step()
    return trained


def trained_by_tofu(module: Any, batches: list[Any], optimizer: Optimizer, rate: float, workers: int) -> Any:
    """Return a copy of the module after a step for each batch, partitioned over workers."""
    symbol, parameters = tofu.from_torch(module, batches[0])
    feeds = [fed(symbol, parameters, batch) for batch in batches]
    arrays = {name: np.concatenate([each[name] for each in feeds]) for name in feeds[0]}
    data, label = ({name: arrays[name]} for name in arrays)
    iterator = tofu.ArrayIterator(data, label, batches[0][0].shape[0])
    context = [tofu.cpu()] * workers
    with tofu.Module(symbol, context=context, parameters=parameters) as run:
        run.fit(iterator, optimizer=optimizer, learning_rate=rate, metric=[])
        return tofu.to_torch(copy.deepcopy(module), symbol, run.parameters())


def require_equal_states(expected: Any, found: Any, rounding: float) -> None:
    """Compare parameters and running statistics."""
    states = found.state_dict()
    for name, value in expected.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            require_close(value.numpy(), states[name].numpy(), name, rounding)


@pytest.mark.parametrize("workers", [1, 8])
def test_ten_steps_of_sgd_with_running_statistics(workers: int) -> None:
    torch.manual_seed(0)
    module = Regression()
    batches = [(normal(8, 3, 8, 8), whole(5, 8)) for _ in range(STEPS)]
    optimizer = sgd(momentum=0.9, weight_decay=0.01, rescale=1.0)
    expected = trained_by_torch(
        module, batches, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01)
    )
    found = trained_by_tofu(module, batches, optimizer, 0.05, workers)
    require_equal_states(expected, found, 1e-4)


@pytest.mark.parametrize("workers", [1, 8])
def test_ten_steps_with_statistics_that_several_calls_update(workers: int) -> None:
    torch.manual_seed(0)
    module = TwoViews()
    batches = [(normal(8, 3, 6), normal(8, 3, 6) * 2 + 1) for _ in range(STEPS)]
    optimizer = sgd(momentum=0.9, rescale=1.0)
    expected = trained_by_torch(module, batches, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9))
    found = trained_by_tofu(module, batches, optimizer, 0.05, workers)
    require_equal_states(expected, found, 1e-4)


@pytest.mark.parametrize("workers", [1, 8])
def test_ten_steps_with_tied_weights(workers: int) -> None:
    torch.manual_seed(0)
    module = Gpt()
    batches = [(whole(24, 4, 8), whole(24, 4, 8)) for _ in range(STEPS)]
    optimizer = sgd(momentum=0.9, rescale=1.0)
    expected = trained_by_torch(module, batches, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))
    found = trained_by_tofu(module, batches, optimizer, 0.1, workers)
    assert found.head.weight is found.tokens.weight
    require_equal_states(expected, found, 1e-4)


@pytest.mark.parametrize("workers", [1, 8])
def test_ten_steps_of_adam_with_clipped_gradients(workers: int) -> None:
    """Epsilon is large enough that adding it before the correction, as MXNet does, gives other weights."""
    torch.manual_seed(0)
    module = Regression()
    batches = [(normal(8, 3, 8, 8), whole(5, 8)) for _ in range(STEPS)]
    expected = trained_by_torch(
        module, batches, lambda p: torch.optim.Adam(p, 0.01, eps=1e-3, weight_decay=0.1), clip_norm=0.5
    )
    for mode in ("torch", "mxnet"):
        optimizer = adam(epsilon=1e-3, weight_decay=0.1, rescale=1.0, epsilon_mode=mode, clip_norm=0.5)
        found = trained_by_tofu(module, batches, optimizer, 0.01, workers)
        if mode == "torch":
            require_equal_states(expected, found, 1e-4)
        else:
            with pytest.raises(AssertionError):
                require_equal_states(expected, found, 1e-4)


def test_values_of_gradients_are_clipped_before_weights_decay() -> None:
    torch.manual_seed(0)
    module = Regression()
    batches = [(normal(8, 3, 8, 8), whole(5, 8)) for _ in range(STEPS)]
    expected = trained_by_torch(
        module, batches, lambda p: torch.optim.Adam(p, 0.01, eps=1e-3, weight_decay=0.1), clip_value=0.02
    )
    optimizer = adam(epsilon=1e-3, weight_decay=0.1, rescale=1.0, epsilon_mode="torch", clip_value=0.02)
    found = trained_by_tofu(module, batches, optimizer, 0.01, workers=2)
    require_equal_states(expected, found, 1e-4)


@pytest.mark.parametrize("workers", [1, 8])
def test_ten_steps_of_adamw(workers: int) -> None:
    torch.manual_seed(0)
    module = Regression()
    batches = [(normal(8, 3, 8, 8), whole(5, 8)) for _ in range(STEPS)]
    expected = trained_by_torch(
        module, batches, lambda p: torch.optim.AdamW(p, 0.01, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.1)
    )
    optimizer = adamw(beta1=0.8, beta2=0.99, epsilon=1e-3, weight_decay=0.1, rescale=1.0)
    found = trained_by_tofu(module, batches, optimizer, 0.01, workers)
    require_equal_states(expected, found, 1e-4)

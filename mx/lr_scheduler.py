"""`mx.lr_scheduler`: learning rates as functions of the number of updates, counted from 1."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError
from ..runtime.learning_rate import CosineRate

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """A learning rate that starts at `base_lr`; an optimizer sets that to its own `learning_rate`.

    In the first `warmup_steps` it rises linearly from `warmup_begin_lr`, or stays there in mode "constant".
    As in MXNet, the warm-up, PolyScheduler and CosineScheduler keep to the `base_lr` given here.
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0.0,
        warmup_mode: str = "linear",
    ) -> None:
        if warmup_mode not in ("linear", "constant"):
            raise DataError(f"warmup_mode is {warmup_mode!r}, expected 'linear' or 'constant'")
        self.base_lr = self.base_lr_given = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def __call__(self, num_update: int) -> float:
        """Return the rate of this update."""
        if num_update < self.warmup_steps:
            if self.warmup_mode == "constant":
                return self.warmup_begin_lr
            done = num_update / self.warmup_steps
            return self.warmup_begin_lr + (self.base_lr_given - self.warmup_begin_lr) * done
        return self.after_warmup(num_update)

    def after_warmup(self, num_update: int) -> float:
        raise NotImplementedError(
            "a scheduler computes the rate of an update in __call__ or after_warmup; override one"
        )


class FactorScheduler(LRScheduler):
    """Multiplied by `factor` after every `step` updates, down to `stop_factor_lr`."""

    def __init__(
        self,
        step: int,
        factor: float = 1.0,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        **warmup: float,
    ) -> None:
        super().__init__(base_lr, **warmup)  # type: ignore[arg-type]
        if step < 1 or factor > 1:
            raise DataError(
                f"step is {step} and factor {factor}; expected a step of at least 1, a factor of at most 1"
            )
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr

    def after_warmup(self, num_update: int) -> float:
        decayed = self.base_lr * self.factor ** (max(num_update - 1, 0) // self.step)
        return max(decayed, min(self.stop_factor_lr, self.base_lr))


class MultiFactorScheduler(LRScheduler):
    """Multiplied by `factor` after each of the updates in `step`."""

    def __init__(
        self, step: Sequence[int], factor: float = 1.0, base_lr: float = 0.01, **warmup: float
    ) -> None:
        super().__init__(base_lr, **warmup)  # type: ignore[arg-type]
        if not step or list(step) != sorted(set(step)) or step[0] < 1 or factor > 1:
            raise DataError(
                f"step is {list(step)} and factor {factor}; expected rising steps of at least 1, a factor of "
                "at most 1"
            )
        self.step = list(step)
        self.factor = factor

    def after_warmup(self, num_update: int) -> float:
        return self.base_lr * self.factor ** sum(num_update > step for step in self.step)


class PolyScheduler(LRScheduler):
    """Falls to `final_lr` at `max_update` as a power `pwr` of what is left."""

    def __init__(
        self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0.0, **warmup: float
    ) -> None:
        super().__init__(base_lr, **warmup)  # type: ignore[arg-type]
        self.max_update = max_update
        self.power = pwr
        self.final_lr = final_lr

    def after_warmup(self, num_update: int) -> float:
        share: float = (1 - self.done(num_update)) ** self.power
        return self.final_lr + (self.base_lr_given - self.final_lr) * share

    def done(self, num_update: int) -> float:
        """Return how much of the way after the warm-up is done, from 0 to 1."""
        return min((num_update - self.warmup_steps) / max(self.max_update - self.warmup_steps, 1), 1.0)


class CosineScheduler(PolyScheduler):
    """Falls to `final_lr` at `max_update` along a cosine."""

    def __init__(
        self, max_update: int, base_lr: float = 0.01, final_lr: float = 0.0, **warmup: float
    ) -> None:
        super().__init__(max_update, base_lr, final_lr=final_lr, **warmup)

    def after_warmup(self, num_update: int) -> float:
        falling = CosineRate(self.base_lr_given, self.max_update, self.warmup_steps, self.final_lr)
        return falling(num_update)

"""How `tofu train` updates parameters: learning rates and bounds of gradients, on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ..support.wording import suggestion
from .number_ranges import FiniteRange, IntegerRange

if TYPE_CHECKING:
    from ..dataflow.optimizer import Optimizer
    from ..runtime.learning_rate import LearningRate

SCHEDULES = ("cosine", "linear", "step", "constant")
FALLING = ("cosine", "linear")
"""Schedules with a rise at the beginning and a rate at the end."""
LONGEST_WARMUP = 10
"""Steps of the rise that is not asked for; a short run rises for a tenth of its steps."""


@dataclass(frozen=True, slots=True)
class RateSchedule:
    """How the learning rate changes."""

    kind: str = "cosine"
    """One of `SCHEDULES`."""

    factor: float = 1.0
    """The number by which a rate that falls in steps is multiplied."""

    epochs: tuple[int, ...] = ()
    """The numbers of finished epochs after which it is multiplied."""


class _ScheduleText(click.ParamType[RateSchedule]):
    """`cosine`, `linear`, `constant`, or `step:FACTOR@EPOCH,...`."""

    name = "schedule"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> RateSchedule:
        if isinstance(value, RateSchedule):
            return value
        kind, colon, rest = str(value).partition(":")
        if kind not in SCHEDULES:
            near = suggestion(kind, SCHEDULES, most=1) or f"give one of {', '.join(SCHEDULES)}"
            self.fail(f"there is no schedule {kind!r}; {near}", param, ctx)
        if kind != "step":
            if colon:
                self.fail(f"{kind} takes nothing after its name, found {value!r}", param, ctx)
            return RateSchedule(kind)
        factor, _, epochs = rest.partition("@")
        after = epochs.split(",")
        if not _is_factor(factor) or not all(_is_epoch(each) for each in after):
            self.fail(
                f"expected a factor and finished epochs such as step:0.1@30,60, found {value!r}", param, ctx
            )
        return RateSchedule(kind, float(factor), tuple(int(each) for each in after))


def _is_factor(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _is_epoch(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """How the learning rate changes, and which gradients are clipped."""

    schedule: RateSchedule
    """How the learning rate changes."""

    warmup: int | None
    """Steps in which the learning rate rises; None for a few."""

    final_rate: float | None
    """The learning rate at the end; None for 0."""

    clip_norm: float | None
    """The largest norm of all gradients together; None for any."""

    clip_value: float | None
    """The largest element of a gradient; None for any."""

    def check(self) -> None:
        """Raise UsageError for options that do not go together."""
        if self.schedule.kind not in FALLING and (self.warmup is not None or self.final_rate is not None):
            raise click.UsageError(
                f"--warmup and --final-rate need --schedule cosine or linear, not {self.schedule.kind}"
            )

    @property
    def clips(self) -> bool:
        """Return whether gradients are clipped."""
        return self.clip_norm is not None or self.clip_value is not None

    def clipped(self, optimizer: Optimizer) -> Optimizer:
        """Return the optimizer with the bounds that were asked for."""
        from ..dataflow.optimizer import clipped

        return clipped(optimizer, self.clip_value, self.clip_norm)

    def rate(self, highest: float, epochs: int, steps_per_epoch: int) -> LearningRate:
        """Return the learning rate of a run. Raises UsageError if it does not fit into the run."""
        from ..runtime.learning_rate import ConstantRate, CosineRate, LinearRate, StepRate

        steps = epochs * steps_per_epoch
        match self.schedule.kind:
            case "constant":
                return ConstantRate(highest)
            case "step":
                late = [epoch for epoch in self.schedule.epochs if epoch >= epochs]
                if late:
                    raise click.UsageError(
                        f"--schedule multiplies the learning rate after epoch {late[0]}, but the run has "
                        f"{epochs} epochs; leave it out, or train longer with --epochs"
                    )
                drops = tuple(epoch * steps_per_epoch for epoch in self.schedule.epochs)
                return StepRate(highest, self.schedule.factor, drops)
            case kind:
                warmup = min(LONGEST_WARMUP, steps // 10) if self.warmup is None else self.warmup
                final = self.final_rate or 0.0
                if warmup >= steps:
                    raise click.UsageError(
                        f"--warmup is {warmup}, but the run has {steps} steps; give fewer, or train longer "
                        "with --epochs"
                    )
                if final > highest:
                    raise click.UsageError(
                        f"--final-rate is {final:g}, and the highest learning rate is {highest:g}; give a "
                        "number up to that, or a larger --learning-rate"
                    )
                made = CosineRate if kind == "cosine" else LinearRate
                return made(highest, steps, warmup, final)


def update_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options of learning rates and of clipping, as one `updates`."""

    @wraps(command)
    def gathered(
        schedule: RateSchedule,
        warmup: int | None,
        final_rate: float | None,
        clip_norm: float | None,
        clip_value: float | None,
        **others: Any,
    ) -> None:
        updates = UpdateOptions(schedule, warmup, final_rate, clip_norm, clip_value)
        updates.check()
        command(updates=updates, **others)

    for option in (
        click.option(
            "--clip-value",
            type=FiniteRange(0, min_open=True),
            help="Bring every element of the gradients between minus this and this.",
        ),
        click.option(
            "--clip-norm",
            type=FiniteRange(0, min_open=True),
            help="Multiply all gradients by one factor if their norm together is larger than this.",
        ),
        click.option(
            "--final-rate",
            type=FiniteRange(0),
            help="Learning rate at the end of cosine and linear; 0 if left out.",
        ),
        click.option(
            "--warmup",
            type=IntegerRange(0),
            help="Steps in which the rate of cosine and linear rises; if left out, 10, or a tenth of a short "
            "run.",
        ),
        click.option(
            "--schedule",
            type=_ScheduleText(),
            metavar="SCHEDULE",
            default="cosine",
            show_default=True,
            help="How the learning rate changes: cosine, linear, constant, or step:0.1@30,60, which "
            "multiplies it by 0.1 after 30 and after 60 epochs.",
        ),
    ):
        gathered = option(gathered)
    return gathered

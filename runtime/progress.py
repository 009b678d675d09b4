"""The reports of training, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import PlanError
from ..support.strict_documents import (
    any_number,
    expect_keys,
    finite_number,
    number_between,
    typed,
    typed_object,
)
from .metrics import Tally

MOST_STEPS = 1 << 62
"""The largest number of steps, batches or rows that a state may hold."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The report after every training iteration."""

    epoch: int
    """The number of the epoch."""

    step: int
    """The number of the step, from 1, over all epochs of the call."""

    steps: int
    """The number of all steps of the call."""

    metrics: Mapping[str, float]
    """The metrics of this batch."""

    learning_rate: float
    """The learning rate of this step."""

    samples: int
    """The number of samples of this batch."""

    seconds: float
    """The time of the iteration, including feeding and reading."""

    fetched_bytes: int
    """The bytes that crossed between workers."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The report after every epoch."""

    number: int
    """The number of the epoch."""

    training: Mapping[str, float]
    """The metrics on training data, measured while training."""

    evaluation: Mapping[str, float]
    """The metrics on evaluation data after the epoch."""

    seconds: float
    """The duration of the epoch."""


@dataclass(slots=True)
class Standing:
    """The state of a call of `fit`: finished epochs, and the current one."""

    tallies: list[Tally]
    """The metrics of the current epoch so far."""

    rate_step: int
    """The learning rate's step."""

    batch: int = 0
    """The number of batches of the current epoch that are done."""

    seconds: float = 0.0
    """The time of the current epoch so far."""

    history: list[Epoch] = field(default_factory=list)
    """The finished epochs."""

    @property
    def epoch(self) -> int:
        """Return the number of the current epoch."""
        return len(self.history)

    def finish(self, evaluation: Mapping[str, float]) -> Epoch:
        """Finish the current epoch."""
        training = {tally.metric.name: tally.value for tally in self.tallies}
        epoch = Epoch(self.epoch, training, evaluation, self.seconds)
        self.history.append(epoch)
        self.tallies = [Tally(tally.metric) for tally in self.tallies]
        self.batch, self.seconds = 0, 0.0
        return epoch

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values; `restore` brings numbers back bit for bit."""
        return {
            "rate_step": self.rate_step,
            "batch": self.batch,
            "seconds": self.seconds,
            "tallies": [[tally.total, tally.rows] for tally in self.tallies],
            "history": [asdict(epoch) for epoch in self.history],
        }

    def restore(self, state: object) -> None:
        """Restore the state of `to_json`; the metrics must be the same.

        Raises PlanError naming the entry if the state is of another form, and changes nothing then.
        """
        found = typed_object(state, "standing")
        expect_keys(found, ("rate_step", "batch", "seconds", "tallies", "history"), "standing")
        rate_step = number_between(found["rate_step"], "rate_step", 0, MOST_STEPS)
        batch = number_between(found["batch"], "batch", 0, MOST_STEPS)
        seconds = finite_number(found["seconds"], "seconds")
        tallies = typed(found["tallies"], list, "tallies")
        if len(tallies) != len(self.tallies):
            raise PlanError(
                f"tallies has {len(tallies)} entries, but the run has {len(self.tallies)} metrics"
            )
        counted = [_counted(each, f"tallies[{place}]") for place, each in enumerate(tallies)]
        history = [
            _epoch(each, f"history[{place}]", place)
            for place, each in enumerate(typed(found["history"], list, "history"))
        ]
        self.rate_step, self.batch, self.seconds, self.history = rate_step, batch, seconds, history
        for tally, (total, rows) in zip(self.tallies, counted, strict=True):
            tally.total, tally.rows = total, rows


def _counted(value: object, place: str) -> tuple[float, int]:
    """Return the total and the rows of a tally."""
    pair = typed(value, list, place)
    if len(pair) != 2:
        raise PlanError(f"{place} has {len(pair)} entries; it must have a total and a number of rows")
    return any_number(pair[0], place), number_between(pair[1], place, 0, MOST_STEPS)


def _epoch(value: object, place: str, number: int) -> Epoch:
    """Return a finished epoch."""
    found = typed_object(value, place)
    expect_keys(found, ("number", "training", "evaluation", "seconds"), place)
    metrics = {
        kind: {
            name: any_number(measured, f"{place}.{kind}.{name}")
            for name, measured in typed_object(found[kind], f"{place}.{kind}").items()
        }
        for kind in ("training", "evaluation")
    }
    return Epoch(
        number_between(found["number"], f"{place}.number", number, number),
        **metrics,
        seconds=finite_number(found["seconds"], f"{place}.seconds"),
    )

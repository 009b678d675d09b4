"""Save a training run in a folder of checkpoints, and resume it from there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..analyzer.indices.region import Shape
from ..dataflow.graph import Role
from ..dataflow.optimizer import Optimizer
from ..errors import DataError, PlanError
from ..operators.kernels.kernel import Array
from ..support.json_text import json_text
from .checkpoint_file import Form, Restorable, require_names
from .data import Batches
from .executor import Executor
from .parameters import tensors_of
from .peers import KeptFolder
from .progress import Standing

KEPT_ROLES = (Role.PARAMETER, Role.STATE, Role.AUXILIARY)


class Keeper:
    """The checkpoints of one run: its executor, and the settings that a resumed run must share."""

    def __init__(self, folder: KeptFolder, executor: Executor, settings: Mapping[str, Any]) -> None:
        self._folder = folder
        self._executor = executor
        self._settings = {name: json.loads(json_text(value, name)) for name, value in flat(settings).items()}
        self._names = [tensor.name for tensor in tensors_of(executor, *KEPT_ROLES)]
        require_names(self._names)

    def require_empty(self) -> None:
        """Raise DataError if the folder has checkpoints, because a new run would remove them."""
        if self._folder.has_checkpoints():
            raise DataError(
                f"{self._folder.folder} already holds checkpoints; resume from them, or name another folder"
            )

    def resume(self, standing: Standing) -> None:
        """Restore executor and standing from the newest good checkpoint.

        Raises DataError if there is none, or if it belongs to another run.
        """
        found = self._folder.load()
        forms = found.forms
        for tensor in tensors_of(self._executor, Role.PARAMETER):
            _, kept = forms.get(tensor.name, (None, None))
            if kept != tensor.shape:
                there = "is not in the checkpoint" if kept is None else f"{kept} in the checkpoint"
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was saved by a different model: "
                    f"'{tensor.name}' has shape {tensor.shape} in this model but {there}; "
                    "use the same model, or another folder"
                )
        made, asked = flat(self._entry(found, "settings")), self._settings
        for name in {**asked, **made}:
            if not _same(made.get(name), asked.get(name)):
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was made with {name} {made.get(name)}, but "
                    f"this run has {asked.get(name)}; use the same settings, or another folder"
                )
        for name in sorted({*self._names, *forms}):
            here = self._executor.form(name)[1] if name in self._names else None
            kept = forms[name][1] if name in forms else None
            if here != kept:
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was saved by a run with other states: '{name}' "
                    f"{_shape(here)} in this run and {_shape(kept)} in the checkpoint; use the same model, "
                    "and the same plan if it changes gradients, or another folder"
                )
        try:
            standing.restore(self._entry(found, "standing"))
        except PlanError as error:
            raise self._unlike(str(error)) from error
        for name in self._names:
            self._executor.write_parts(name, forms[name], partial(found.parts, name))

    def _entry(self, found: Restorable, key: str) -> dict[str, Any]:
        """Return an entry of a checkpoint's state."""
        entry = found.state.get(key)
        if not isinstance(entry, dict):
            raise self._unlike(f"its entry '{key}' is missing or not an object")
        return entry

    def _unlike(self, reason: str) -> DataError:
        """Return the error for a state of another form."""
        return DataError(
            f"the checkpoint in {self._folder.folder} does not hold a run of this version of Tofu: {reason}; "
            "use the version that saved it, or another folder"
        )

    def save(self, standing: Standing) -> None:
        """Save a checkpoint of the executor's tensors.

        Raises DataError if it cannot be written, ExecutionError if a tensor holds NaN. Earlier checkpoints
        stay unchanged.
        """
        self._executor.require_numbers(self._names)
        state = {"settings": self._settings, "standing": standing.to_json()}
        self._folder.save(_Held(self._executor, self._names, state))


@dataclass(frozen=True, slots=True)
class _Held:
    """The contents of a checkpoint, whose tensors are read one at a time."""

    executor: Executor
    """The executor that holds the tensors."""

    names: Sequence[str]
    """The names of the tensors."""

    state: Mapping[str, Any]
    """Everything else, as JSON values."""

    @property
    def forms(self) -> dict[str, Form]:
        """Return the type and shape of every tensor."""
        return {name: self.executor.form(name) for name in self.names}

    def read(self, name: str, process: int = 0) -> Array | None:
        """Return a tensor in one process; None in others. All call it in the same order."""
        return self.executor.read_in(name, process)


def _shape(shape: Shape | None) -> str:
    return "does not exist" if shape is None else f"has shape {shape}"


def flat(settings: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Flatten settings to names such as `data.batch_size`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= flat(value, f"{place}{name}.") if isinstance(value, dict) else {f"{place}{name}": value}
    return found


def _same(one: object, other: object) -> bool:
    """Tell whether two JSON values are the same; NaN is the same as NaN."""
    return one == other or json.dumps(one) == json.dumps(other)


def run_settings(data: Batches, optimizer: Optimizer, metrics: list[str]) -> dict[str, Any]:
    """Return what determines a run besides the model and the rate: batches, their order, updates, metrics."""
    return {"data": data.settings, "optimizer": update_settings(optimizer), "metrics": metrics}


def update_settings(optimizer: Optimizer) -> dict[str, Any]:
    """Return what determines the updates besides the rate, as JSON values."""
    return {
        "operator": optimizer.operator,
        "attributes": dict(optimizer.attributes),
        "weight_decay": optimizer.weight_decay,
        "rescale": optimizer.rescale,
        "clip_norm": optimizer.clip_norm,
        "rate_multipliers": dict(optimizer.rate_multipliers),
        "decay_multipliers": dict(optimizer.decay_multipliers),
    }

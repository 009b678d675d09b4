"""Save a training run in a folder of checkpoints, and resume it from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..dataflow.graph import Role
from ..dataflow.optimizer import Optimizer
from ..errors import DataError, PlanError
from .checkpoint import Checkpoint
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
        self._settings = json.loads(json.dumps(settings))
        self._names = [tensor.name for tensor in tensors_of(executor, *KEPT_ROLES)]

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
        for tensor in tensors_of(self._executor, Role.PARAMETER):
            kept = found.tensors.get(tensor.name)
            if kept is None or kept.shape != tensor.shape:
                there = "is not in the checkpoint" if kept is None else f"{kept.shape} in the checkpoint"
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was saved by a different model: "
                    f"'{tensor.name}' has shape {tensor.shape} in this model but {there}; "
                    "use the same model, or another folder"
                )
        made, asked = _flat(self._entry(found, "settings")), _flat(self._settings)
        for name in {**asked, **made}:
            if made.get(name) != asked.get(name):
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was made with {name} {made.get(name)}, but "
                    f"this run has {asked.get(name)}; use the same settings, or another folder"
                )
        different = set(self._names) ^ set(found.tensors)
        if different:
            side = "only in the checkpoint" if min(different) in found.tensors else "not in the checkpoint"
            raise DataError(
                f"tensor '{min(different)}' is {side}, which was saved by a different model; "
                "use the same model, or another folder"
            )
        try:
            standing.restore(self._entry(found, "standing"))
        except PlanError as error:
            raise self._unlike(str(error)) from error
        for name, array in found.tensors.items():
            self._executor.write(name, array)

    def _entry(self, found: Checkpoint, key: str) -> dict[str, Any]:
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
        for name in self._names:
            self._executor.require_numbers(name)
        tensors = {name: self._executor.read(name) for name in self._names}
        self._folder.save(Checkpoint(tensors, {"settings": self._settings, "standing": standing.to_json()}))


def _flat(settings: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Flatten settings to names such as `data.batch_size`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{place}{name}.") if isinstance(value, dict) else {f"{place}{name}": value}
    return flat


def run_settings(data: Batches, optimizer: Optimizer, metrics: list[str]) -> dict[str, Any]:
    """Return what determines a run besides the model and the rate: batches, their order, updates, metrics."""
    return {
        "data": data.settings,
        "optimizer": {
            "operator": optimizer.operator,
            "attributes": dict(optimizer.attributes),
            "weight_decay": optimizer.weight_decay,
            "rescale": optimizer.rescale,
            "rate_multipliers": dict(optimizer.rate_multipliers),
            "decay_multipliers": dict(optimizer.decay_multipliers),
        },
        "metrics": metrics,
    }

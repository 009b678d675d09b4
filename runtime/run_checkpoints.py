"""Saves a training run into a folder of checkpoints, and goes on from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..dataflow.graph import Role
from ..dataflow.optimizer import Optimizer
from ..errors import DataError
from .checkpoint import Checkpoint, CheckpointFolder
from .data import Batches
from .executor import Executor
from .parameters import tensors_of
from .progress import Standing

KEPT_ROLES = (Role.PARAMETER, Role.STATE, Role.AUXILIARY)


class Keeper:
    """One run: its executor, and its settings, which a run that goes on must have too."""

    def __init__(self, folder: CheckpointFolder, executor: Executor, settings: Mapping[str, Any]) -> None:
        self._folder = folder
        self._executor = executor
        self._settings = json.loads(json.dumps(settings))
        self._names = [tensor.name for tensor in tensors_of(executor, *KEPT_ROLES)]

    def require_empty(self) -> None:
        """Raise DataError where the folder has checkpoints: a new run would end in removing them."""
        if self._folder.paths():
            raise DataError(
                f"{self._folder.folder} holds checkpoints already; resume from them or name another folder"
            )

    def resume(self, standing: Standing) -> None:
        """Bring executor and standing to where the newest good checkpoint was made.

        Raises DataError where there is none, or it is of another run.
        """
        found = self._folder.load()
        for tensor in tensors_of(self._executor, Role.PARAMETER):
            kept = found.tensors.get(tensor.name)
            if kept is None or kept.shape != tensor.shape:
                there = "it is missing" if kept is None else f"it has {kept.shape}"
                raise DataError(
                    f"the checkpoint in {self._folder.folder} is of another model: '{tensor.name}' has shape "
                    f"{tensor.shape} here, there {there}; go on with that model, or begin anew in "
                    f"another folder"
                )
        made, asked = _flat(found.state["settings"]), _flat(self._settings)
        for name in {**asked, **made}:
            if made.get(name) != asked.get(name):
                raise DataError(
                    f"the checkpoint in {self._folder.folder} was made with {name} {made.get(name)}, but "
                    f"this run has {asked.get(name)}; go on as it began, or begin anew in another folder"
                )
        different = set(self._names) ^ set(found.tensors)
        if different:
            side = "only in the checkpoint" if min(different) in found.tensors else "not in the checkpoint"
            raise DataError(f"tensor '{min(different)}' is {side}; it is of another model")
        for name, array in found.tensors.items():
            self._executor.write(name, array)
        standing.restore(found.state["standing"])

    def save(self, standing: Standing) -> None:
        """Make a checkpoint of the executor's tensors.

        Raises DataError where it cannot be written, ExecutionError where a tensor holds something that is
        not a number; the checkpoints before stay as they are.
        """
        for name in self._names:
            self._executor.require_numbers(name)
        tensors = {name: self._executor.read(name) for name in self._names}
        self._folder.save(Checkpoint(tensors, {"settings": self._settings, "standing": standing.to_json()}))


def _flat(settings: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Every setting by a name such as `data.batch_size`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{place}{name}.") if isinstance(value, dict) else {f"{place}{name}": value}
    return flat


def run_settings(data: Batches, optimizer: Optimizer, metrics: list[str]) -> dict[str, Any]:
    """What decides a run beside the model and the rate: batches and their order, updates, metrics."""
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

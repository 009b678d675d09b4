"""Workers as files name them: by number, or by the device of a machine on which they run."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import PlanError
from ....machines.machine import Machine
from ....support.document_place import DocumentPlace
from ....support.strict_documents import number_between, typed
from ....support.wording import alternatives


@dataclass(frozen=True, slots=True)
class WorkerNames:
    """The workers of a plan, and the devices on which they run if a machine is known."""

    workers: int
    """The number of workers."""

    machine: Machine | None
    """The machine."""

    def worker(self, value: object, place: DocumentPlace) -> int:
        """Return the worker that a file means. Raises PlanError naming the place if there is none."""
        if not isinstance(value, str):
            return number_between(value, place, 0, self.workers - 1)
        if self.machine is None:
            raise PlanError(
                f"{place} is {value[:60]!r}, a device, but there is no machine; give one, or the "
                "worker's number"
            )
        devices = self.machine.devices
        if value not in devices:
            raise PlanError(
                f"{place} is {value[:60]!r}, but machine {self.machine.name!r} has no such device"
                f"{alternatives(value, devices)}"
            )
        device = devices.index(value)
        here = [worker for worker, of in enumerate(self.machine.devices_of(self.workers)) if of == device]
        if len(here) != 1:
            raise PlanError(
                f"{place} is {value!r}, on which {len(here)} of {self.workers} workers run; give the "
                "worker's number"
            )
        return here[0]

    def listed(self, value: object, place: DocumentPlace) -> tuple[int, ...]:
        """Return the workers of a list."""
        listed: list[object] = typed(value, list, place)
        return tuple(self.worker(each, place.item(number)) for number, each in enumerate(listed))

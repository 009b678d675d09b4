"""A checkpoint that the first process reads for all: it sends the others the regions that they ask for.

One tensor crosses at a time, so no process holds more than one besides its own parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...analyzer.indices.region import Region
from ...errors import ExecutionError
from ...operators.kernels.kernel import Array
from ..checkpoint_file import Checkpoint, Form, content
from .transport import LinkLost, Transport


class Connected(Protocol):
    """The parts of `Processes` that this file needs."""

    number: int
    count: int

    @property
    def transport(self) -> Transport: ...

    def exchange(self, purpose: str, content: bytes) -> list[bytes]: ...

    def fail(self, error: Exception) -> ExecutionError: ...


class SentCheckpoint:
    """The contents of a checkpoint; `read` is the checkpoint in the first process, and None in others."""

    def __init__(
        self,
        processes: Connected,
        forms: Mapping[str, Form],
        state: Mapping[str, Any],
        read: Checkpoint | None,
    ) -> None:
        self.forms = forms
        self.state = state
        self._processes = processes
        self._read = read

    def parts(self, name: str, regions: Sequence[Region]) -> list[Array]:
        """Return regions of a tensor. All processes call this in the same order.

        Raises ExecutionError that names the process if one was lost.
        """
        asked = self._processes.exchange("read a tensor", json.dumps(regions).encode())
        try:
            if self._read is None:
                return self._received(name, regions)
            for process in range(1, self._processes.count):
                for number, region in enumerate(json.loads(asked[process])):
                    (part,) = self._read.parts(name, [region])
                    self._processes.transport.send(process, number, content(np.array(part)))
            return self._read.parts(name, regions)
        except LinkLost as error:
            failed = ExecutionError("the reading of a checkpoint")
            failed.__cause__ = error
            raise self._processes.fail(failed) from error

    def _received(self, name: str, regions: Sequence[Region]) -> list[Array]:
        dtype, _ = self.forms[name]
        parts = [np.empty([upper - lower for lower, upper in region], dtype) for region in regions]
        for number, part in enumerate(parts):
            self._processes.transport.receive(0, number, content(part))
        return parts

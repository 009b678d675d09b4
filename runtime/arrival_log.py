"""Logs of the orders in which gradients arrived: written by one run, and replayed by others bit for bit.

The first line says what the others mean. Each of these is an iteration. It has a list for each parameter, of
replicas in the order in which their gradients were applied:

    {"arrivals": 1, "gradients": ["local(grad(fc_weight))"], "workers": 3}
    [[2, 0, 1]]
    [[0, 2, 1]]
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..dataflow.rewrites.arrivals import ARRIVALS, Arriving, arriving
from ..errors import DataError, PlanError
from ..support.saved_files import save_whole
from ..support.strict_documents import parse_json, read_bounded
from .executor import Executor

VERSION = 1


class ArrivalLog:
    """The orders of a run's iterations. If it `replays`, they are read from the file, else written to it."""

    def __init__(self, path: Path, replays: bool) -> None:
        self.path = Path(path)
        self.replays = replays
        self._head = ""
        self._orders: list[list[list[int]]] = []

    def before(self, executor: Executor, step: int) -> None:
        """Prepare iteration `step` of a run, counted from 0; feed its order if it was logged.

        Raises DataError for a file of another model, without this iteration, or of another run, if it is to
        be written.
        """
        rows = arriving(executor.partitioned.graph)
        if not self._head:
            self._begin(executor, rows, step)
        if not self.replays:
            return
        if step >= len(self._orders):
            raise DataError(
                f"the log of arrivals {str(self.path)!r} has {len(self._orders)} iterations, but this is "
                f"number {step + 1}; train for fewer, or on a log of a longer run"
            )
        executor.write(ARRIVALS, self._orders[step])

    def after(self, executor: Executor) -> None:
        """Log the order of the iteration that has run."""
        if self.replays:
            return
        order = executor.read(ARRIVALS).astype(int).tolist()
        try:
            with self.path.open("a") as file:
                file.write(f"{json.dumps(order)}\n")
        except OSError as error:
            raise DataError(
                f"cannot write the log of arrivals {str(self.path)!r}: {error.strerror}"
            ) from error

    def _begin(self, executor: Executor, rows: tuple[Arriving, ...], step: int) -> None:
        """Read the file; let it end before iteration `step` if it is to be written."""
        graph = executor.partitioned.graph
        names = [graph.tensors[row.local].name for row in rows]
        workers = graph.tensors[rows[0].local].shape[0]
        head = json.dumps({"arrivals": VERSION, "gradients": names, "workers": workers})
        if self.replays or step:
            self._orders = self._read(head, len(rows), workers)
        elif os.path.exists(self.path):
            raise DataError(
                f"there is a file {str(self.path)!r} already; replay it, or log arrivals to another file"
            )
        if not self.replays:
            if len(self._orders) < step:
                raise DataError(
                    f"the log of arrivals {str(self.path)!r} has {len(self._orders)} iterations, but {step} "
                    "were run before; continue with the log that this run began"
                )
            lines = [head, *(json.dumps(order) for order in self._orders[:step])]
            text = "".join(f"{line}\n" for line in lines)
            save_whole(self.path, text.encode(), "the log of arrivals", DataError)
        self._head = head

    def _read(self, head: str, rows: int, workers: int) -> list[list[list[int]]]:
        data = read_bounded(self.path, "log of arrivals", DataError)
        lines = data.split(b"\n")
        if lines.pop() or not lines:
            raise DataError(f"the log of arrivals {str(self.path)!r} ends within a line; cut the line off")
        if lines[0].decode("utf-8", "replace") != head:
            raise DataError(
                f"the log of arrivals {str(self.path)!r} is of another model or another number of workers: "
                f"its first line is not {head}; use the plan that it was made with"
            )
        found = []
        for number, line in enumerate(lines[1:], 2):
            try:
                order = parse_json(line)
            except PlanError as error:
                raise DataError(f"{str(self.path)!r}, line {number}: {error}") from error
            if not _is_order(order, rows, workers):
                raise DataError(
                    f"{str(self.path)!r}, line {number} is {line[:60].decode('utf-8', 'replace')!r}; it must "
                    f"list {rows} orders, each with the workers 0 to {workers - 1} once"
                )
            found.append(order)
        return found  # type: ignore[return-value]


def _is_order(order: object, rows: int, workers: int) -> bool:
    """Tell whether a value lists each worker once, for each row."""
    return (
        isinstance(order, list)
        and len(order) == rows
        and all(
            isinstance(row, list)
            and all(type(worker) is int for worker in row)
            and sorted(row) == list(range(workers))
            for row in order
        )
    )

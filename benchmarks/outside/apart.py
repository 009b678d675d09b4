"""Work in a separate process: one that hangs, crashes or needs too much memory ends alone."""

from __future__ import annotations

import multiprocessing
import resource
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

Row = dict[str, Any]
Report = Callable[[Row], None]

MEMORY_BYTES = 8 << 30
"""The memory that a process may add to its address space."""


def apart(work: Callable[[Report], None], seconds: float) -> Row:
    """Join all that `work` reports; `stopped` says why it did not come to its end, `doing` where."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_inside, args=(work, sender))
    process.start()
    sender.close()
    row: Row = {}
    deadline = monotonic() + seconds
    try:
        while not row.keys() & {"stopped", "finished"}:
            if not receiver.poll(max(0.0, deadline - monotonic())):
                row["stopped"] = f"over {seconds:g} s"
            else:
                row |= receiver.recv()
    except EOFError:
        row["stopped"] = "the process died"
    finally:
        process.kill()
        process.join()
    if row.pop("finished", False):
        row.pop("doing", None)
    return row


def _inside(work: Callable[[Report], None], sender: Connection) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))
    try:
        work(sender.send)
        sender.send({"finished": True})
    except MemoryError:
        sender.send({"stopped": f"needs more than {MEMORY_BYTES >> 30} GiB"})
    except Exception as error:
        traceback.print_exc()
        sender.send({"stopped": f"{type(error).__name__}: {error}"})

"""Time lines in Chrome's trace format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .lane_span import LaneSpan

SHARED = "devices and links"


def trace_of(lanes: Mapping[str, Sequence[LaneSpan]]) -> bytes:
    """Return the file, with one process for each worker and one for what they share."""
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": list(_events(lanes))}).encode()


def _events(lanes: Mapping[str, Sequence[LaneSpan]]) -> Iterator[dict[str, Any]]:
    processes: dict[str, int] = {}
    for thread, (lane, spans) in enumerate(lanes.items()):
        of_worker = lane.startswith("worker ")
        process = lane.rpartition(" ")[0] if of_worker else SHARED
        number = processes.setdefault(process, len(processes))
        where = {"pid": number, "tid": thread}
        yield {"ph": "M", "name": "process_name", **where, "args": {"name": process}}
        yield {"ph": "M", "name": "thread_name", **where, "args": {"name": lane}}
        for span in spans:
            start, end = span.start_nanoseconds, span.end_nanoseconds
            yield {
                "ph": "X",
                "name": span.operation,
                "cat": span.kind,
                **where,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": {} if span.kind == "compute" else {"bytes": span.nbytes, "from": span.source},
            }

"""Count a batch in metrics. In several processes, each evaluates the samples whose outputs it has.

Metrics are means of values of rows. So processes send each other one number for each row and metric, in place
of outputs, and all compute the mean of the same numbers in the same order. If no worker has whole rows, the
output is gathered, and the process of the first worker evaluates all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..operators.kernels.kernel import Array
from .data import Batch
from .executor import Executor
from .feeding import output_names, valid_rows
from .metrics import Metric, Tally, Values

_Pair = tuple[Array, str]
"""A label, and the name of the output that it is compared with."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The values of consecutive samples of an output."""

    pair: int
    """The number of the output among those with labels."""

    first: int
    """The first sample."""

    values: Sequence[Values]
    """The value of each row, for every metric."""


def tally(
    executor: Executor, batch: Batch, tallies: Sequence[Tally], names: Sequence[str] | None = None
) -> dict[str, float]:
    """Count the batch in every metric, output by output with its label; the metrics of this batch alone.

    `names` are those of the batch's outputs; None for all outputs. Raises ExecutionError if one holds NaN.
    All processes return, or raise, the same.
    """
    read = output_names(executor) if names is None else names
    executor.require_numbers(read)
    if not tallies:
        return {}
    labels = list(batch.label.values())
    if not labels:
        raise DataError(f"metric '{tallies[0].metric.name}' needs labels, but the data has none")
    pairs = list(zip(labels, read, strict=False))
    metrics = [each.metric for each in tallies]
    if executor.complete:
        whole = [
            (valid_rows(label, batch.size, batch.valid), _read(executor, name, batch))
            for label, name in pairs
        ]
        return {each.metric.name: each.add(whole) for each in tallies}
    parts = _of_all(executor, batch, pairs, metrics)
    found = {}
    for number, each in enumerate(tallies):
        found[each.metric.name] = each.count(np.concatenate([part.values[number] for part in parts]))
    return found


def _of_all(
    executor: Executor, batch: Batch, pairs: Sequence[_Pair], metrics: Sequence[Metric]
) -> list[_Part]:
    """Return the values that all processes found, in the order of samples.

    Raises the first of their errors.
    """
    own: list[_Part] = []
    problem = ""
    try:
        for pair, (label, name) in enumerate(pairs):
            for first, part_of_label, output in _own_rows(executor, batch, label, name):
                values = [metric.values(part_of_label, output) for metric in metrics]
                own.append(_Part(pair, first, values))
    except DataError as error:
        problem = str(error)
    said = [_decoded(each) for each in executor.exchange("evaluate", _encoded(own, problem))]
    for _, text in said:
        if text:
            raise DataError(text)
    return sorted((part for parts, _ in said for part in parts), key=lambda part: (part.pair, part.first))


def _own_rows(
    executor: Executor, batch: Batch, label: Array, name: str
) -> Iterator[tuple[int, Array, Array]]:
    """Yield the first sample, the labels and the rows of the output, of what this process evaluates."""
    shares = executor.sample_shares(name, batch.size)
    if shares is None:
        output = _read(executor, name, batch)
        if executor.has_first_worker:
            yield 0, valid_rows(label, batch.size, batch.valid), output
        return
    for share in shares:
        rows = executor.read_share(share)
        first, last = share.samples[0], min(share.samples[1], batch.valid)
        if rows is not None and first < last:
            compared = valid_rows(label, batch.size, last)[len(label) // batch.size * first :]
            yield first, compared, valid_rows(rows, share.samples[1] - first, last - first)


def _read(executor: Executor, name: str, batch: Batch) -> Array:
    return valid_rows(executor.read(name), batch.size, batch.valid)


def _encoded(parts: Sequence[_Part], problem: str) -> bytes:
    """Write values as bytes, after a line that says what they are."""
    listed = [[part.pair, part.first, *map(len, part.values)] for part in parts]
    values = [np.asarray(each, np.float64) for part in parts for each in part.values]
    head = json.dumps({"parts": listed, "problem": problem}).encode()
    return b"\n".join([head, b"".join(each.tobytes() for each in values)])


def _decoded(content: bytes) -> tuple[list[_Part], str]:
    """Read what `_encoded` wrote."""
    head, _, values = content.partition(b"\n")
    said = json.loads(head)
    numbers, start, parts = np.frombuffer(values, np.float64), 0, []
    for pair, first, *counts in said["parts"]:
        ends = start + np.cumsum(counts)
        parts.append(_Part(pair, first, np.split(numbers[start : ends[-1]], (ends - start)[:-1])))
        start = int(ends[-1])
    return parts, said["problem"]

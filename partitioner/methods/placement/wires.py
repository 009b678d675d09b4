"""The graph as the loops of placers read it: what each node reads, makes and comes after."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....support.compiled import Numbers, looped
from ....support.integer_lists import IntegerLists
from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph


class Wires(NamedTuple):
    """Lists of nodes and values, one after the other. The list of a row lies between two of its firsts."""

    maker: Numbers
    """The node that makes each value."""

    value_firsts: Numbers
    """Where the values of each node begin in `values`."""

    values: Numbers
    """The values that nodes make."""

    reader_firsts: Numbers
    """Where the readers of each value begin in `readers`."""

    readers: Numbers
    """The nodes that read values."""

    input_firsts: Numbers
    """Where the values that each node reads begin in `inputs`."""

    inputs: Numbers
    """The values that nodes read."""

    after_firsts: Numbers
    """Where the nodes that only run after each node begin in `after`."""

    after: Numbers
    """The nodes that run after others and read nothing of them."""

    before_firsts: Numbers
    """Where the nodes that only run before each node begin in `before`."""

    before: Numbers
    """The nodes that run before others and make nothing for them."""

    leader: Numbers
    """The node whose worker each node shares."""

    member_firsts: Numbers
    """Where the nodes that share the worker of each node begin in `members`; nowhere if it follows."""

    members: Numbers
    """The nodes of all leaders, themselves included."""

    message: Numbers
    """The mean nanoseconds of a message with each value."""


def wires(graph: PlacementGraph, devices: PlacementDevices) -> Wires:
    """Return a graph as loops read it."""
    before = IntegerLists.grouped(graph.after.entries, graph.after.row_of_entries, graph.count)
    members = IntegerLists.grouped(graph.leader, np.arange(graph.count), graph.count)
    return Wires(
        maker=looped(graph.maker),
        value_firsts=looped(graph.values.firsts),
        values=looped(graph.values.entries),
        reader_firsts=looped(graph.readers.firsts),
        readers=looped(graph.readers.entries),
        input_firsts=looped(graph.inputs.firsts),
        inputs=looped(graph.inputs.entries),
        after_firsts=looped(graph.after.firsts),
        after=looped(graph.after.entries),
        before_firsts=looped(before.firsts),
        before=looped(before.entries),
        leader=looped(graph.leader),
        member_firsts=looped(members.firsts),
        members=looped(members.entries),
        message=looped(mean_messages(graph, devices)),
    )


def mean_messages(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the nanoseconds of a message with each value, as the mean over pairs of workers."""
    return np.asarray(np.rint(devices.mean_latency + devices.mean_per_byte * graph.sent_bytes), np.int64)


def mean_nanoseconds(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the time of each node, as the mean over workers."""
    kinds = np.bincount(devices.kind, minlength=len(graph.nanoseconds)) / devices.workers
    return np.asarray(np.rint(kinds @ graph.nanoseconds), np.int64)

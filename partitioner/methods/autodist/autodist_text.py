"""AutoDist's own strategies in the text form of protocol buffers (`autodist/proto/strategy.proto`).

    replicas                     workers, in their order; all servers on hosts without a replica follow
    reduction_destination        that worker, or the first replica of its host
    local_replication            a proxy
    AllReduceSynchronizer        an all-reduce; `spec` is about a library's algorithm, and not about plans
    SFBSynchronizer              an all-reduce from sufficient factors
    partitioner, part_config     a cut into even parts, as TensorFlow cuts
    staleness                    a delay: gradients are as late as AutoDist allows, and always equally late
    sync that is not true        gradients are applied in the order in which they arrive
    HorovodCompressor(EF)        nothing for variables in float32, to which AutoDist's code casts

Other compressors have no counterpart, and are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

from ....dataflow.graph import Graph
from ....dataflow.rewrites.encoders import NO_REWRITE, Rewrite
from ....errors import PlanError
from ....support.protobuf_text import ProtobufMessage, parse_protobuf_text
from ....support.strict_documents import read_bounded
from ....support.wording import alternatives
from ...plans.rewrite_document import DELAY_LIMIT
from .checks import check_fits
from .strategy import (
    GROUP_LIMIT,
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    Synchroniser,
    SyncStrategy,
    Written,
    evenly,
)
from .variables import TrainedVariable, find_variables

SUFFIXES = (".pbtxt", ".prototxt", ".textproto", ".txt")
"""How the names of such files end."""

TEXT_LIMIT_BYTES = 1 << 20

_STRATEGY: dict[str, type] = {
    "id": str,
    "path": str,
    "node_config": ProtobufMessage,
    "graph_config": ProtobufMessage,
}
_SYNCHRONISERS = ("PSSynchronizer", "AllReduceSynchronizer", "SFBSynchronizer")
_NODE: dict[str, type] = {
    "var_name": str,
    **dict.fromkeys(_SYNCHRONISERS, ProtobufMessage),
    "partitioner": str,
    "part_config": ProtobufMessage,
    "compressor": ProtobufMessage,
}
_SERVER: dict[str, type] = {
    "reduction_destination": str,
    "local_replication": bool,
    "sync": bool,
    "staleness": int,
}
_SPECS = ("AUTO", "NCCL", "RING")
_COMPRESSORS = ("NoneCompressor", "HorovodCompressor", "HorovodCompressorEF")
_OF_FACTORS = "SFBCompressor"


def read_autodist_text(path: Path, graph: Graph, workers: int) -> SyncStrategy:
    """Read a strategy of AutoDist for a graph. Raises PlanError naming the file, the line and the field."""
    data = read_bounded(path, "strategy file", limit=TEXT_LIMIT_BYTES)
    try:
        strategy, places = _parsed(data.decode("utf-8"), graph, workers)
    except (PlanError, UnicodeDecodeError) as error:
        raise PlanError(f"the strategy file {str(path)!r} cannot be used: {error}") from error
    return replace(strategy, written=Written(f"strategy file {str(path)!r}", None, places))


def parse_autodist_text(text: str, graph: Graph, workers: int) -> SyncStrategy:
    """Return the strategy that a text of AutoDist means for a graph.

    A variable has the name that it has in the graph, or that with `:0`. Raises PlanError naming the line.
    """
    return _parsed(text, graph, workers)[0]


def _parsed(text: str, graph: Graph, workers: int) -> tuple[SyncStrategy, dict[str, str]]:
    """Return the strategy, and the place of each variable."""
    file = parse_protobuf_text(text)
    file.expect(_STRATEGY, repeated=("node_config",))
    devices = _devices(file)
    variables = {each.tensor.name: each for each in find_variables(graph)}
    found: dict[str, tuple[ProtobufMessage, Synchronisation]] = {}
    for _, node in file.all("node_config"):
        assert isinstance(node, ProtobufMessage), "expect tells"
        name = _variable(node, variables)
        if name in found:
            raise PlanError(
                f"{node.place}: variable {name!r} stands in line {found[name][0].line} already; leave out one"
            )
        found[name] = node, _of_variable(node, variables[name], devices)
    _check_workers(file, devices, workers)
    replicas = tuple(range(devices.replicas))
    for name, (node, how) in found.items():
        try:
            check_fits(variables[name], workers, (replicas,), how)
        except PlanError as error:
            raise PlanError(f"{node.place}: {error}") from error
    missing = [name for name in variables if name not in found]
    if missing:
        raise PlanError(
            f"line 1: no node_config has the var_name {missing[0]!r} ({len(missing)} in all); add it"
        )
    ordered = {name: found[name][1] for name in variables}
    strategy = SyncStrategy(ordered, () if len(replicas) == workers else (replicas,))
    return strategy, {name: node.place for name, (node, _) in found.items()}


@dataclass(slots=True)
class _Devices:
    """The workers of devices."""

    replicas: int
    """The number of replicas, which are the first workers."""

    workers: dict[str, int]
    """The worker of each device."""

    hosts: dict[str, int] = field(default_factory=dict)
    """The first replica of each host."""

    def worker(self, device: str) -> int:
        """Return the worker of a device; one that has no replica on its host gets the next number."""
        if device not in self.workers:
            used = max(self.workers.values()) + 1
            self.workers[device] = self.hosts.get(_host(device), used)
        return self.workers[device]


def _host(device: str) -> str:
    """Return the address in a name such as `10.0.0.1:GPU:0`."""
    return device.rsplit(":", 2)[0]


def _devices(file: ProtobufMessage) -> _Devices:
    listed: list[str] = []
    for _, config in file.all("graph_config"):
        assert isinstance(config, ProtobufMessage), "expect tells"
        config.expect({"replicas": str}, repeated=("replicas",))
        for line, device in config.all("replicas"):
            if device in listed:
                raise PlanError(
                    f"line {line}: the replica {str(device)[:60]!r} is listed twice; list it once"
                )
            listed.append(str(device))
    if not listed:
        raise PlanError("line 1: graph_config lists no replicas; list a device for every worker")
    hosts: dict[str, int] = {}
    for worker, device in enumerate(listed):
        hosts.setdefault(_host(device), worker)
    return _Devices(len(listed), {device: worker for worker, device in enumerate(listed)}, hosts)


def _check_workers(file: ProtobufMessage, devices: _Devices, workers: int) -> None:
    count = max(devices.workers.values()) + 1
    if count != workers:
        line = next((line for line, _ in file.all("graph_config")), 1)
        raise PlanError(
            f"line {line}: graph_config: {devices.replicas} replicas and {count - devices.replicas} servers "
            f"on other hosts are {count} workers, but the plan is for {workers}; make them equal"
        )


def _text(message: ProtobufMessage, name: str) -> str | None:
    """Return the text of a field that a message has once or not at all."""
    return next((str(value) for _, value in message.all(name)), None)


def _variable(node: ProtobufMessage, variables: Mapping[str, TrainedVariable]) -> str:
    node.expect(_NODE, repeated=("part_config",))
    name = _text(node, "var_name")
    if name is None:
        raise PlanError(f"{node.place} lacks var_name; add it")
    found = name if name in variables else name.removesuffix(":0")
    if found not in variables:
        raise PlanError(
            f"{node.place}: the graph updates no variable {name[:60]!r}{alternatives(found, list(variables))}"
        )
    return found


def _of_variable(node: ProtobufMessage, variable: TrainedVariable, devices: _Devices) -> Synchronisation:
    cuts = _cuts(node, variable)
    parts = [part for _, part in node.all("part_config") if isinstance(part, ProtobufMessage)]
    count = prod(len(cut.bounds) + 1 for cut in cuts)
    if not cuts and not parts:
        parts = [node]
    elif len(parts) != count:
        raise PlanError(
            f"{node.place} has {len(parts)} part_config for {count} parts of its partitioner; give "
            "one for each"
        )
    elif any(node.all(name) for name in _SYNCHRONISERS):
        raise PlanError(f"{node.place} has a synchronizer next to part_config; leave out one of them")
    found = [_synchroniser(part, devices, part is not node, variable.tensor.dtype) for part in parts]
    if len({each.factors for each in found}) > 1:
        raise PlanError(f"{node.place} has SFBSynchronizer for some parts only; give it to all parts or none")
    rewrites = tuple(Rewrite(delay=each.delay) for each in found)
    equal = len(set(rewrites)) == 1
    return Synchronisation(
        tuple(each.sync for each in found),
        cuts[0] if len(cuts) == 1 else cuts or None,
        rewrites[0] if equal else NO_REWRITE,
        () if equal else rewrites,
        found[0].factors,
    )


def _cuts(node: ProtobufMessage, variable: TrainedVariable) -> tuple[Partition, ...]:
    """Read numbers of parts such as `1, 2, 1`, one for each dimension."""
    written = _text(node, "partitioner")
    if not written:
        return ()
    line, shape = node.all("partitioner")[0][0], variable.tensor.shape
    numbers = [each.strip() for each in written.split(",")]
    if len(numbers) != len(shape) or not all(each.isascii() and each.isdigit() for each in numbers):
        raise PlanError(
            f"line {line}: partitioner is {written[:60]!r}; variable {variable.tensor.name!r} needs "
            f"{len(shape)} numbers of parts, separated by commas"
        )
    found = []
    for axis, each in enumerate(numbers):
        parts = int(each) if len(each) < 19 else 0
        if not 1 <= parts <= shape[axis]:
            raise PlanError(
                f"line {line}: partitioner asks for {each[:40]} parts of dimension {axis}, which has "
                f"{shape[axis]} elements; ask for 1 to {shape[axis]}"
            )
        if parts > 1:
            found.append(evenly(axis, shape[axis], parts))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Part:
    """How a variable or a part is synchronised."""

    sync: Synchroniser
    factors: bool = False
    delay: int = 0


def _synchroniser(node: ProtobufMessage, devices: _Devices, is_part: bool, dtype: str) -> _Part:
    """Return how a variable of an element type, or a part of one, is synchronised."""
    node.expect(_NODE, repeated=("part_config",))
    if is_part and (node.all("part_config") or node.all("partitioner")):
        raise PlanError(f"{node.place} is cut again; cut the variable once")
    given = [
        (name, value)
        for name in _SYNCHRONISERS
        for _, value in node.all(name)
        if isinstance(value, ProtobufMessage)
    ]
    if len(given) != 1:
        raise PlanError(
            f"{node.place} has {len(given)} synchronizers; give one of {', '.join(_SYNCHRONISERS)}"
        )
    [(kind, message)] = given
    casting = _COMPRESSORS if dtype == "float32" else _COMPRESSORS[:1]
    for _, compressor in node.all("compressor"):
        assert isinstance(compressor, ProtobufMessage), "expect tells"
        compressor.expect({"type": object})
        allowed = (*_COMPRESSORS[:1], _OF_FACTORS) if kind == "SFBSynchronizer" else casting
        _enumerated(compressor, "type", (*_COMPRESSORS, _OF_FACTORS), allowed)
    if kind == "PSSynchronizer":
        return _server(message, devices)
    message.expect({"spec": object, "compressor": object, "group": int})
    _enumerated(message, "spec", _SPECS, _SPECS)
    _enumerated(message, "compressor", _COMPRESSORS, casting)
    for line, group in message.all("group"):
        if not isinstance(group, int) or not 0 <= group <= GROUP_LIMIT:
            raise PlanError(f"line {line}: group is {group}; it must lie between 0 and {GROUP_LIMIT}")
    groups = [group for _, group in message.all("group") if isinstance(group, int)]
    return _Part(AllReduce(groups[0] if groups else 0), kind == "SFBSynchronizer")


def _server(message: ProtobufMessage, devices: _Devices) -> _Part:
    message.expect(_SERVER)
    destination = _text(message, "reduction_destination")
    if not destination:
        raise PlanError(f"{message.place} lacks reduction_destination; name a device")
    sync = [value for _, value in message.all("sync")]
    by_arrival = sync != [True]
    proxy = any(value is True for _, value in message.all("local_replication"))
    delay = 0
    for line, late in message.all("staleness"):
        assert isinstance(late, int), "expect tells"
        if not 0 <= late <= DELAY_LIMIT:
            raise PlanError(f"line {line}: staleness is {late}; it must lie between 0 and {DELAY_LIMIT:,}")
        delay = late
    if by_arrival and delay:
        raise PlanError(
            f"{message.place} has a staleness of {delay}, but applies gradients in the order in which they "
            "arrive, as sync is not true; leave out the staleness, or write sync: true"
        )
    worker = devices.worker(destination)
    if by_arrival:
        return _Part(Server(worker, by_arrival=True))
    return _Part(Server(worker, proxy), delay=delay)


def _enumerated(
    message: ProtobufMessage, name: str, known: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    """Raise PlanError unless a field names, or numbers, a value that has a counterpart."""
    for line, value in message.all(name):
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        found = known[number] if number is not None and 0 <= number < len(known) else value
        if found not in allowed:
            raise PlanError(
                f"line {line}: {name} is {str(found)[:60]!r}, which has no counterpart; write one of "
                f"{', '.join(allowed)}"
            )

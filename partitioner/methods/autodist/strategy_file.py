"""Strategy files, in which people say how variables are synchronised; see docs/methods/autodist.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ....dataflow.graph import Graph
from ....errors import PlanError
from ....machines.machine import WORKER_LIMIT
from ....support.strict_documents import expect_keys, number_between, read_document, typed, typed_object
from ....support.wording import alternatives
from ...plans.compose import by_name
from .compiling import check_fits
from .strategy import AllReduce, Partition, Server, Synchronisation, Synchroniser, SyncStrategy, evenly
from .variables import TrainedVariable, find_variables

VERSION = 1
SYNCHRONISERS = ("all-reduce", "ps")
_OF_PART = ("sync", "worker", "proxy", "group")
_UPDATES = ("in-turn", "last")
_MOST = 2**31 - 1


def read_strategy(path: Path, graph: Graph, workers: int) -> SyncStrategy:
    """Read a strategy file for a graph. Raises PlanError naming the file and the entry that is wrong."""
    document = read_document(path, "strategy file")
    try:
        return parse_strategy(document, graph, workers)
    except PlanError as error:
        raise PlanError(f"the strategy file {str(path)!r} cannot be used: {error}") from error


def parse_strategy(document: object, graph: Graph, workers: int) -> SyncStrategy:
    """Return the strategy that the contents of a file are for a graph, whose variables patterns may mean.

    Raises PlanError naming the entry that is wrong.
    """
    file = typed_object(document, "the file")
    expect_keys(file, ("strategy", "variables"), "the file", ("graph", "workers", "updates", "shares"))
    number_between(file["strategy"], "strategy", VERSION, VERSION)
    if number_between(file.get("workers", workers), "workers", 1, WORKER_LIMIT) != workers:
        raise PlanError(f"workers is {file['workers']}, but the plan is for {workers}; make them equal")
    if typed(file.get("graph", graph.fingerprint), str, "graph") != graph.fingerprint:
        raise PlanError(
            f"graph is {str(file['graph'])[:16]!r}, but that of {graph.name!r} is "
            f"{graph.fingerprint[:16]!r}; leave the entry out to use the strategy for both"
        )
    written = typed_object(file["variables"], "variables")
    variables = {each.tensor.name: each for each in find_variables(graph)}
    entries = {name: (name, entry) for name, entry in written.items()}
    found: dict[str, Synchronisation] = {}
    for name, (pattern, entry) in by_name("variable", entries, list(variables)).items():
        place = f"variables[{pattern!r}]"
        try:
            found[name] = _synchronisation(entry, variables[name], place)
            check_fits(variables[name], workers, found[name])
        except PlanError as error:
            raise error if place in str(error) else PlanError(f"{place}: {error}") from error
    missing = [name for name in variables if name not in found]
    if missing:
        raise PlanError(
            f"variables has nothing for {missing[0]!r} ({len(missing)} in all); add it, or a pattern such as "
            "'*'"
        )
    updates = typed(file.get("updates", "in-turn"), str, "updates")
    if updates not in _UPDATES:
        raise PlanError(f"updates is {updates!r}{alternatives(updates, _UPDATES)}")
    return SyncStrategy(
        found, updates == "last", _shares(file["shares"], workers) if "shares" in file else None
    )


def _shares(entry: object, workers: int) -> tuple[float, ...]:
    """Read the part of each gradient that each worker reduces."""
    listed: list[object] = typed(entry, list, "shares")
    if len(listed) != workers:
        raise PlanError(f"shares has {len(listed)} entries for {workers} workers; write one for each")
    for place, each in enumerate(listed):
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each <= 1:
            raise PlanError(f"shares[{place}] is {str(each)[:40]}; it must be a number from 0 to 1")
    found = tuple(float(each) for each in listed if isinstance(each, int | float))
    if sum(found) == 0:
        raise PlanError("shares are all 0; give a worker a part")
    return found


def strategy_document(strategy: SyncStrategy) -> dict[str, object]:
    """Return what a strategy file holds of a strategy."""
    variables = {name: _written(how) for name, how in strategy.variables.items()}
    found: dict[str, object] = {"strategy": VERSION}
    if strategy.updates_last:
        found["updates"] = "last"
    if strategy.shares is not None:
        found["shares"] = list(strategy.shares)
    return {**found, "variables": variables}


def _written(how: Synchronisation) -> dict[str, object]:
    if how.partition is None:
        return _written_part(how.parts[0])
    cut = {"axis": how.partition.axis, "bounds": list(how.partition.bounds)}
    return {"cut": cut, "parts": [_written_part(part) for part in how.parts]}


def _written_part(part: Synchroniser) -> dict[str, object]:
    match part:
        case AllReduce(group=group):
            return {"sync": "all-reduce", "group": group}
        case Server(worker=worker, proxy=proxy):
            return {"sync": "ps", "worker": worker, "proxy": proxy}


def _synchronisation(entry: object, variable: TrainedVariable, place: str) -> Synchronisation:
    """Read how a variable is synchronised: whole, in parts of one kind, or in parts with an entry each."""
    entries = typed_object(entry, place)
    expect_keys(entries, (), place, ("cut", "parts", "workers", *_OF_PART))
    partition = None if "cut" not in entries else _partition(entries["cut"], variable, f"{place}.cut")
    count = 1 if partition is None else len(partition.bounds) + 1
    if "parts" not in entries:
        return Synchronisation(_equal_parts(entries, count, place), partition)
    others = [key for key in ("workers", *_OF_PART) if key in entries]
    if others:
        raise PlanError(f"{place} has 'parts' and {others[0]!r}; write into each part what it needs")
    listed: list[object] = typed(entries["parts"], list, f"{place}.parts")
    parts = [
        _synchroniser(typed_object(part, f"{place}.parts[{number}]"), f"{place}.parts[{number}]")
        for number, part in enumerate(listed)
    ]
    if len(parts) != count:
        raise PlanError(f"{place}.parts has {len(parts)} entries for {count} parts; write one for each")
    return Synchronisation(tuple(parts), partition)


def _equal_parts(entries: Mapping[str, object], count: int, place: str) -> tuple[Synchroniser, ...]:
    """Read the synchroniser of all parts, which may name a server for each."""
    own = {key: value for key, value in entries.items() if key not in ("cut", "workers")}
    if "workers" not in entries:
        return (_synchroniser(own, place),) * count
    if "worker" in own:
        raise PlanError(f"{place} has 'worker' and 'workers'; leave out one of them")
    servers: list[object] = typed(entries["workers"], list, f"{place}.workers")
    if len(servers) != count:
        raise PlanError(f"{place}.workers has {len(servers)} entries for {count} parts; write one for each")
    return tuple(_synchroniser({**own, "worker": worker}, place) for worker in servers)


def _synchroniser(entries: dict[str, object], place: str) -> Synchroniser:
    sync = typed(entries.get("sync"), str, f"{place}.sync")
    match sync:
        case "all-reduce":
            expect_keys(entries, ("sync",), place, ("group",))
            return AllReduce(number_between(entries.get("group", 0), f"{place}.group", 0, _MOST))
        case "ps":
            expect_keys(entries, ("sync", "worker"), place, ("proxy",))
            worker = number_between(entries["worker"], f"{place}.worker", 0, WORKER_LIMIT - 1)
            return Server(worker, typed(entries.get("proxy", False), bool, f"{place}.proxy"))
        case _:
            raise PlanError(f"{place}.sync is {sync!r}{alternatives(sync, SYNCHRONISERS)}")


def _partition(entry: object, variable: TrainedVariable, place: str) -> Partition:
    """Read a cut into even parts, or at bounds."""
    cut, shape = typed_object(entry, place), variable.tensor.shape
    expect_keys(cut, ("axis",), place, ("parts", "bounds"))
    if ("parts" in cut) == ("bounds" in cut):
        raise PlanError(f"{place} needs 'parts' or 'bounds', and not both; write one of them")
    if not shape:
        raise PlanError(f"{place}: variable {variable.tensor.name!r} is a scalar; leave out its cut")
    axis = number_between(cut["axis"], f"{place}.axis", 0, len(shape) - 1)
    if "parts" in cut:
        return evenly(axis, shape[axis], number_between(cut["parts"], f"{place}.parts", 1, shape[axis]))
    bounds: list[object] = typed(cut["bounds"], list, f"{place}.bounds")
    places = (number_between(bound, f"{place}.bounds", 0, shape[axis]) for bound in bounds)
    return Partition(axis, tuple(places))

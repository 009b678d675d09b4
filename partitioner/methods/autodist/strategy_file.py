"""Strategy files, in which people say how variables are synchronised; see docs/methods/autodist.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ....dataflow.graph import Graph
from ....dataflow.rewrites.encoders import NO_REWRITE
from ....errors import PlanError
from ....machines.machine import WORKER_LIMIT
from ....support.strict_documents import expect_keys, number_between, read_document, typed, typed_object
from ....support.wording import alternatives
from ...plans.compose import by_name
from ...plans.rewrite_document import ENTRIES as REWRITE_ENTRIES
from ...plans.rewrite_document import decode_rewrite, encode_rewrite
from .compiling import check_fits
from .level_entries import read_hosts, read_via, written_levels
from .strategy import AllReduce, Partition, Server, Synchronisation, Synchroniser, SyncStrategy, evenly
from .variables import TrainedVariable, find_variables

VERSION = 1
SYNCHRONISERS = ("all-reduce", "ps")
_OF_PART = ("sync", "worker", "proxy", "group", "tree", "hosts", "via")
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
    expect_keys(file, ("strategy", "variables"), "the file", ("graph", "workers"))
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
    return SyncStrategy(found)


def strategy_document(strategy: SyncStrategy) -> dict[str, object]:
    """Return what a strategy file holds of a strategy."""
    variables = {name: _written(how) for name, how in strategy.variables.items()}
    return {"strategy": VERSION, "variables": variables}


def _written(how: Synchronisation) -> dict[str, object]:
    rewrite = {**encode_rewrite(how.rewrite), **({"rows": True} if how.rows else {})}
    if how.partition is None:
        return {**_written_part(how.parts[0]), **rewrite}
    cut = {"axis": how.partition.axis, "bounds": list(how.partition.bounds)}
    own = map(encode_rewrite, how.part_rewrites or (NO_REWRITE,) * len(how.parts))
    parts = [{**_written_part(part), **each} for part, each in zip(how.parts, own, strict=True)]
    return {"cut": cut, "parts": parts, **rewrite}


def _written_part(part: Synchroniser) -> dict[str, object]:
    match part:
        case AllReduce(group=group):
            return {"sync": "all-reduce", "group": group, **written_levels(part)}
        case Server(worker=worker, proxy=proxy):
            return {"sync": "ps", "worker": worker, "proxy": proxy, **written_levels(part)}


def _synchronisation(entry: object, variable: TrainedVariable, place: str) -> Synchronisation:
    """Read how a variable is synchronised: whole, in parts of one kind, or in parts with an entry each."""
    given = typed_object(entry, place)
    expect_keys(given, (), place, ("cut", "parts", "workers", *_OF_PART, *REWRITE_ENTRIES, "rows"))
    rewrite = decode_rewrite(given, place)
    rows = typed(given.get("rows", False), bool, f"{place}.rows")
    entries = {key: value for key, value in given.items() if key not in (*REWRITE_ENTRIES, "rows")}
    partition = None if "cut" not in entries else _partition(entries["cut"], variable, f"{place}.cut")
    count = 1 if partition is None else len(partition.bounds) + 1
    if "parts" not in entries:
        return Synchronisation(_equal_parts(entries, count, place), partition, rewrite, rows=rows)
    others = [key for key in ("workers", *_OF_PART) if key in entries]
    if others:
        raise PlanError(f"{place} has 'parts' and {others[0]!r}; write into each part what it needs")
    listed: list[object] = typed(entries["parts"], list, f"{place}.parts")
    parts, own = [], []
    for number, part in enumerate(listed):
        here = f"{place}.parts[{number}]"
        of_part = typed_object(part, here)
        own.append(decode_rewrite({k: v for k, v in of_part.items() if k in REWRITE_ENTRIES}, here))
        parts.append(_synchroniser({k: v for k, v in of_part.items() if k not in REWRITE_ENTRIES}, here))
    if len(parts) != count:
        raise PlanError(f"{place}.parts has {len(parts)} entries for {count} parts; write one for each")
    if len(own) == 1 and rewrite == NO_REWRITE:
        return Synchronisation(tuple(parts), partition, own[0], rows=rows)
    part_rewrites = tuple(own) if any(each != NO_REWRITE for each in own) else ()
    return Synchronisation(tuple(parts), partition, rewrite, part_rewrites, rows)


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
    if entries.get("sync") is False:
        raise PlanError(
            f"{place}.sync is false, but gradients are never applied in the order in which they arrive: an "
            f"iteration has one order; write {' or '.join(SYNCHRONISERS)} and, for later gradients, a delay"
        )
    sync = typed(entries.get("sync"), str, f"{place}.sync")
    match sync:
        case "all-reduce":
            expect_keys(entries, ("sync",), place, ("group", "tree", "hosts"))
            group = number_between(entries.get("group", 0), f"{place}.group", 0, _MOST)
            return AllReduce(group, read_hosts(entries, place))
        case "ps":
            expect_keys(entries, ("sync", "worker"), place, ("proxy", "via"))
            worker = number_between(entries["worker"], f"{place}.worker", 0, WORKER_LIMIT - 1)
            proxy = typed(entries.get("proxy", False), bool, f"{place}.proxy")
            return Server(worker, proxy, read_via(entries, place))
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

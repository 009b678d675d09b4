"""Strategy files, in which people say how variables are synchronised; see docs/methods/autodist.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from ....dataflow.graph import Graph
from ....dataflow.rewrites.encoders import NO_REWRITE, Rewrite
from ....errors import MachineError, PlanError
from ....machines.machine import WORKER_LIMIT, Machine
from ....machines.machine_file import load_machine
from ....support.checked_argument import path_of
from ....support.document_place import DocumentPlace
from ....support.placed_documents import read_placed
from ....support.strict_documents import any_number, expect_keys, number_between, typed, typed_object
from ....support.wording import alternatives
from ...plans.compose import by_name
from ...plans.plan import require_graph
from ...plans.rewrite_document import ENTRIES as REWRITE_ENTRIES
from ...plans.rewrite_document import decode_rewrite
from .autodist_text import SUFFIXES, read_autodist_text
from .checks import Groups, check_fits, check_replicas
from .strategy import (
    DATA_PARALLEL,
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
from .worker_names import WorkerNames

VERSION = 1
SYNCHRONISERS = ("all-reduce", "ps")
TWO_LEVEL = "two-level"
_OF_ALL_REDUCE = ("group", "order", "tree")
_OF_SERVER = ("proxy", "via", "group")
_OF_PART = ("sync", "worker", "group", "order", "tree", "proxy", "via")
FLAGS = ("factors", "rows", "masked")
_OF_VARIABLE = (*FLAGS, *REWRITE_ENTRIES)
_UPDATES = ("in-turn", "last")
_MESSAGES = ("apart", "together")


def read_strategy(
    path: str | Path, graph: Graph, workers: int, machine: Machine | None = None
) -> SyncStrategy:
    """Read a strategy file for a graph, or AutoDist's own text. On a machine, it may name devices.

    Raises PlanError naming the file, the line and the entry that is wrong.
    """
    require_graph(graph)
    path = path_of(path, "path", PlanError)
    if path.suffix in SUFFIXES:
        return read_autodist_text(path, graph, workers)
    document, place = read_placed(path, "strategy file")
    reader = _Reader(graph, WorkerNames(workers, machine), path.parent, {})
    try:
        strategy = reader.read(document, place)
    except PlanError as error:
        raise PlanError(f"the strategy file {str(path)!r} cannot be used: {error}") from error
    base = None if strategy.base is None else str(place.key("base"))
    return replace(strategy, written=Written(f"strategy file {str(path)!r}", base, reader.places))


def parse_strategy(
    document: object, graph: Graph, workers: int, machine: Machine | None = None
) -> SyncStrategy:
    """Return the strategy that the contents of a file are for a graph, whose variables patterns may mean.

    Raises PlanError naming the entry that is wrong.
    """
    require_graph(graph)
    return _Reader(graph, WorkerNames(workers, machine), Path(), {}).read(document, DocumentPlace())


@dataclass(slots=True)
class _Reader:
    """Reads the contents of one file."""

    graph: Graph
    """The graph."""

    names: WorkerNames
    """The workers; the file may say on which machine they run."""

    folder: Path
    """The folder to which paths in the file are relative."""

    places: dict[str, str]
    """The place of the entry of each variable, once it is read."""

    def read(self, document: object, place: DocumentPlace) -> SyncStrategy:
        file = typed_object(document, place)
        optional = ("graph", "workers", "machine", "replicas", "base", "updates", "messages", "shares")
        expect_keys(file, ("strategy", "variables"), place, optional)
        number_between(file["strategy"], place.key("strategy"), VERSION, VERSION)
        self._check_graph(file, place)
        if "machine" in file:
            self.names = WorkerNames(self.names.workers, self._machine(file["machine"], place.key("machine")))
        replicas = self._replicas(file["replicas"], place.key("replicas")) if "replicas" in file else ()
        strategy = SyncStrategy({}, replicas)
        variables = self._variables(
            file["variables"], strategy.groups(self.names.workers), place.key("variables")
        )
        base = self._base(file["base"], place.key("base")) if "base" in file else None
        updates = self._one_of(_UPDATES, file, place.key("updates"), "updates")
        messages = self._one_of(_MESSAGES, file, place.key("messages"), "messages")
        shares = self._shares(file["shares"], place.key("shares")) if "shares" in file else None
        last, together = updates == "last", messages == "together"
        return SyncStrategy(variables, replicas, base, last, shares, together)

    def _one_of(
        self, known: Sequence[str], file: Mapping[str, object], place: DocumentPlace, key: str
    ) -> str:
        """Read one of several words, the first of them if there is none."""
        found = typed(file.get(key, known[0]), str, place)
        if found not in known:
            raise PlanError(f"{place} is {found[:60]!r}{alternatives(found, known)}")
        return found

    def _shares(self, entry: object, place: DocumentPlace) -> tuple[float, ...]:
        """Read the part of each gradient that each worker reduces."""
        listed: list[object] = typed(entry, list, place)
        if len(listed) != self.names.workers:
            raise PlanError(
                f"{place} has {len(listed)} entries for {self.names.workers} workers; write one for each"
            )
        found = []
        for number, each in enumerate(listed):
            share = any_number(each, place.item(number))
            if not 0 <= share <= 1:
                raise PlanError(f"{place.item(number)} is {each}; it must be a number from 0 to 1")
            found.append(share)
        if sum(found) == 0:
            raise PlanError(f"{place} are all 0; give a worker a part")
        return tuple(found)

    def _check_graph(self, file: Mapping[str, object], place: DocumentPlace) -> None:
        """Raise PlanError if a file is for another graph or number of workers."""
        workers, graph = self.names.workers, self.graph
        at = place.key("workers")
        if number_between(file.get("workers", workers), at, 1, WORKER_LIMIT) != workers:
            raise PlanError(f"{at} is {file['workers']}, but the plan is for {workers}; make them equal")
        at = place.key("graph")
        if typed(file.get("graph", graph.fingerprint), str, at) != graph.fingerprint:
            raise PlanError(
                f"{at} is {str(file['graph'])[:16]!r}, but that of {graph.name!r} is "
                f"{graph.fingerprint[:16]!r}; leave the entry out to use the strategy for both"
            )

    def _path(self, name: str) -> str:
        """Return a path of the file as seen from here, if there is a file of that name."""
        inside = self.folder / name
        return str(inside.absolute()) if inside.is_file() else name

    def _machine(self, entry: object, place: DocumentPlace) -> Machine:
        try:
            machine = load_machine(self._path(typed(entry, str, place)))
            machine.check_workers(self.names.workers)
        except MachineError as error:
            raise PlanError(f"{place}: {error}") from error
        return machine

    def _base(self, entry: object, place: DocumentPlace) -> str | None:
        """Return a method, or the path of a plan file; None for data parallelism."""
        base = typed(entry, str, place)
        if base == DATA_PARALLEL:
            return None
        if not base or "\0" in base:
            raise PlanError(f"{place} is {base!r}; write the path of a plan file, or a method")
        if Path(base).suffix == ".json" and not (self.folder / base).is_file():
            raise PlanError(
                f"{place}: there is no plan file {str(self.folder / base)!r}; give a path that is relative "
                "to the strategy file"
            )
        return self._path(base)

    def _replicas(self, entry: object, place: DocumentPlace) -> Groups:
        """Read a list of workers, or a list of such lists."""
        listed: list[object] = typed(entry, list, place)
        nested = [isinstance(each, list) for each in listed]
        if any(nested) and not all(nested):
            raise PlanError(f"{place} has workers next to lists; write lists of workers throughout")
        if all(nested):
            groups = tuple(self.names.listed(each, place.item(n)) for n, each in enumerate(listed))
        else:
            groups = (self.names.listed(listed, place),)
        try:
            if not groups:
                raise PlanError("the list of replicas is empty; leave it out for all workers")
            check_replicas(groups, self.names.workers)
        except PlanError as error:
            raise PlanError(f"{place}: {error}") from error
        return groups

    def _variables(self, entry: object, groups: Groups, place: DocumentPlace) -> dict[str, Synchronisation]:
        written = typed_object(entry, place)
        variables = {each.tensor.name: each for each in find_variables(self.graph)}
        for pattern in written:
            try:
                by_name("variable", {pattern: None}, list(variables))
            except PlanError as error:
                raise PlanError(f"{place.item(pattern)}: {error}") from error
        entries = {name: (name, entry) for name, entry in written.items()}
        found: dict[str, Synchronisation] = {}
        for name, (pattern, how) in by_name("variable", entries, list(variables)).items():
            at = place.item(pattern)
            self.places[name] = str(at)
            found[name] = _OfVariable(variables[name], self.names, groups).read(how, at)
            try:
                check_fits(variables[name], self.names.workers, groups, found[name])
            except PlanError as error:
                raise PlanError(f"{at}: {error}") from error
        missing = [name for name in variables if name not in found]
        if missing:
            raise PlanError(
                f"{place} has nothing for {missing[0]!r} ({len(missing)} in all); add it, or a pattern such "
                "as '*'"
            )
        return found


@dataclass(frozen=True, slots=True)
class _OfVariable:
    """Reads the entry of one variable."""

    variable: TrainedVariable
    """The variable."""

    names: WorkerNames
    """The workers."""

    groups: Groups
    """The groups of replicas."""

    def read(self, entry: object, place: DocumentPlace) -> Synchronisation:
        """Read how a variable is synchronised: whole, in equal parts, or in parts with an entry each."""
        given = typed_object(entry, place)
        expect_keys(given, (), place, (*_OF_VARIABLE, "cut", "parts", "workers", *_OF_PART))
        rewrite = decode_rewrite(given, place)
        flags = {key: typed(given.get(key, False), bool, place.key(key)) for key in FLAGS}
        entries = {key: value for key, value in given.items() if key not in _OF_VARIABLE}
        cuts = self._cuts(entries["cut"], place.key("cut")) if "cut" in entries else ()
        partition = cuts[0] if len(cuts) == 1 else cuts or None
        count = prod(len(cut.bounds) + 1 for cut in cuts)
        if "parts" not in entries:
            parts = self._equal_parts(entries, count, place)
            return Synchronisation(parts, partition, rewrite, (), **flags)
        at = place.key("parts")
        others = [key for key in ("workers", *_OF_PART) if key in entries]
        if others:
            raise PlanError(
                f"{place.at(others[0])} has 'parts' and {others[0]!r}; write into each part what it needs"
            )
        listed: list[object] = typed(entries["parts"], list, at)
        if len(listed) != count:
            raise PlanError(f"{at} has {len(listed)} entries for {count} parts; write one for each")
        both = [self._part(part, at.item(number)) for number, part in enumerate(listed)]
        parts, own = tuple(sync for sync, _ in both), tuple(each for _, each in both)
        if not cuts and rewrite == NO_REWRITE:
            return Synchronisation(parts, partition, own[0], (), **flags)
        own = own if any(each != NO_REWRITE for each in own) else ()
        return Synchronisation(parts, partition, rewrite, own, **flags)

    def _part(self, entry: object, place: DocumentPlace) -> tuple[Synchroniser, Rewrite]:
        """Read the synchroniser of a part, and how its gradient is encoded and delayed."""
        entries = typed_object(entry, place)
        rewrite = decode_rewrite(entries, place)
        own = {key: value for key, value in entries.items() if key not in REWRITE_ENTRIES}
        return self._synchroniser(own, place), rewrite

    def _equal_parts(
        self, entries: Mapping[str, object], count: int, place: DocumentPlace
    ) -> tuple[Synchroniser, ...]:
        """Read the synchroniser of all parts, which may name a server for each."""
        own = {key: value for key, value in entries.items() if key not in ("cut", "workers")}
        if "workers" not in entries:
            return (self._synchroniser(own, place),) * count
        at = place.key("workers")
        if "worker" in own:
            raise PlanError(f"{at} stands next to 'worker'; leave out one of them")
        servers = self.names.listed(entries["workers"], at)
        if len(servers) != count:
            raise PlanError(f"{at} has {len(servers)} entries for {count} parts; write one for each")
        return tuple(self._synchroniser({**own, "worker": worker}, place) for worker in servers)

    def _synchroniser(self, entries: dict[str, object], place: DocumentPlace) -> Synchroniser:
        if "sync" not in entries:
            raise PlanError(f"{place} lacks 'sync'; write one of {', '.join(SYNCHRONISERS)}")
        if entries["sync"] is False:
            expect_keys(entries, ("sync", "worker"), place)
            return Server(self.names.worker(entries["worker"], place.key("worker")), by_arrival=True)
        if entries["sync"] is True:
            known = ", ".join(SYNCHRONISERS)
            raise PlanError(f"{place.key('sync')} is true; write one of {known}, or false")
        sync = typed(entries["sync"], str, place.key("sync"))
        match sync:
            case "all-reduce":
                expect_keys(entries, ("sync",), place, _OF_ALL_REDUCE)
                return AllReduce(
                    self._group(entries, place) or 0,
                    self._workers(entries, "order", place),
                    self._tree(entries, place.key("tree")),
                )
            case "ps":
                expect_keys(entries, ("sync", "worker"), place, _OF_SERVER)
                return Server(
                    self.names.worker(entries["worker"], place.key("worker")),
                    typed(entries.get("proxy", False), bool, place.key("proxy")),
                    self._workers(entries, "via", place),
                    self._group(entries, place),
                )
            case _:
                raise PlanError(f"{place.key('sync')} is {sync[:60]!r}{alternatives(sync, SYNCHRONISERS)}")

    def _group(self, entries: Mapping[str, object], place: DocumentPlace) -> int | None:
        if "group" not in entries:
            return None
        return number_between(entries["group"], place.key("group"), 0, GROUP_LIMIT)

    def _workers(self, entries: Mapping[str, object], key: str, place: DocumentPlace) -> tuple[int, ...]:
        if key not in entries:
            return ()
        found = self.names.listed(entries[key], place.key(key))
        if not found:
            raise PlanError(f"{place.key(key)} is empty; name workers, or leave it out")
        return found

    def _tree(self, entries: Mapping[str, object], place: DocumentPlace) -> bool:
        if "tree" not in entries:
            return False
        tree = typed(entries["tree"], str, place)
        if tree != TWO_LEVEL:
            raise PlanError(f"{place} is {tree[:60]!r}; write {TWO_LEVEL}, or leave it out")
        return True

    def _cuts(self, entry: object, place: DocumentPlace) -> tuple[Partition, ...]:
        """Read the cut of one dimension, or a list of cuts of several."""
        if not self.variable.tensor.shape:
            raise PlanError(f"{place}: variable {self.variable.tensor.name!r} is a scalar; leave out its cut")
        if not isinstance(entry, list):
            return (self._cut(entry, place),)
        if not entry:
            raise PlanError(f"{place} is an empty list; leave it out for a variable that is whole")
        return tuple(self._cut(each, place.item(number)) for number, each in enumerate(entry))

    def _cut(self, entry: object, place: DocumentPlace) -> Partition:
        """Read a cut into even parts, or at bounds."""
        cut, shape = typed_object(entry, place), self.variable.tensor.shape
        expect_keys(cut, ("axis",), place, ("parts", "bounds"))
        if ("parts" in cut) == ("bounds" in cut):
            raise PlanError(f"{place} needs 'parts' or 'bounds', and not both; write one of them")
        axis = number_between(cut["axis"], place.key("axis"), 0, len(shape) - 1)
        if "parts" in cut:
            return evenly(axis, shape[axis], number_between(cut["parts"], place.key("parts"), 1, shape[axis]))
        at = place.key("bounds")
        bounds: list[object] = typed(cut["bounds"], list, at)
        places = (
            number_between(bound, at.item(number), 0, shape[axis]) for number, bound in enumerate(bounds)
        )
        return Partition(axis, tuple(places))

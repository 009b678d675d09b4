"""Whether a strategy fits a graph and a number of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from math import inf, prod

from ....dataflow.rewrites.encoders import NO_REWRITE
from ....errors import PlanError
from ....support.wording import alternatives, counted
from .part_rewrites import check_part_rewrites
from .rows import check_rows
from .strategy import AllReduce, Server, Synchronisation, SyncStrategy
from .variables import TrainedVariable

PARTS_LIMIT = 1024
"""The most parts of a variable. AutoDist cuts a prime number of rows into single rows."""

Groups = tuple[tuple[int, ...], ...]
"""The groups of replicas."""


def require_strategy(strategy: object) -> None:
    """Raise PlanError for anything else than a strategy."""
    if not isinstance(strategy, SyncStrategy):
        raise PlanError(
            f"compile takes a tofu.sync.Strategy, not a {type(strategy).__name__}; build one first"
        )


def check_strategy(variables: Mapping[str, TrainedVariable], workers: int, strategy: SyncStrategy) -> None:
    """Raise PlanError unless the strategy has each variable, in parts that it and the workers have."""
    require_strategy(strategy)
    check_replicas(strategy.replicas, workers)
    unknown = [name for name in strategy.variables if name not in variables]
    if unknown:
        raise PlanError(
            f"the graph updates no variable {unknown[0]!r}{alternatives(unknown[0], list(variables))}"
        )
    for name, variable in variables.items():
        if name not in strategy.variables:
            raise PlanError(f"variable {name!r} has no synchronisation; give it one")
        check_fits(variable, workers, strategy.groups(workers), strategy.variables[name])
    _check_rewrites(workers, strategy)
    _check_shares(workers, strategy.shares)


def _check_shares(workers: int, shares: tuple[float, ...] | None) -> None:
    if shares is not None and not (len(shares) == workers and min(shares) >= 0 and 0 < sum(shares) < inf):
        raise PlanError(
            f"there are {len(shares)} shares for {workers} workers, from {min(shares, default=0)} on; give "
            "one for each worker, none of them negative"
        )


def _check_rewrites(workers: int, strategy: SyncStrategy) -> None:
    """Raise PlanError if gradients of samples are rewritten, but not all workers are replicas."""
    name = next((name for name, each in strategy.rewrites.items() if each.of_samples), None)
    replicas = sum(map(len, strategy.groups(workers)))
    if name is not None and replicas < workers:
        raise PlanError(
            f"variable {name!r} has an encoder, parts with their own rewrites, or gradients that are applied "
            f"as they arrive, for which all {workers} workers must be replicas, but {replicas} are; leave "
            "out the others, or the rewrite"
        )


def check_replicas(groups: Groups, workers: int) -> None:
    """Raise PlanError for groups of replicas that share a worker, are empty, or name an unknown one."""
    listed = [worker for group in groups for worker in group]
    for worker in listed:
        _check_worker("the list of replicas", worker, workers)
    twice = next((worker for worker, count in Counter(listed).items() if count > 1), None)
    if twice is not None:
        raise PlanError(f"the list of replicas has worker {twice} twice; name each worker once")
    if not all(groups):
        raise PlanError("a group of replicas has no workers; leave it out")


def check_fits(variable: TrainedVariable, workers: int, groups: Groups, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose synchronisation does not fit it or the workers."""
    name = variable.tensor.name
    if len(how.parts) > PARTS_LIMIT:
        raise PlanError(
            f"variable {name!r} has {len(how.parts):,} parts, but at most {PARTS_LIMIT:,} are planned; give "
            "it fewer, or choose another builder"
        )
    _check_cuts(variable, how)
    parts = prod(len(cut.bounds) + 1 for cut in how.cuts)
    if len(how.parts) != parts:
        raise PlanError(
            f"variable {name!r} has {parts} parts, but {len(how.parts)} synchronisers; give one for each part"
        )
    if how.factors and how.rewrite.encoder is not None:
        raise PlanError(
            f"variable {name!r} gets its gradient from factors, so no sum of it is exchanged that an encoder "
            "could change; leave out 'factors' or 'encode'"
        )
    _check_arrivals(name, how)
    check_rows(variable, how)
    check_part_rewrites(variable, how)
    for part in dict.fromkeys(how.parts):
        match part:
            case Server():
                _check_server(name, part, workers, groups)
            case AllReduce():
                _check_all_reduce(name, part, groups)


def _check_arrivals(name: str, how: Synchronisation) -> None:
    """Raise PlanError if only a part applies gradients by arrival, or if sums of them are asked for."""
    if not how.by_arrival:
        return
    if not all(isinstance(part, Server) and part.by_arrival for part in how.parts):
        raise PlanError(
            f"variable {name!r} applies gradients in the order in which they arrive in some parts, and sums "
            "them in others; write `sync: false` for all parts, or for none"
        )
    if any(isinstance(part, Server) and (part.proxy or part.via) for part in how.parts):
        raise PlanError(
            f"variable {name!r} applies gradients in the order in which they arrive, so every worker keeps "
            "what it pulled, and nothing is summed before; leave out `proxy` and `via`"
        )
    if how.rewrite != NO_REWRITE or how.part_rewrites or how.factors or how.rows:
        raise PlanError(
            f"variable {name!r} applies gradients in the order in which they arrive, so they are not "
            "encoded, not delayed, not made from factors and not exchanged as rows; leave out one of both"
        )


def _check_cuts(variable: TrainedVariable, how: Synchronisation) -> None:
    name, shape = variable.tensor.name, variable.tensor.shape
    axes = [cut.axis for cut in how.cuts]
    for cut in how.cuts:
        if not 0 <= cut.axis < len(shape):
            raise PlanError(f"variable {name!r} has no dimension {cut.axis}; it has {len(shape)}, from 0 on")
        edges = (0, *cut.bounds, shape[cut.axis])
        if any(lower >= upper for lower, upper in pairwise(edges)):
            raise PlanError(
                f"variable {name!r}: the bounds {list(cut.bounds)} do not cut dimension {cut.axis} of "
                f"{shape[cut.axis]}; they must rise, and lie inside"
            )
    if axes != sorted(set(axes)):
        raise PlanError(
            f"variable {name!r} is cut along dimensions {axes}; name each once, in ascending order"
        )


def _check_server(name: str, server: Server, workers: int, groups: Groups) -> None:
    _check_worker(f"variable {name!r}", server.worker, workers)
    if server.by_arrival and server.group is not None:
        raise PlanError(
            f"variable {name!r} is in group {server.group}, but its gradients are applied as they arrive and "
            "do not wait for others; leave out the group"
        )
    if not server.via:
        return
    if len(server.via) != len(groups):
        raise PlanError(
            f"variable {name!r} goes via {counted(len(server.via), 'worker')}, but the replicas are in "
            f"{counted(len(groups), 'group')}; name a worker for each"
        )
    for worker, group in zip(server.via, groups, strict=True):
        if worker not in group:
            raise PlanError(
                f"variable {name!r} goes via worker {worker}, which is not in its group {list(group)}; name "
                "one of the group"
            )


def _check_all_reduce(name: str, part: AllReduce, groups: Groups) -> None:
    replicas = sorted(worker for group in groups for worker in group)
    if part.order and sorted(part.order) != replicas:
        raise PlanError(
            f"variable {name!r} has the order {list(part.order)}, but the replicas are {replicas}; name each "
            "once"
        )
    if part.two_level and len(groups) < 2:
        raise PlanError(
            f"variable {name!r} is summed in two levels, but all replicas are in one group; give several "
            "groups, such as replicas: [[0, 1], [2, 3]]"
        )


def _check_worker(what: str, worker: int, workers: int) -> None:
    if not 0 <= worker < workers:
        raise PlanError(f"{what} is on worker {worker}; workers are numbered 0 to {workers - 1}")

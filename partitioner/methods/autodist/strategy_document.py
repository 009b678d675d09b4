"""The contents of a strategy file, from a strategy: what `strategy_file` reads again."""

from __future__ import annotations

from ....dataflow.rewrites.encoders import NO_REWRITE
from ....errors import PlanError
from ....support.checked_argument import require
from ...plans.rewrite_document import encode_rewrite
from .strategy import AllReduce, Server, Synchronisation, Synchroniser, SyncStrategy
from .strategy_file import FLAGS, TWO_LEVEL, VERSION


def strategy_document(strategy: SyncStrategy) -> dict[str, object]:
    """Return what a strategy file holds of a strategy. Raises PlanError for another value."""
    require(isinstance(strategy, SyncStrategy), strategy, "strategy", "a tofu.sync.Strategy", PlanError)
    head: dict[str, object] = {"strategy": VERSION}
    if strategy.base is not None:
        head["base"] = strategy.base
    if strategy.replicas:
        head["replicas"] = [list(group) for group in strategy.replicas]
    if strategy.updates_last:
        head["updates"] = "last"
    if strategy.together:
        head["messages"] = "together"
    if strategy.shares is not None:
        head["shares"] = list(strategy.shares)
    return {**head, "variables": {name: _written(how) for name, how in strategy.variables.items()}}


def _written(how: Synchronisation) -> dict[str, object]:
    flags = {key: True for key in FLAGS if getattr(how, key)}
    whole = {**flags, **encode_rewrite(how.rewrite)}
    if not how.cuts:
        return {**whole, **_written_part(how.parts[0])}
    cuts: list[object] = [{"axis": cut.axis, "bounds": list(cut.bounds)} for cut in how.cuts]
    own = how.part_rewrites or (NO_REWRITE,) * len(how.parts)
    parts = [
        {**_written_part(part), **encode_rewrite(each)} for part, each in zip(how.parts, own, strict=True)
    ]
    return {**whole, "cut": cuts[0] if len(cuts) == 1 else cuts, "parts": parts}


def _written_part(part: Synchroniser) -> dict[str, object]:
    match part:
        case AllReduce(group=group, order=order, two_level=two_level):
            others: dict[str, object] = {"order": list(order)} if order else {}
            others.update({"tree": TWO_LEVEL} if two_level else {})
            return {"sync": "all-reduce", "group": group, **others}
        case Server(worker=worker, by_arrival=True):
            return {"sync": False, "worker": worker}
        case Server(worker=worker, proxy=proxy, via=via, group=group):
            others = {"via": list(via)} if via else {}
            others.update({} if group is None else {"group": group})
            return {"sync": "ps", "worker": worker, "proxy": proxy, **others}

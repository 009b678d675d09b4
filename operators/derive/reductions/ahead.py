"""Find reductions with special algorithms, which are computed first. The rest reads their results."""

from __future__ import annotations

from collections.abc import Mapping

from ..nodes.ir import Apply, Lowered, Node, Output, Reduction
from . import excluded, matching, onehot, picked, scan
from .guarded import reduction
from .matching import Match
from .onehot import OneHot
from .scan import Scan

Plan = Scan | OneHot | Match


def planned(node: Reduction, extents: Mapping[str, int]) -> Plan | None:
    """Return how a reduction is computed in linear time; None if its form allows or repays none."""
    for plan in (onehot.onehot(node), scan.scan(node), matching.match(node)):
        if plan is not None and plan.pays(extents):
            return plan
    return None


def isolate(lowered: Lowered, extents: Mapping[str, int]) -> Lowered:
    """Return all outputs, with reductions regrouped so that a part of them has a plan, if that is
    possible.
    """
    done: dict[Node, Node] = {}
    return Lowered(
        tuple(Output(output.variables, _isolated(output.value, extents, done)) for output in lowered.outputs),
        lowered.variables,
    )


def _isolated(node: Node, extents: Mapping[str, int], done: dict[Node, Node]) -> Node:
    if (known := done.get(node)) is not None:
        return known
    result = node
    match node:
        case Apply(function=function, arguments=arguments, free=free, loads=loads):
            parts = tuple(_isolated(argument, extents, done) for argument in arguments)
            if any(new is not old for new, old in zip(parts, arguments, strict=True)):
                result = Apply(function, parts, free, loads)
        case Reduction(reducer=reducer, variables=variables, body=body):
            new = _isolated(body, extents, done)
            result = node if new is body else reduction(reducer, variables, new)
            if isinstance(result, Reduction) and planned(result, extents) is None:
                result = _without_excluded(result, extents) or picked.split(result, extents) or result
            regrouped: Node | None = result
            while isinstance(regrouped, Reduction) and planned(regrouped, extents) is None:
                result = regrouped
                regrouped = onehot.isolate(result, extents) or scan.isolate(result, extents)
            result = regrouped or result
    done[node] = result
    return result


def _without_excluded(node: Reduction, extents: Mapping[str, int]) -> Node | None:
    """Return a reduction without an excluded term if scans compute all that it becomes, else None."""
    match excluded.split(node):
        case Apply(arguments=parts) as found:
            scans = [isinstance(part, Reduction) and planned(part, extents) for part in parts]
            return found if all(scans) else None
        case Reduction() as found:
            return found if scan.isolate(found, extents) is not None else None
        case _:
            return None

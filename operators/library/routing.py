"""Tokens on their way to experts and back: moe_dispatch and moe_combine.

`expert[token, choice]` holds the experts that a token goes to, each at most once. Tokens come into the places
of an expert in their order; those after the first `capacity` are dropped (Lepikhin et al., GShard, ICLR 2021,
section 2.2). So no expert computes more than `capacity` tokens.
"""

from __future__ import annotations

from ..operator import Example, Operator
from ..stages.attributes import integer
from ..stages.definition import text
from .arguments import arguments

PLACES = """
    chosen = lambda t, e={experts}: Sum(lambda k: where(expert[t, k] == e, 1, 0))
    place = lambda t=expert.shape[0], e: Sum(lambda s: where(s <= t, chosen[s, e], 0))
    slot = lambda t, k: place[t, expert[t, k]] - 1
"""
"""The number of a token among those of its expert: a scan over tokens for each expert."""

DISPATCH = f"""
def moe_dispatch(data, expert, *, experts, capacity):{PLACES.format(experts="experts")}
    return lambda e=experts, c=capacity, d: Sum(
        lambda t, k: where(expert[t, k] == e and slot[t, k] == c, data[t, d], 0)
    )
"""

COMBINE = f"""
def moe_combine(data, expert, gate):{PLACES.format(experts="data.shape[0]")}
    taken = lambda t, k, d: Sum(
        lambda e, c: where(expert[t, k] == e and slot[t, k] == c, data[e, c, d], 0)
    )
    return lambda t, d: Sum(lambda k: gate[t, k] * taken[t, k, d])
"""

OPERATORS = (
    Operator(
        name="moe_dispatch",
        definition=text(DISPATCH),
        argument_names=arguments("data", "expert"),
        specs=(integer("experts", least=1), integer("capacity", least=1)),
        example=Example(
            {"data": (5, 3), "expert": (5, 1)}, {"experts": 2, "capacity": 2}, {"expert": (0, 2)}
        ),
    ),
    Operator(
        name="moe_combine",
        definition=text(COMBINE),
        argument_names=arguments("data", "expert", "gate"),
        example=Example({"data": (2, 2, 3), "expert": (5, 1), "gate": (5, 1)}, whole={"expert": (0, 2)}),
    ),
)

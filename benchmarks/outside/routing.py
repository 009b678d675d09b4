"""Rows that go where data say: to experts, segments, bins."""

from __future__ import annotations

from typing import Any

from .outsider import PROBABILITY, below, written
from .peer import F, torch


@written(
    """
def segment_sum(x, segment, *, segments):
    return lambda g=segments, d: Sum(lambda n: where(segment[n] == g, x[n, d], 0))
""",
    small={"x": (7, 3), "segment": (7,), "segments": 4},
    large={"x": (16384, 128), "segment": (16384,), "segments": 64},
    kinds={"segment": below("segments")},
)
def segment_sum(x: Any, segment: Any, segments: int) -> Any:
    return torch.zeros(segments, x.shape[1], dtype=x.dtype).index_add(0, segment, x)


@written(
    """
def histogram(bin, *, bins):
    return lambda k=bins: Sum(lambda n: where(bin[n] == k, 1, 0))
""",
    small={"bin": (9,), "bins": 5},
    large={"bin": (1048576,), "bins": 64},
    kinds={"bin": below("bins")},
)
def histogram(bin: Any, bins: int) -> Any:
    return torch.bincount(bin, minlength=bins)


@written(
    """
def embedding_bag(table, bag):
    return lambda b, d: Sum(lambda k: table[bag[b, k], d])
""",
    small={"table": (6, 4), "bag": (3, 5)},
    large={"table": (20000, 128), "bag": (1024, 16)},
    kinds={"bag": below("table", 0)},
)
def embedding_bag(table: Any, bag: Any) -> Any:
    return F.embedding_bag(bag, table, mode="sum")


@written(
    """
def one_hot_product(table, label):
    return lambda b, d: Sum(lambda v: (label[b] == v) * table[v, d])
""",
    small={"table": (6, 4), "label": (5,)},
    large={"table": (1024, 256), "label": (1024,)},
    kinds={"label": below("table", 0)},
)
def one_hot_product(table: Any, label: Any) -> Any:
    return F.one_hot(label, table.shape[0]).to(table.dtype) @ table


@written(
    """
def top1_gating(logit):
    peak = lambda t: Max(lambda e: logit[t, e])
    weight = lambda t, e: exp(logit[t, e] - peak[t])
    total = lambda t: Sum(lambda e: weight[t, e])
    return lambda t, e: where(logit[t, e] == peak[t], weight[t, e] / total[t], 0)
""",
    small={"logit": (5, 4)},
    large={"logit": (32768, 64)},
)
def top1_gating(logit: Any) -> Any:
    probability = logit.softmax(-1)
    best = logit.argmax(-1, keepdim=True)
    return torch.zeros_like(logit).scatter(-1, best, probability.gather(-1, best))


@written(
    """
def expert_dispatch(x, expert, slot, *, experts, capacity):
    return lambda e=experts, c=capacity, d: Sum(lambda t: where(expert[t] == e and slot[t] == c, x[t, d], 0))
""",
    small={"x": (6, 4), "expert": (6,), "slot": (6,), "experts": 3, "capacity": 4},
    large={"x": (1024, 256), "expert": (1024,), "slot": (1024,), "experts": 8, "capacity": 160},
    kinds={"expert": below("experts"), "slot": below("capacity")},
)
def expert_dispatch(x: Any, expert: Any, slot: Any, experts: int, capacity: int) -> Any:
    places = torch.zeros(experts * capacity, x.shape[1], dtype=x.dtype)
    return places.index_add(0, expert * capacity + slot, x).reshape(experts, capacity, -1)


@written(
    """
def expert_combine(y, expert, slot, gate):
    return lambda t, d: gate[t] * Sum(
        lambda e, c: where(expert[t] == e and slot[t] == c, y[e, c, d], 0)
    )
""",
    small={"y": (3, 4, 5), "expert": (6,), "slot": (6,), "gate": (6,)},
    large={"y": (8, 160, 256), "expert": (1024,), "slot": (1024,), "gate": (1024,)},
    kinds={"expert": below("y", 0), "slot": below("y", 1), "gate": PROBABILITY},
)
def expert_combine(y: Any, expert: Any, slot: Any, gate: Any) -> Any:
    return gate[:, None] * y[expert, slot]

"""The plans and bounds of `exact` for every model of the zoo, over 8 workers, in the space of the paper.

python -m benchmarks.gaps [MODEL[:BATCH] ...] [--save benchmarks/results/gaps.json]
python -m benchmarks.gaps --replicate --save benchmarks/results/gaps-replicated.json
python -m benchmarks.gaps --replicate --feed batch --save benchmarks/results/gaps-fed.json
python -m benchmarks.gaps --replicate --keep --feed batch --workers 16 MODEL ...

With `--replicate` tensors may be replicated over any steps, with `--keep` what is made may be kept, and
`--feed` says how inputs arrive.
The gap is what the bound leaves open, as a part of the cost; seconds are processor seconds of the whole
search, from a built graph to a counted plan. Without models it is the whole zoo and, with other batches, the
models of the design.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import tofu
from tofu.partitioner import partition

from .machine import described
from .record import keep

DESIGN = ("wresnet-50-4:128", "wresnet-50-10:32", "wresnet-152-10:8")
COLUMNS = ("refine GB", "exact GB", "proven GB")


def measured(model: str, workers: int, **space: Any) -> dict[str, Any]:
    """Return the figures of a model, written `name` or `name:batch`."""
    name, _, batch = model.partition(":")
    chosen = tofu.models.get(name, batch=int(batch)) if batch else tofu.models.get(name)
    graph = chosen.training_graph()
    costs: list[int] = []
    start = time.process_time()
    plan = partition(graph, workers, method="exact", report=lambda cost, bound: costs.append(cost), **space)
    seconds = time.process_time() - start
    return {
        "refined_bytes": costs[0],
        "cost_bytes": plan.cost_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "gap": (plan.cost_bytes - plan.lower_bound_bytes) / max(plan.cost_bytes, 1),
        "seconds": round(seconds, 1),
    }


def row(model: str, entry: dict[str, Any]) -> str:
    """Return a model's figures as a line of the table."""
    sizes = (entry[key] / 1e9 for key in ("refined_bytes", "cost_bytes", "lower_bound_bytes"))
    figures = " ".join(f"{size:12.6f}" for size in sizes)
    return f"{model:28} {figures} {entry['gap']:8.3%} {entry['seconds']:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL[:BATCH]")
    parser.add_argument("--save", type=Path, help="add the results to this file, in the order of the zoo")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--replicate", action="store_true", help="search the larger space")
    parser.add_argument("--keep", action="store_true", help="search the space that keeps what is made")
    parser.add_argument("--feed", choices=("anywhere", "batch"), default="anywhere")
    arguments = parser.parse_args()
    space = {"replicate": arguments.replicate, "keep": arguments.keep, "feed": arguments.feed}
    order = (*tofu.models.names(), *DESIGN)
    entries: dict[str, dict[str, Any]] = {}
    if arguments.save is not None and arguments.save.exists():
        entries = json.loads(arguments.save.read_text(encoding="utf-8"))["results"]
    print(f"{'model':28} {' '.join(f'{name:>12}' for name in COLUMNS)} {'gap':>8} {'seconds':>8}")
    for model in arguments.models or order:
        entries[model] = measured(model, arguments.workers, **space)
        print(row(model, entries[model]), flush=True)
        ranked = dict(sorted(entries.items(), key=lambda item: (*order, item[0]).index(item[0])))
        keep({**described(), "workers": arguments.workers, **space, "results": ranked}, arguments.save)


if __name__ == "__main__":
    main()

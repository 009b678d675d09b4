"""DTensor's sharding rules for operators of PyTorch, held against their descriptions.

Run from the root of the checkout, where the extra `torch` is installed:

    python -m benchmarks.dtensor_audit benchmarks/results/dtensor_audit.json [SURVEY ...]

For each operator all placements of its inputs, and the verdicts that `tofu.testing.survey_shardings` gives.
A survey is one of those of `SURVEYS`; without names, all are made.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

import tofu

SURVEYS: dict[str, dict[str, Any]] = {
    "outputs, 2 workers": {"workers": 2},
    "gradients, 2 workers": {"workers": 2, "gradients": True},
    "outputs, 2 x 2 workers": {"workers": (2, 2)},
    "gradients, 2 x 2 workers": {"workers": (2, 2), "gradients": True},
}
"""The surveys by name, as arguments of `survey_shardings`."""


def operators() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield operators with example inputs, whose extents 2 workers divide, and mostly 4."""
    draw = torch.randn
    square = draw(4, 8)
    picture = draw(4, 6, 8, 8)
    yield "add", torch.add, (square, draw(4, 8))
    yield "mul", torch.mul, (square, draw(4, 8))
    yield "add of a row", torch.add, (square, draw(8))
    yield "relu", torch.relu, (square,)
    yield "exp", torch.exp, (square,)
    yield "mm", torch.mm, (square, draw(8, 6))
    yield "bmm", torch.bmm, (draw(2, 4, 8), draw(2, 8, 6))
    yield "linear", functional.linear, (square, draw(6, 8), draw(6))
    yield "sum", lambda x: x.sum(1), (square,)
    yield "mean", lambda x: x.mean(1), (square,)
    yield "amax", lambda x: x.amax(1), (square,)
    yield "max with indices", lambda x: torch.max(x, 1)[0], (square,)
    yield "softmax", lambda x: functional.softmax(x, 1), (square,)
    yield "layer_norm", lambda x, w, b: functional.layer_norm(x, (8,), w, b), (square, draw(8), draw(8))
    yield "conv2d", lambda x, w: functional.conv2d(x, w, padding=1), (picture, draw(6, 6, 3, 3))
    yield "conv2d of patches", lambda x, w: functional.conv2d(x, w, stride=2), (picture, draw(6, 6, 2, 2))
    yield "max_pool2d", lambda x: functional.max_pool2d(x, 2), (picture,)
    yield "avg_pool2d", lambda x: functional.avg_pool2d(x, 2), (picture,)
    yield "transpose", lambda x: x.transpose(0, 1), (square,)
    yield "cat", lambda x, y: torch.cat([x, y], 1), (square, draw(4, 8))
    yield "embedding", lambda w, i: functional.embedding(i, w), (draw(8, 6), torch.arange(8).reshape(2, 4))
    yield "gelu", functional.gelu, (square,)


def main(path: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    results: dict[str, Any] = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    results["torch"] = torch.__version__
    for survey in names or SURVEYS:
        found: dict[str, Any] = {}
        torch.manual_seed(0)
        for name, operator, inputs in operators():
            start = time.process_time()
            verdicts = tofu.testing.survey_shardings(operator, inputs, **SURVEYS[survey])
            found[name] = {
                "counts": verdicts.counts,
                **{kind: [str(each) for each in verdicts.of(kind)] for kind in ("unsound", "missing", "own")},
                "processor_seconds": round(time.process_time() - start, 2),
            }
            print(f"{survey}, {name}: {verdicts.counts}", flush=True)
        total: Counter[str] = sum((Counter(each["counts"]) for each in found.values()), Counter())
        results[survey] = {"all": dict(sorted(total.items())), "operators": found}
        Path(path).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

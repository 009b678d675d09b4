"""Damaged plan files: each is refused, or it is a plan that trains like one worker does.

Files of version 2 are changed entry by entry. A file that is accepted and verified is trained for two
iterations over its workers, and every parameter is compared with training on one worker.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tofu
from tofu.errors import TofuError

from .damage import changed
from .files import graph, network, saved_plans
from .guard import Guard


def plans(numbers: Iterable[int], seed: int, limit: float) -> Guard:
    """Change one plan file for each number."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = [json.loads(content) for content in saved_plans(folder)]
        expected = trained(None)
        path = folder / "plan.json"
        for document in whole:  # modules are imported before they are watched
            path.write_text(json.dumps(document), encoding="utf-8")
            plan = tofu.Plan.load(path)
            tofu.verify(graph(), plan)
            trained(plan)
        guard = Guard(limit, folder)
        for number in numbers:
            random = Random(f"{seed} {number}")
            document = random.choice(whole)
            other = changed(random, document)
            content = json.dumps(other)
            path.write_text(content, encoding="utf-8")
            plan = None
            with guard.trial("load and verify", content), guard.watching():
                try:
                    plan = tofu.Plan.load(path)
                    tofu.verify(graph(), plan)
                except TofuError:
                    guard.counts["refused"] += 1
                    continue
            if plan is None:
                continue
            guard.counts["accepted, unchanged" if other == document else "accepted, different"] += 1
            with guard.trial("train", content):
                _compare(guard, trained(plan), expected, content)
    return guard


def trained(plan: tofu.Plan | None) -> dict[str, Any]:
    """Return the parameters after two iterations."""
    random = np.random.default_rng(0)
    data = random.standard_normal((16, 5)).astype(np.float32)
    batches = tofu.ArrayIterator(data, data[:, :4].argmax(axis=1), 8)
    workers = 1 if plan is None else plan.workers
    with tofu.Module(network(), [tofu.cpu(worker) for worker in range(workers)], plan=plan) as module:
        module.fit(batches, num_epoch=1, optimizer="adam", learning_rate=0.1)
        return module.parameters()


def _compare(guard: Guard, found: dict[str, Any], expected: dict[str, Any], shown: str) -> None:
    for name, array in expected.items():
        if not np.allclose(found[name], array, rtol=1e-3, atol=1e-4):
            guard.fail("trained wrong", shown, f"{name}: {np.abs(found[name] - array).max()}")
            return

"""Shares of samples: each sample once, by a worker that holds all its rows."""

from __future__ import annotations

import pytest

import tofu
from tofu.runtime.sample_shares import sample_shares


@pytest.mark.parametrize("method", ["data-parallel", "recursive", "all-row", "replicas"])
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize(("model", "samples"), [("mlp", 12), ("lstm", 4)])
def test_every_sample_is_evaluated_once(model: str, samples: int, method: str, workers: int) -> None:
    small = {"layers": 1, "hidden": 16, "steps": 3, "batch": 4} if model == "lstm" else {"batch": 12}
    graph = tofu.models.get(model, **small).training_graph()
    names = [graph.tensors[output].name for output in graph.outputs]
    if method == "replicas":
        steps = {1: "", 2: "-", 3: "-", 4: "-,-"}[workers]
        replicated = [f"pin {name}={steps}" for name in names] if steps else []
        plan = tofu.partition(graph, workers, constraints=replicated, memory="unlimited")
    else:
        plan = tofu.partition(graph, workers, method, memory="unlimited")
    partitioned = tofu.lower(graph, plan)
    for output in graph.outputs:
        shares = sample_shares(partitioned, output, samples)
        regions = [
            partitioned.programs[worker].buffers[buffer].region
            for worker, buffer in partitioned.homes[output]
        ]
        shape = graph.tensors[output].shape
        each = shape[0] // samples
        whole = all(
            region[1:] == tuple((0, extent) for extent in shape[1:])
            and not region[0][0] % each
            and not region[0][1] % each
            for region in regions
        )
        assert (shares is not None) == whole
        if shares is None:
            continue
        evaluated = [sample for share in shares for sample in range(*share.samples)]
        assert evaluated == list(range(samples))
        for share in shares:
            held = partitioned.programs[share.held[0]].buffers[share.held[1]].region[0]
            rows = [each * share.samples[0], each * share.samples[1]]
            assert [held[0] + share.rows[0], held[0] + share.rows[1]] == rows
        if len({worker for worker, _ in partitioned.homes[output]}) == workers:
            assert max(len(range(*share.samples)) for share in shares) <= -(-samples // workers) + 1


def test_samples_that_do_not_divide_rows_have_no_shares() -> None:
    graph = tofu.models.get("mlp", batch=12).training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, 2))
    assert sample_shares(partitioned, graph.outputs[0], 5) is None

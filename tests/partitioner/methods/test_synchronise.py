"""Strategies on top of bases that are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.synchronise import synchronise

from ...runtime.test_partitioned_training import training

GRAPH = training("perceptron")
STRATEGY = all_reduce(GRAPH, 4)


def test_a_base_is_a_plan_its_file_or_a_method(tmp_path: Path) -> None:
    base = tofu.partition(GRAPH, 4, "zero-3")
    path = tmp_path / "plan.json"
    base.save(path)
    expected = compile_strategy(GRAPH, 4, STRATEGY, base)
    for named in (base, path, str(path), "zero-3"):
        assert synchronise(GRAPH, 4, STRATEGY, named) == expected
    assert synchronise(GRAPH, 4, replace(STRATEGY, base="zero-3")) == expected
    assert synchronise(GRAPH, 4, replace(STRATEGY, base="refine"), base) == expected


def test_data_parallelism_is_the_base_of_what_names_none() -> None:
    expected = compile_strategy(GRAPH, 4, STRATEGY)
    assert synchronise(GRAPH, 4, STRATEGY) == expected
    assert synchronise(GRAPH, 4, STRATEGY, "data-parallel") == expected
    assert synchronise(GRAPH, 4, replace(STRATEGY, base="data-parallel")) == expected


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("refien", "the base 'refien' is neither a plan file, .* nor a method; did you mean 'refine'"),
        ("none.json", "cannot read the plan file 'none.json'"),
        ("recursive:dp2", "takes no mesh"),
        ("manual", "layouts"),
        (7, "the base is '7'; give a plan, its path or a method"),
    ],
)
def test_other_bases_are_refused(base: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        synchronise(GRAPH, 4, STRATEGY, base)

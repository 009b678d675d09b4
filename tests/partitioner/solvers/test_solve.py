"""Problems too wide for elimination: never better than the optimum, bounded, and the plan says so."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

import tofu
from tofu.cli import main
from tofu.errors import PlanError
from tofu.partitioner import Plan, partition
from tofu.partitioner.checking.check_plan import verify
from tofu.partitioner.methods import baselines, recursive
from tofu.partitioner.plans.unproven import UnprovenStep
from tofu.partitioner.problem import lower_bound
from tofu.partitioner.solvers import elimination, solve
from tofu.partitioner.solvers.anytime import Effort
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.pairwise import EXACT_LIMIT
from tofu.partitioner.solvers.solve import least_cost

from .problems import cost, pairwise_tables
from .problems import optimum as enumerated

LITTLE = Effort(sweep_entries=1, search_entries=0)


def dense(variables, domain=3, seed=0):
    """Every pair of variables has a table: elimination needs one over all of them."""
    random = np.random.default_rng(seed)
    pairs = itertools.combinations(range(variables), 2)
    return [domain] * variables, [
        CostTable(pair, random.integers(0, 1000, (domain, domain))) for pair in pairs
    ]


@pytest.mark.parametrize("effort", [solve.EFFORT, LITTLE], ids=["whole", "little"])
@pytest.mark.parametrize("seed", range(6))
def test_a_dense_graph_beyond_the_limit(monkeypatch, seed, effort):
    domains, cost_tables = dense(12, seed=seed)
    best = eliminate(domains, cost_tables).optimum
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 100)
    found = least_cost(domains, cost_tables, effort=effort)
    assert found.lower_bound <= best <= found.cost == cost(cost_tables, found.assignment)
    assert found == least_cost(domains, cost_tables, effort=effort)
    if effort is LITTLE:
        assert found.lower_bound < best
        assert found.too_wide == 3**12
    else:
        assert (found.lower_bound, found.too_wide) == (best, None)


@settings(max_examples=100)
@given(pairwise_tables())
def test_any_width_ends_with_a_bound(problem):
    domains, cost_tables = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "TABLE_LIMIT", 10)
        found = least_cost(domains, cost_tables, effort=LITTLE)
    assert (
        found.lower_bound
        <= enumerated(domains, cost_tables)
        <= found.cost
        == cost(cost_tables, found.assignment)
    )
    assert (found.too_wide is None) == (found.lower_bound == found.cost)


def test_narrow_graphs_are_eliminated(monkeypatch):
    monkeypatch.setattr(solve, "close_gap", None)
    domains, cost_tables = dense(6)
    solved = eliminate(domains, cost_tables)
    found = least_cost(domains, cost_tables)
    assert (found.cost, found.assignment, found.too_wide) == (solved.optimum, solved.assignment, None)


def test_costs_too_large_to_be_added_in_floats_are_bounded(monkeypatch):
    """A unit added to every entry of a table is part of every cost."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 100)
    domains, cost_tables = dense(8)
    best = eliminate(domains, cost_tables).optimum
    cost_tables[0] = CostTable(cost_tables[0].scope, cost_tables[0].table + EXACT_LIMIT)
    found = least_cost(domains, cost_tables)
    assert best + EXACT_LIMIT <= found.cost == cost(cost_tables, found.assignment)
    assert EXACT_LIMIT - 100 <= found.lower_bound <= best + EXACT_LIMIT
    assert found.too_wide == 3**8


@pytest.fixture(scope="module")
def graph():
    return tofu.models.get("alexnet", batch=8).training_graph()


def widen(patch):
    """Make every problem that is not a tree too wide, and do little about it."""
    patch.setattr(elimination, "TABLE_LIMIT", 8)
    for name in ("STEP_EFFORT", "NO_PROOF"):
        patch.setattr(recursive, name, LITTLE)
    patch.setattr(lower_bound, "STEP_EFFORT", LITTLE)


@pytest.fixture
def wide(monkeypatch):
    """Problems are too wide during a test."""
    widen(monkeypatch)


@pytest.fixture(scope="module", params=[False, True], ids=["split", "kept"])
def unproven(graph, request):
    """A plan with steps that are not proven; one that keeps what is made has no bytes of its steps."""
    with pytest.MonkeyPatch.context() as patch:
        widen(patch)
        plan = partition(graph, 8, keep=request.param)
    assert plan.unproven
    assert plan.in_steps != request.param
    return plan


def test_steps_that_are_too_wide_are_recorded(graph, unproven):
    exactly = partition(graph, 8, keep=not unproven.in_steps)
    assert not exactly.unproven
    first = unproven.unproven[0]
    assert first.step == 0
    if unproven.in_steps:
        assert first.lower_bound_bytes <= exactly.step_cost_bytes[0] <= unproven.step_cost_bytes[0]
    else:
        assert first.lower_bound_bytes is None
    assert unproven.lower_bound_bytes <= exactly.lower_bound_bytes


@pytest.mark.parametrize("method", ["recursive", "refine", "exact", "icml18", "all-row", "equal-chop"])
def test_every_method_makes_a_plan_that_holds(graph, wide, method):
    plan = partition(graph, 4, method=method)
    plan.verify(graph)
    verify(graph, plan)
    assert plan == partition(graph, 4, method=method)


def test_all_steps_as_one_may_be_too_wide(graph, monkeypatch, tmp_path):
    exactly = partition(graph, 8, method="equal-chop")
    assert not exactly.unproven

    def nearly(domains, cost_tables):
        found = least_cost(domains, cost_tables)
        return dataclasses.replace(found, lower_bound=found.cost - 1, too_wide=99)

    monkeypatch.setattr(baselines, "least_cost", nearly)
    found = partition(graph, 8, method="equal-chop")
    assert found.unproven == (UnprovenStep(None, 99, exactly.cost_bytes - 1),)
    verify(graph, found)
    found.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == found


def test_refining_says_where_it_stops(graph, monkeypatch):
    found = partition(graph, 8)
    assert not partition(graph, 8, method="refine").unproven
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 700)
    plan = partition(graph, 8, method="refine")
    verify(graph, plan)
    assert not found.unproven
    assert plan.unproven[-1].step is None
    assert plan.unproven[-1].table_entries > 700
    assert plan.unproven[-1].lower_bound_bytes is None


def test_plan_files_keep_them(graph, unproven, tmp_path):
    unproven.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == unproven
    verify(graph, read)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": 3}, r"unproven\[0\].step is 3"),
        ({"step": -1}, r"unproven\[0\].step is -1"),
        ({"table_entries": 0}, r"unproven\[0\].table_entries is 0"),
        ({"lower_bound_bytes": "1"}, r"unproven\[0\].lower_bound_bytes is \"1\""),
        ({"size": 1}, "unknown key 'size'"),
    ],
)
def test_plan_files_are_distrusted(unproven, tmp_path, changed, message):
    path = tmp_path / "plan.json"
    unproven.save(path)
    document = json.loads(path.read_text())
    document["unproven"][0].update(changed)
    path.write_text(json.dumps(document))
    with pytest.raises(PlanError, match=message):
        Plan.load(path)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([UnprovenStep(1, 9, 0), UnprovenStep(0, 9, 0)], r"steps \[1, 0\] as not proven"),
        ([UnprovenStep(0, 9, 0), UnprovenStep(0, 9, 0)], r"steps \[0, 0\] as not proven"),
        ([UnprovenStep(None, 9, 0), UnprovenStep(0, 9, 0)], r"steps \[None, 0\] as not proven"),
        ([UnprovenStep(1, 9, 1 << 60)], "lower bound of 1152921504606846976 bytes for step 2"),
        ([UnprovenStep(None, 9, 1 << 60)], "lower bound of 1152921504606846976 bytes for all steps"),
    ],
)
def test_verify_refuses_what_cannot_be(graph, unproven, steps, message):
    if not unproven.in_steps and steps[-1].step is not None and len(steps) == 1:
        message = "lower bound of 1152921504606846976 bytes for step 2, but no bytes of its steps"
    with pytest.raises(PlanError, match=message):
        verify(graph, dataclasses.replace(unproven, unproven=tuple(steps)))


def test_the_command_says_so(wide):
    told = CliRunner().invoke(main, ["plan", "alexnet", "-b", "8"])
    assert told.exit_code == 0
    assert "step 1 is too wide to be solved exactly (table of " in told.output
    told = CliRunner().invoke(main, ["plan", "alexnet", "-b", "8", "--no-keep"])
    assert "of the bound of" in told.output
    told = CliRunner().invoke(main, ["plan", "alexnet", "-b", "8", "--method", "refine"])
    assert "the search over all steps is too wide to be solved exactly (table of " in told.output
    assert "'refine' ended before all its moves were tried" in told.output
    facts = json.loads(CliRunner().invoke(main, ["plan", "alexnet", "-b", "8", "--json"]).output)
    assert facts["unproven_steps"][0].keys() == {"step", "table_entries", "lower_bound_bytes"}

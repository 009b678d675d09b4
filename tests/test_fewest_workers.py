"""`workers="auto"`: the fewest workers whose plan fits the memory."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

import tofu
from tofu import within_limit
from tofu.cli import main
from tofu.errors import PlanError, TofuError
from tofu.partitioner import least_peak_bytes, peak_bytes

Tofu = Callable[..., Result]


@pytest.fixture(scope="module")
def graph():
    return tofu.models.get("mlp", batch=64).training_graph()


def test_fewer_workers_do_not_fit(graph):
    limit = 1_700_000
    plan = tofu.partition(graph, "auto", memory=limit)
    plan.verify(graph)
    assert peak_bytes(graph, plan) <= limit
    assert plan.workers == 2
    assert least_peak_bytes(graph, 1) > limit
    with pytest.raises(PlanError, match=r"need at least .* bytes \(proven\)"):
        tofu.partition(graph, 1, memory=limit)


def test_one_worker_is_enough(graph):
    assert tofu.partition(graph, "auto", memory="1GB").workers == 1


def test_devices_of_a_machine_are_the_most(graph):
    with pytest.raises(PlanError, match="on up to 8 workers; each of 8 needs at least"):
        tofu.partition(graph, "auto", machine="dgx-1-v100", memory="20kB")
    assert tofu.partition(graph, "auto", machine="dgx-1-v100").workers == 1


def test_numbers_for_which_a_method_makes_no_plan_are_passed_over(graph):
    assert tofu.partition(graph, "auto", "byteps", memory="2MB").workers == 2
    assert tofu.partition(graph, "auto", "megatron:tp4", memory="900kB").workers == 4
    anywhere = {"machine": "pcie-8", "memory": "900kB"}
    assert tofu.partition(graph, "auto", "place", groups="2x2", **anywhere).workers == 4
    with pytest.raises(PlanError, match="the mesh 'tp16' has 1 x 16 = 16 workers"):
        tofu.partition(graph, "auto", "megatron:tp16", **anywhere)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraints": ["pin nope=0"]}, "there is no tensor 'nope'"),
        ({"method": "wu-2016"}, "has none; choose another method"),
        ({"method": "place"}, "simulates iterations on a machine"),
    ],
)
def test_mistakes_that_no_number_mends_end_at_once(graph, options, message, monkeypatch):
    tried = []
    searched = within_limit.search_within
    monkeypatch.setattr(within_limit, "search_within", lambda *args: tried.append(args[1]) or searched(*args))
    with pytest.raises(TofuError, match=message):
        tofu.partition(graph, "auto", memory="900kB", **options)
    assert tried == [2, 3]


def test_mistakes(graph):
    with pytest.raises(PlanError, match="a limit of memory; give one, such as 12GB"):
        tofu.partition(graph, "auto")
    with pytest.raises(PlanError, match="the number of workers is 'all'; give a number, or 'auto'"):
        tofu.partition(graph, "all")


def test_command_line():
    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["plan", "mlp", "--workers", "auto", *arguments])

    facts = json.loads(run("--memory", "2MB", "--json").output)
    assert facts["workers"] == 2
    assert facts["fits"]
    tried = run("--memory", "900kB", "--method", "data-parallel", "--machine", "pcie-8").stderr
    lines = [f"searching by data-parallel over {count} workers" for count in range(2, 9)]
    assert tried.splitlines()[: len(lines)] == lines
    for wrong, message in (
        ((), "a limit of memory; give one, such as 12GB"),
        (("--memory", "20kB"), "on up to 64 workers"),
        (("--memory", "2MB", "--compare"), "--compare searches for one number of workers"),
    ):
        result = run(*wrong)
        assert result.exit_code == 2
        assert message in result.output

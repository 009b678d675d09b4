from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tofu import models
from tofu.partitioner import Plan
from tofu.partitioner.methods.autodist.builders import BUILDERS
from tofu.partitioner.methods.method import every_method

FIGURES = {
    "model",
    "workers",
    "method",
    "operators",
    "tensors",
    "weight_state_bytes",
    "cost_bytes",
    "step_cost_bytes",
    "lower_bound_bytes",
    "search_seconds",
    "peak_bytes_per_worker",
    "single_device_peak_bytes",
}
SEARCHING = every_method().keys() - {"manual"}
"""The methods that take no layouts."""

EXPERTS = {"one-weird-trick", "wu-2016"}
"""Those of them that do not know perceptrons."""

WHOLE = {"pardnn", "pardnn-heuristic-1", "pardnn-heuristic-2"}
"""Those that put whole operations on workers, one way each."""

SIMULATING = {"flexflow", "anneal", "place", "auto", "autodist", *WHOLE}
"""Those that need a machine."""

Tofu = Callable[..., Result]


def test_figures_are_one_object(tofu: Tofu) -> None:
    facts = json.loads(tofu("plan", "mlp", "--workers", "4", "--json").output)
    assert facts.keys() >= FIGURES
    assert facts["workers"] == 4
    assert facts["batch"] == 64
    assert sum(facts["step_cost_bytes"]) == facts["cost_bytes"] >= facts["lower_bound_bytes"] > 0
    assert facts["peak_bytes_per_worker"] < facts["single_device_peak_bytes"]


def test_one_worker_moves_nothing(tofu: Tofu) -> None:
    facts = json.loads(tofu("plan", "mlp", "--workers", "1", "--json").output)
    assert facts["cost_bytes"] == 0
    assert facts["peak_bytes_per_worker"] == facts["single_device_peak_bytes"]
    output = tofu("plan", "mlp", "--workers", "1").output
    assert output.startswith("mlp, batch 64, over 1 worker: ")
    assert "Largest contributors" not in output


def test_what_would_prove_more_is_said(tofu: Tofu) -> None:
    hint = "(proven, the method exact proves more)"
    assert hint in tofu("plan", "mlp").output
    assert hint not in tofu("plan", "mlp", "--method", "exact").output


def test_page_shows_steps_contributors_and_memory(tofu: Tofu) -> None:
    output = tofu("plan", "lenet", "--workers", "4").output
    for part in ("Communication", "Largest contributors", "Memory", "one device", "2-way", "proven"):
        assert part in output


def test_saved_plan_is_for_this_graph(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert tofu("plan", "mlp", "--workers", "2", "--batch", "16", "--save", str(path)).exit_code == 0
    Plan.load(path).verify(models.get("mlp", batch=16).training_graph("sgd"))


def test_graph_file_and_python_function(tofu: Tofu, tmp_path: Path) -> None:
    model = models.get("mlp", batch=8)
    model.symbol.save(tmp_path / "mlp-symbol.json")
    shapes = [f"--shape={name}={','.join(map(str, shape))}" for name, shape in model.shapes.items()]
    (tmp_path / "mine.py").write_text(
        "import tofu\ndef small():\n    return tofu.models.get('mlp', batch=8)\n", encoding="utf-8"
    )
    graph = json.loads(tofu("plan", str(tmp_path / "mlp-symbol.json"), *shapes, "--json").output)
    function = json.loads(tofu("plan", f"{tmp_path / 'mine.py'}:small", "--json").output)
    assert graph["cost_bytes"] == function["cost_bytes"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "def build():\n    return 3",
            "mine.py:build returned a int; expected a tofu.models.Model, a symbol, or a module of PyTorch",
        ),
        ("build = 3", "mine.py:build is a int; expected a function that makes a model"),
        ("def build():\n    return tofu.sym.tnah(tofu.sym.Variable('x'))", "did you mean 'tanh'"),
        ("def build():\n    return 1 / 0", "mine.py:3 raises ZeroDivisionError: division by zero"),
        (
            "def build():\n    return tofu.sym.exp(tofu.sym.Variable('x'))",
            "for example --shape x=32,3,224,224",
        ),
    ],
)
def test_functions_that_make_no_model(tofu: Tofu, tmp_path: Path, body: str, says: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import tofu\n{body}\n", encoding="utf-8")
    result = tofu("plan", f"{path}:build")
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "wrsnet-50-4"], "did you mean 'wresnet-50-4'"),
        (
            ["plan", "mlp", "--workers", "0"],
            "expected a number of workers from 1 to 4096, or auto, found '0'",
        ),
        (["plan", "mlp", "--batch", "-3"], "-3 is not in the range"),
        (["plan", "mlp", "--method", "magic"], "there are: recursive, refine, exact"),
        (["plan", "mlp", "--optimizer", "sdg"], "did you mean 'sgd'"),
        (["plan", "mlp", "--shape", "data=8,8"], "follow from --batch"),
        (["plan", "missing-symbol.json", "--shape", "data=8,8"], "missing-symbol.json"),
        (["plan", "net.pt2"], "net.pt2 is a file of PyTorch, which may execute what its files hold"),
        (["plan", "missing.py:build"], "the Python file missing.py does not exist"),
        (["plann"], "did you mean 'plan'"),
        (["plan", "mlp", "--pin", "fc1_weight"], "NAME=CHOICE"),
        (["plan", "mlp", "--pin", "fc1_weigth=0"], "did you mean 'fc1_weight'"),
        (["plan", "mlp", "--pin", "data=0", "--forbid", "data:0"], "pin data=0; forbid data:0"),
        (["plan", "mlp", "--forbid", "data:7"], "choose one of 0, 1, 2, 3"),
        (["plan", "mlp", "--method", "spartan", "--forbid", "data:0"], "cannot take constraints"),
        (["plan", "mlp", "--method", "manual"], "a file of them (--layouts)"),
        (["plan", "mlp", "--layouts", "missing.yaml"], "No such file"),
        (["plan", "mlp", "--machine", "pcie8"], "did you mean 'pcie-8'"),
        (["plan", "mlp", "--machine", "pcie-8", "--workers", "9"], "9 workers need 9 devices"),
        (["plan", "mlp", "--objective", "time"], "needs --machine"),
        (["plan", "mlp", "--memory", "12"], "with its unit"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, arguments: list[str], says: str) -> None:
    result = tofu(*arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("option", ["--save", "--report"])
def test_what_cannot_be_written_is_refused_before_the_search(tofu: Tofu, tmp_path: Path, option: str) -> None:
    result = tofu("plan", "mlp", option, str(tmp_path / "missing" / "plan"))
    assert result.exit_code == 2
    assert result.output.startswith("Error: cannot write")
    assert "there is no folder" in result.output


@pytest.fixture(scope="module")
def comparison(tofu: Tofu) -> tuple[Result, Result]:
    """A comparison as text, and as JSON."""
    asked = ("plan", "mlp", "--workers", "4", "--compare")
    return tofu(*asked), tofu(*asked, "--json")


def test_methods_are_compared_side_by_side(comparison: tuple[Result, Result]) -> None:
    text, facts = comparison[0].output, json.loads(comparison[1].output)
    by_method = {entry["method"].partition(":")[0]: entry for entry in facts["methods"]}
    assert by_method.keys() == SEARCHING - EXPERTS - SIMULATING
    assert facts["left_out"].keys() == EXPERTS | SIMULATING
    assert by_method["refine"]["cost_bytes"] <= by_method["recursive"]["cost_bytes"]
    assert all(sum(entry["step_cost_bytes"]) == entry["cost_bytes"] for entry in by_method.values())
    assert all(entry["method"] in text for entry in by_method.values())
    assert re.fullmatch(r"megatron:dp\d-tp\d|megatron:[dt]p4", by_method["megatron"]["method"])


def test_a_comparison_by_time_has_the_fastest_first(tofu: Tofu) -> None:
    space = ("--no-replicate", "--feed", "anywhere")
    asked = ("plan", "mlp", "--compare", "--machine", "pcie-8", "--objective", "time", *space)
    entries = json.loads(tofu(*asked, "--json").output)["methods"]
    by_time = sorted(entries, key=lambda entry: entry["transfer_seconds"])
    assert [entry["method"] for entry in by_time] != [
        entry["method"] for entry in sorted(entries, key=lambda entry: entry["cost_bytes"])
    ]
    lines = [line for line in tofu(*asked).stdout.splitlines() if " x " in line]
    assert [line.split()[1] for line in lines] == [entry["method"] for entry in by_time]
    assert "1.00 x" in lines[0]


def test_a_comparison_says_how_it_goes(comparison: tuple[Result, Result]) -> None:
    text, facts = comparison
    assert "proven of this space" in text.stderr
    assert not facts.stderr


def test_a_comparison_cannot_be_saved(tofu: Tofu) -> None:
    result = tofu("plan", "mlp", "--compare", "--save", "plan.json")
    assert result.exit_code == 2
    assert "choose one by --method" in result.output


def test_constraints_are_kept(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    arguments = ("--pin", "fc1_weight=0,1", "--forbid", "data:2", "--workers", "4", "--save", str(path))
    facts = json.loads(tofu("plan", "mlp", *arguments, "--json").output)
    assert facts["constraints"] == ["pin fc1_weight=0,1", "forbid data:2"]
    plan = Plan.load(path)
    assert plan.layouts["fc1_weight"].dimensions == (0, 1)
    assert 2 not in plan.layouts["data"].dimensions


UNEQUAL = """
machine: unequal
devices: [{name: large, kind: roomy}, {name: small, kind: tight}]
levels: [{name: gpu, bandwidth: 25 GB/s}]
kinds:
  roomy: {memory: 4 MB, rates: {float32: 15 TFLOP/s}, memory_bandwidth: 900 GB/s, kernel_start: 1 us}
  tight: {memory: 2 MB, rates: {float32: 15 TFLOP/s}, memory_bandwidth: 900 GB/s, kernel_start: 1 us}
"""


def test_devices_that_differ_in_memory_are_reported(tofu: Tofu, tmp_path: Path) -> None:
    machine = tmp_path / "unequal.yaml"
    machine.write_text(UNEQUAL)
    asked = ("plan", "mlp", "--batch", "64", "--workers", "2", "--machine", str(machine))
    facts = json.loads(tofu(*asked, "--method", "pardnn", "--json").output)
    assert facts["memory_limit_bytes_per_worker"] == [4e6, 2e6]
    assert facts["device_memory_bytes"] == 2e6
    assert facts["fits"] is True
    assert "the 2.00 MB to 4.00 MB of the devices are enough" in tofu(*asked).output
    machine.write_text(UNEQUAL.replace("2 MB", "100 kB"))
    refused = tofu(*asked, "--method", "data-parallel")
    assert refused.exit_code == 2
    assert "the 100.00 kB to 4.00 MB of the devices are too little" in refused.output
    assert "worker 1 needs" in refused.output


def test_traffic_and_memory_are_reported(tofu: Tofu) -> None:
    by_bytes = json.loads(tofu("plan", "mlp", "--machine", "pcie-8", "--memory", "1MB", "--json").output)
    assert [entry["level"] for entry in by_bytes["levels"]] == ["socket", "switch", "gpu"]
    assert sum(entry["crossing_bytes"] for entry in by_bytes["levels"]) == by_bytes["cost_bytes"]
    assert by_bytes["transfer_seconds"] > 0
    assert by_bytes["step_seconds"] > by_bytes["transfer_seconds"]
    assert by_bytes["fits"] is True
    by_time = json.loads(
        tofu(
            "plan", "mlp", "--machine", "pcie-8", "--method", "exact", "--objective", "time", "--json"
        ).output
    )
    assert by_time["transfer_seconds"] < by_bytes["transfer_seconds"]
    assert by_time["objective_seconds"] == by_time["objective_lower_bound_seconds"] > 0
    assert by_time["device_memory_bytes"] == 16e9
    timed = ("plan", "mlp", "--machine", "pcie-8", "--objective", "time")
    unbounded = json.loads(tofu(*timed, "--json").output)
    assert unbounded["objective_lower_bound_seconds"] is None
    assert unbounded["objective_seconds"] >= by_time["objective_seconds"]
    assert "no bound on that is proven" in tofu(*timed).output
    proven = f"at least {by_time['objective_seconds'] * 1e6:.2f} µs (proven)"
    assert proven in tofu(*timed, "--method", "exact").output
    output = tofu("plan", "mlp", "--machine", "pcie-8", "--memory", "100kB").output
    for part in ("Traffic on pcie-8", "socket", "out of memory by"):
        assert part in output


def test_the_front_is_of_what_was_minimised(tofu: Tofu) -> None:
    machine = ("-w", "4", "--machine", "p100-node")
    result = tofu("plan", "mlp", *machine, "--objective", "time", "--front", "--json")
    points = json.loads(result.stdout)["front"]
    assert len(points) > 1
    seconds = [point["objective_seconds"] for point in points]
    assert seconds == sorted(seconds, reverse=True)
    shown = tofu("plan", "mlp", *machine, "--objective", "time", "--front").stdout
    assert "Transfers against memory" in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--method", "anneal"), "the method 'anneal' finds one plan, and no front"),
        (("--method", "data-parallel"), "choose one of exact, recursive, refine"),
        (("--objective", "step-time"), "`tofu frontier` finds the plans with the least step time"),
    ],
)
def test_what_has_no_front_is_refused_before_the_search(
    tofu: Tofu, options: tuple[str, ...], says: str
) -> None:
    result = tofu("plan", "mlp", "-w", "4", "--machine", "p100-node", "--front", *options)
    assert result.exit_code == 2
    assert not result.stdout
    assert says in " ".join(result.stderr.split())


def test_more_memory_buys_a_shorter_iteration(tofu: Tofu) -> None:
    """If that is minimised, the larger plan is simulated as well."""
    asked = ("-b", "64", "--machine", "dgx-1-v100", "--memory", "300kB", "--objective", "step-time")
    facts = json.loads(tofu("plan", "mlp", *asked, "--json").stdout)
    assert facts["fits"]
    assert facts["more_memory"]["step_seconds"] < facts["step_seconds"]
    assert "more memory a worker, a plan takes" in tofu("plan", "mlp", *asked).stdout


def test_the_front_of_several_plans_is_refused(tofu: Tofu) -> None:
    result = tofu("plan", "mlp", "--compare", "--front")
    assert result.exit_code == 2
    assert "--front is about one plan" in result.stderr


def test_a_users_layouts_are_compared_with_every_method(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "layouts.yaml"
    path.write_text("'*_weight': null\ndata: 0\n", encoding="utf-8")
    asked = ("plan", "mlp", "--workers", "2", "--layouts", str(path))
    alone = json.loads(tofu(*asked, "--method", "manual", "--json").output)
    asked = (*asked, "--compare", "--memory", "1200kB", "--machine", "pcie-8")
    together = json.loads(tofu(*asked, "--proposals", "5", "--json").output)
    by_method = {entry["method"].partition(":")[0]: entry for entry in together["methods"]}
    too_large = {"auto", "autodist", *WHOLE} - {"pardnn"}  # scratch does not fit
    assert by_method.keys() == (SEARCHING - EXPERTS - too_large) | {"manual"}
    assert by_method["manual"]["cost_bytes"] == alone["cost_bytes"] > by_method["recursive"]["cost_bytes"]
    assert {entry["fits"] for entry in together["methods"]} == {True, False}
    text = tofu(*asked, "--pin", "data=*").output  # methods that simulate take no pins
    for part in ("manual", "fits in 1.20 MB", "out of memory", "time over links"):
        assert part in text


@pytest.mark.parametrize(
    ("operation", "tensor"),
    [
        ("everywhere", "everywhere"),
        ("[{at: 1}, h]", "[0, {at: 0}]"),
        ("{worker: 3}", "{workers: [0, 3]}"),
        ("{along: k, workers: [1, 2, 1, 0, 3]}", "{along: 1, workers: [2, 0, 2]}"),
        ("{spread: [[n, 2], [h, 2]]}", "{spread: [[null, 2], [0, 2]], workers: [3, 0, 1, 2]}"),
        ("{cut: h, bounds: [5], workers: [2, 0]}", "{cut: 1, bounds: [1, 2, 3]}"),
        (
            "{parts: [[0, [[0, 64], [0, 7], [0, 784]]], [0, [[0, 64], [7, 128], [0, 784]]]]}",
            "{parts: [[1, [[0, 128], [0, 784]]]]}",
        ),
    ],
)
def test_every_form_is_read_from_a_file(tofu: Tofu, tmp_path: Path, operation: str, tensor: str) -> None:
    path, saved = tmp_path / "written.yaml", tmp_path / "plan.json"
    path.write_text(
        f"operations:\n  fc1.product: {operation}\n  '*': everywhere\n"
        f"tensors:\n  fc1_weight: {tensor}\n  '*': everywhere\n",
        encoding="utf-8",
    )
    asked = ("plan", "mlp", "--workers", "4", "--method", "manual", "--layouts", str(path))
    facts = json.loads(tofu(*asked, "--save", str(saved), "--json").output)
    assert facts["method"] == "manual"
    assert json.loads(saved.read_text())["cost_bytes"] == facts["cost_bytes"]
    assert tofu("verify", str(saved)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("operations: {'*': {worker: 4}}", "operations['*'].worker is 4; it must lie between 0 and 3"),
        ("operations: {'*': {worker: 0}}", "no operation makes tensor 'data'; give it a form"),
        ("workers: 8", "it is for 8 workers, but 4 were asked for; ask for 8"),
    ],
)
def test_a_written_plan_that_cannot_be_is_not_saved(tofu: Tofu, tmp_path: Path, text: str, says: str) -> None:
    path, saved = tmp_path / "written.yaml", tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    asked = ("plan", "mlp", "--workers", "4", "--method", "manual", "--layouts", str(path))
    result = tofu(*asked, "--save", str(saved))
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert not saved.exists()


def test_a_comparison_says_which_methods_cannot_do_what_is_asked(tofu: Tofu) -> None:
    asked = ("plan", "mlp", "--workers", "4", "--compare", "--pin", "fc1_weight=-", "--no-replicate")
    facts = json.loads(tofu(*asked, "--json").output)
    whole = {"data-parallel", "zero-3", "megatron", "megatron-sp"} | BUILDERS.keys() | EXPERTS | SIMULATING
    assert facts["left_out"].keys() == {"spartan", "equal-chop", "exact"} | whole
    assert {entry["method"] for entry in facts["methods"]} == SEARCHING - facts["left_out"].keys()
    output = tofu(*asked).output
    for part in (
        "spartan is left out: the method 'spartan' cannot take constraints",
        "zero-3 is left out: the method 'zero-3' makes a whole plan, so nothing is searched",
        "does not replicate what can be split",
    ):
        assert part in output
    mistaken = tofu("plan", "mlp", "--compare", "--pin", "fc1_weigth=0")
    assert mistaken.exit_code == 2
    assert "did you mean 'fc1_weight'" in mistaken.output


def test_an_uneven_share_is_told(tofu: Tofu) -> None:
    assert "worker 5 computes 11% more than the mean" in tofu("plan", "vgg-11", "-w", "6").output
    assert "more than the mean" not in tofu("plan", "mlp", "-w", "8").output


def test_bounds_name_their_space_and_weak_ones_judge_nothing(tofu: Tofu) -> None:
    output = " ".join(tofu("plan", "mlp", "-w", "8").output.split())
    assert "of plans that may replicate any tensor and keep what is made, with inputs fed by batch" in output
    assert "that is too little to judge this plan by" in output
    assert "too little to judge" not in tofu("plan", "mlp", "-w", "1").output
    compared = " ".join(tofu("plan", "mlp", "-w", "2", "--compare").output.split())
    assert (
        "every plan in steps that may replicate any tensor, with inputs fed by batch moves at least"
        in compared
    )

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tofu import operators
from tofu.cli import main
from tofu.operators.kernels.onednn.library import Library, find

Tofu = Callable[..., Result]


def test_shows_description_strategies_and_regions(tofu: Tofu) -> None:
    output = tofu(
        "describe",
        "Convolution",
        "--shape",
        "data=8,3,9,9",
        "--set",
        "kernel=3,3",
        "--set",
        "num_filter=4",
        "--regions",
    ).output
    assert "Sum(lambda c" in output
    assert "reduce by Sum" in output
    assert "[0:8, 0:3, 0:5, 0:9]" in output, "three of the 7 output rows and a halo of two"


def test_one_table_has_the_strategies_of_all_stages(tofu: Tofu) -> None:
    output = tofu("describe", "Convolution").output
    assert output.count("┏") == 1
    rows = [[cell.strip() for cell in line.split("│")] for line in output.splitlines() if "│" in line]
    assert ["", "Convolution_product", "x0", "concat", "data 67%, weight 100%", "50%", ""] in rows
    assert ["", "Convolution_product", "c", "reduce by Sum", "data 67%, weight 67%", "100%", ""] in rows
    assert {row[1] for row in rows} == {"Convolution_product", "Convolution"}
    narrow = tofu("describe", "dot", "--shape", "lhs=4,6", "--shape", "rhs=6,9", "-w", "5").output
    assert "not split: " in narrow
    assert narrow.count("concat") == 1


def test_json_has_every_workers_regions(tofu: Tofu) -> None:
    report = json.loads(
        tofu("describe", "dot", "--shape", "lhs=4,6", "--shape", "rhs=6,9", "-w", "3", "--json").output
    )
    (stage,) = report["stages"]
    kinds = {strategy["variable"]: strategy["kind"] for strategy in stage["strategies"]}
    assert sorted(kinds.values()) == ["concat", "concat", "reduce"]
    for strategy in stage["strategies"]:
        assert len(strategy["workers"]) == 3


@pytest.mark.parametrize("name", operators.names())
def test_every_operator_has_something_to_show(tofu: Tofu, name: str) -> None:
    result = tofu("describe", name)
    assert result.exit_code == 0, result.output
    assert "lambda" in result.output


def test_file(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "shift.tdl"
    path.write_text("def shift(a):\n    return lambda i: a[i + 2]\n", encoding="utf-8")
    assert "[2:6]" in tofu("describe", str(path), "--shape", "a=10", "--regions").output
    path.write_text("def shift(a):\n    return lambda i: a[i +\n", encoding="utf-8")
    result = tofu("describe", str(path), "--shape", "a=10")
    assert result.exit_code == 2
    assert "shift.tdl:2" in result.output


def test_a_file_named_without_its_ending(tofu: Tofu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "see `tofu operators`" in tofu("describe", "my_shift").output
    Path("my_shift.tdl").write_text("def my_shift(a):\n    return lambda i: a[i + 2]\n", encoding="utf-8")
    assert "did you mean the file my_shift.tdl?" in tofu("describe", "my_shift").output


def test_more_workers_than_values(tofu: Tofu) -> None:
    output = tofu(
        "describe", "dot", "--shape", "lhs=4,6", "--shape", "rhs=6,9", "-w", "5", "--regions"
    ).output
    assert output.count("┏") == 2
    [refused] = [line for line in output.splitlines() if line.startswith("not split: ")]
    assert refused.endswith(": it has extent 4, too small for 5 workers")


def test_narrow_terminals_show_whole_regions() -> None:
    arguments = ["describe", "dot", "--shape", "lhs=131072,8", "--shape", "rhs=8,131072", "--regions"]
    printed = CliRunner(env={"COLUMNS": "40"}).invoke(main, arguments).output
    assert "…" not in printed
    reads = "".join(row.split("│")[2].strip() for row in printed.splitlines() if row.startswith("│"))
    assert "[65536:131072,0:8]" in reads


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Convolutio"], "did you mean 'Convolution'"),
        (["dot", "--shape", "lhs=4,6", "--shape", "rhs=7,9"], "6"),
        (["dot", "--shape", "left=4,6"], "it takes lhs, rhs"),
        (["dot", "--shape", "lhs"], "such as data=4,3,12"),
        (["dot", "--shape", "lhs=4,6", "--shape", "lhs=4,7"], "'lhs' is given twice"),
        (["dot", "--set", "transpose_a=1", "--set", "transpose_a=0"], "'transpose_a' is given twice"),
        (["dot", "--shape", "lhs=4,x"], "such as data=4,3,12"),
        (["dot", "--shape", "lhs=4,,6"], "such as data=4,3,12"),
        (["Activation", "--shape", "data=4", "--set", "act_typ=relu"], "did you mean"),
        (["Activation", "--shape", "data=4", "--set", "act_type"], "such as kernel=3,3"),
        (["missing.tdl"], "missing.tdl cannot be read"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, arguments: list[str], says: str) -> None:
    result = tofu("describe", *arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_python_file(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import tofu\n\n@tofu.op\ndef shift(a):\n    return lambda i: a[i + 2]\n",
        encoding="utf-8",
    )
    assert "[2:6]" in tofu("describe", f"{path}:shift", "--shape", "a=10", "--regions").output
    result = tofu("audit", f"{path}:shift", "--shape", "a=10")
    assert result.exit_code == 0
    assert "proven" in result.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shift", "needs shapes: --shape a=..."),
        ("shift2", "does not define 'shift2'; did you mean 'shift'?"),
        ("tof", "does not define 'tof'; there are: shift, other"),
        ("other", "is a int; expected an operator"),
    ],
)
def test_python_file_without_the_operator(tofu: Tofu, tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import tofu\n\n@tofu.op\ndef shift(a):\n    return lambda i: a[i]\n\nother = 1\n", encoding="utf-8"
    )
    result = tofu("describe", f"{path}:{name}")
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", ":1: '(' was never closed"),
        ("\nx = 1 / 0", ":2 raises ZeroDivisionError"),
        ("import tofu\nx = tofu.sym.tnah(tofu.sym.Variable('y'))", "did you mean 'tanh'"),
        ("import tofu\nx = tofu.parse('def f(a): return lambda i: a[j]')", "unknown name 'j'"),
    ],
)
def test_python_file_that_fails(tofu: Tofu, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    result = tofu("describe", f"{path}:x")
    assert result.exit_code == 2
    assert said in result.output


def test_draws_what_workers_read(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "conv.svg"
    assert tofu("describe", "Convolution", "--draw", str(path)).exit_code == 0
    everything = path.read_text(encoding="utf-8")
    result = tofu("describe", "Convolution", "--draw", str(path), "--variable", "c", "--workers", "2")
    assert f"drawing written to {path}" in result.output
    one = path.read_text(encoding="utf-8")
    assert "c split over 2 workers: outputs are reduced by Sum" in one
    assert "n split" in everything
    assert "n split" not in one


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--draw", "conv.pdf"], "must end in .svg or .png"),
        (["--draw", "missing/conv.svg"], "there is no folder"),
        (["--draw", "conv.svg", "--variable", "q"], "no strategy along 'q'"),
        (["--variable", "c"], "--variable needs --draw FILE"),
    ],
)
def test_drawings_that_cannot_be(
    tofu: Tofu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = tofu("describe", "Convolution", *arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_operator_without_strategies_is_not_drawn(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "one.tdl"
    path.write_text("def one(a):\n    return lambda i: a[i]\n", encoding="utf-8")
    result = tofu("describe", str(path), "--shape", "a=1", "--draw", str(tmp_path / "one.svg"))
    assert result.exit_code == 2
    assert "no strategy to draw" in result.output


@pytest.mark.parametrize("command", ["describe", "audit", "plan"])
def test_a_python_file_without_a_name(tofu: Tofu, command: str) -> None:
    result = tofu(command, "layers.py")
    assert result.exit_code == 2
    assert "say which one, as layers.py:NAME" in result.stderr


CONVOLUTION = ("--shape", "data=4,16,8,8", "--set", "kernel=3,3", "--set", "num_filter=16")


def test_kernels_are_named(tofu: Tofu) -> None:
    rows = json.loads(tofu("describe", "Convolution", *CONVOLUTION, "--kernels", "--json").output)["kernels"]
    attached = {row["name"]: row["calls"] for row in rows if row["origin"] == "attached"}
    assert set(attached) == {
        "Convolution_product",
        "Convolution_product_grad_data",
        "Convolution_product_grad_weight",
    }
    library = isinstance(find(), Library)
    for calls in attached.values():
        assert [call.startswith("oneDNN") for call in calls] == [library]
    output = tofu("describe", "Convolution", *CONVOLUTION, "--kernels").output
    assert ("oneDNN" in output) == library
    assert "derived" in output


def test_without_the_option_no_kernel_is_prepared(tofu: Tofu) -> None:
    assert "kernels" not in json.loads(tofu("describe", "Convolution", *CONVOLUTION, "--json").output)


def test_kernels_of_tensors_that_do_not_fit_are_refused(tofu: Tofu) -> None:
    result = tofu(
        "describe", "dot", "--shape", "lhs=9000000,9000000", "--shape", "rhs=9000000,9", "--kernels"
    )
    assert result.exit_code == 2
    assert "the tensors of 'dot' would take" in result.output

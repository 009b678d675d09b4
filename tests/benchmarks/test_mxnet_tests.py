"""MXNet's unit tests are found in a checkout, run one by one, and counted by reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mxnet_tests.collection import FILES
from benchmarks.mxnet_tests.reasons import Reason

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "mxnet_tests.json"

SYMBOLS = """
from unittest import SkipTest
import mxnet as mx
from mxnet.test_utils import *
from mxnet.base import SomethingElse
from mxnet.util import wrapped

def test_same():
    x = mx.sym.Variable("x")
    check_symbolic_forward(x * 2, [np.ones((2, 3))], [np.full((2, 3), 2)])
    check_numeric_gradient(x * x, [np.ones((2, 3))])

def test_wrong_output():
    check_symbolic_forward(mx.sym.Variable("x") * 2, [np.ones(3)], [np.ones(3)])

def test_wrong_gradient():
    check_symbolic_backward(mx.sym.Variable("x") * 2, [np.ones(3)], [np.ones(3)], [np.ones(3)])

def test_gradient_through_nothing():
    check_numeric_gradient(mx.sym.BlockGrad(mx.sym.Variable("x")), [np.ones(3)])

@wrapped
def test_decorated():
    pass

def test_imported():
    SomethingElse()

def test_gluon():
    mx.gluon.nn.Dense(3)

def test_operator():
    mx.sym.quadruple(mx.sym.Variable("x"))

def test_attribute():
    mx.sym.exp(mx.sym.Variable("x"), power=3)

def test_refused():
    mx.sym.Variable("x").infer_shape()

def test_error():
    assert_exception(mx.nd.zeros, mx.MXNetError, (2,))

def test_skipped():
    raise SkipTest("flaky")

def test_long():
    while True:
        pass

def test_numpy():
    np.zeros(3)[[slice(1)], 2, 3]

def check_nothing():
    raise AssertionError
"""

REASONS = {
    "same": Reason.PASSES,
    "wrong_output": Reason.DIFFERENT,
    "wrong_gradient": Reason.DIFFERENT,
    "gradient_through_nothing": Reason.DIFFERENT,
    "decorated": Reason.NAME,
    "imported": Reason.NAME,
    "gluon": Reason.PART,
    "operator": Reason.OPERATOR,
    "attribute": Reason.NAME,
    "refused": Reason.REFUSED,
    "error": Reason.ERROR,
    "skipped": Reason.SKIPPED,
    "long": Reason.UNFINISHED,
    "numpy": Reason.OUTDATED,
}


@pytest.mark.parametrize("version", ["0.11.0", "1.9.1"])
def test_outcomes_of_a_checkout(tmp_path: Path, version: str) -> None:
    pytest.importorskip("scipy")
    (tmp_path / "python" / "mxnet").mkdir(parents=True)
    (tmp_path / "python" / "mxnet" / "libinfo.py").write_text(f'__version__ = "{version}"\n')
    folder = tmp_path / "tests" / "python" / "unittest"
    folder.mkdir(parents=True)
    for file in FILES:
        (folder / f"test_{file}.py").write_text(SYMBOLS if file == "symbol" else "def test_empty(): pass\n")
    saved = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.mxnet_tests", str(tmp_path), "--seconds", "2"]
    printed = subprocess.run(
        [*command, "--save", str(saved)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    rows = json.loads(saved.read_text())[version]["tests"]
    found = {name.removeprefix("symbol.test_"): row["reason"] for name, row in rows.items()}
    empty = {f"{file}.test_empty": Reason.PASSES.value for file in FILES if file != "symbol"}
    assert found == {name: reason.value for name, reason in REASONS.items()} | empty
    assert f"{len(FILES)}  passes" in printed
    assert f"{len(REASONS) + len(FILES) - 1}  in all" in printed


def test_the_page_has_the_counts() -> None:
    page = (ROOT / "docs" / "mxnet.md").read_text(encoding="utf-8")
    saved = json.loads(RESULTS.read_text(encoding="utf-8"))
    counts = [Counter(row["reason"] for row in saved[v]["tests"].values()) for v in ("0.11.0", "1.9.1")]
    rows = dict(re.findall(r"^\| (.+?) \| (\d+ \| \d+) \|$", page, re.MULTILINE))
    assert {reason.value: f"{counts[0][reason]} | {counts[1][reason]}" for reason in Reason} == {
        name: row for name, row in rows.items() if name != "in all"
    }
    assert rows["in all"] == f"{counts[0].total()} | {counts[1].total()}"

"""`--native` chooses kernels in C for one command, which train, are audited and are named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from tofu.operators.native import asked, compiler, generated
from tofu.operators.native.asked import VARIABLE
from tofu.operators.native.compiler import NoCompiler
from tofu.operators.native.generated import GENERATED
from tofu.runtime.processor_libraries import COMPILER, library_names
from tofu.support import cache_folder

Tofu = Callable[..., Result]


@pytest.fixture(scope="module")
def kept_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def compiled(kept_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip without a compiler; keep what it builds in a folder of the tests."""
    found = compiler.find()
    if isinstance(found, NoCompiler):
        pytest.skip(f"no C compiler: {found.reason}")
    monkeypatch.setenv(cache_folder.FOLDER_VARIABLE, str(kept_kernels))


@pytest.mark.usefixtures("compiled")
def test_kernels_are_named(tofu: Tofu) -> None:
    def calls(*options: str) -> list[list[str]]:
        output = tofu("describe", "softmax", "--kernels", "--json", *options).output
        return [row["calls"] for row in json.loads(output)["kernels"]]

    assert all(each == [GENERATED] for each in calls("--native"))
    assert VARIABLE not in os.environ, "the next command has NumPy's kernels again"
    assert not any(calls())


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("workers", ["1", "3"])
def test_training_repeats_bit_for_bit_and_is_numpys_but_for_rounding(tofu: Tofu, workers: str) -> None:
    def loss(*options: str) -> float:
        output = tofu("train", "mlp", "--epochs", "1", "--workers", workers, "--json", *options).output
        return float(json.loads(output.splitlines()[-1])["final_loss"])

    first, again, numpy = loss("--native"), loss("--native"), loss()
    assert first == again
    assert first == pytest.approx(numpy, rel=1e-4)


@pytest.mark.usefixtures("compiled")
def test_kernels_are_audited(tofu: Tofu) -> None:
    result = tofu("audit", "softmax", "--native")
    assert result.exit_code == 0
    assert "A: whole      tried          equals the interpreter" in result.output


def forget() -> None:
    """Write sources again."""
    generated._built.cache_clear()
    generated._source.cache_clear()


@pytest.mark.usefixtures("compiled")
def test_a_wrong_kernel_is_refuted(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    right = generated.loop_source

    def planted(*given: object) -> object:
        source = right(*given)  # type: ignore[arg-type]
        return replace(source, text=source.text.replace("v_i0 < Index", "v_i0 + 1 < Index"))

    monkeypatch.setattr(generated, "loop_source", planted)
    forget()
    try:
        result = tofu("audit", "softmax", "--native")
    finally:
        forget()
    assert result.exit_code == 1
    assert "refuted" in result.output


def test_without_a_compiler_it_is_an_error(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find", lambda: NoCompiler("there is no command cc", compiler.REMEDY))
    result = tofu("train", "mlp", "--native")
    assert result.exit_code == 2
    assert (
        "Error: kernels in C cannot be built: there is no command cc; install a C++ compiler" in result.output
    )
    assert "leave out --native" in result.output


def test_doctor_says_if_there_is_no_compiler(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find", lambda: NoCompiler("there is no command cc", compiler.REMEDY))
    libraries = json.loads(tofu("doctor", "--no-copies", "--json").output)["libraries"]
    (found,) = (each for each in libraries if each["name"] == COMPILER)
    assert found["version"] is None
    assert found["remedy"] == compiler.REMEDY


@pytest.mark.usefixtures("compiled")
def test_results_depend_on_the_compiler_only_if_it_is_used() -> None:
    """So processes of one run agree on it, and profiles are not those of other kernels."""
    assert COMPILER not in library_names()
    with asked.asking():
        assert COMPILER in library_names()

"""The compiler is found, or there is a reason and a remedy; its version and flags decide the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tofu.errors import ExecutionError
from tofu.operators.native import compiler as room
from tofu.operators.native.compiler import Compiler, NoCompiler, examined, find, required


def test_no_compiler_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find.__wrapped__()
    assert found == NoCompiler("there is no command cc", room.REMEDY)
    monkeypatch.setattr(room, "find", lambda: found)
    with pytest.raises(
        ExecutionError, match=r"cannot be built: there is no command cc; install a C\+\+ compiler"
    ):
        required()


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_a_compiler_that_fails_cannot_be_used(tmp_path: Path) -> None:
    """A C compiler without its C++ part answers like this."""
    path = script(tmp_path / "cc", 'test "$1" = --version || { echo "cannot execute cc1plus" >&2; exit 1; }')
    found = examined(path)
    assert isinstance(found, NoCompiler)
    assert "ended with 1: cannot execute cc1plus" in found.reason


def test_a_file_that_cannot_run_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "cc"
    path.write_text("not a program")
    found = examined(str(path))
    assert isinstance(found, NoCompiler)
    assert "cannot be run" in found.reason


def test_versions_and_instructions_are_other_targets(tmp_path: Path, compiler: Compiler) -> None:
    """So nothing that one compiler built is used with another one, or on another processor."""
    targets = {compiler.target}
    for version, macro in (("cc 12.1", "__AVX2__"), ("cc 12.2", "__AVX2__"), ("cc 12.2", "__AVX512F__")):
        text = f'if test "$1" = --version; then echo "{version}"; else echo "#define {macro} 1"; fi'
        found = examined(script(tmp_path / "cc", text))
        assert isinstance(found, Compiler)
        assert found.version == version
        targets.add(found.target)
    assert len(targets) == 4


def test_flags_are_part_of_the_target(monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> None:
    monkeypatch.setattr(room, "FLAGS", (*room.FLAGS, "-fwrapv"))
    found = examined(compiler.command)
    assert isinstance(found, Compiler)
    assert found.target != compiler.target


def test_no_flag_changes_what_arithmetic_means() -> None:
    assert "-ffp-contract=off" in room.FLAGS
    assert not {"-ffast-math", "-Ofast", "-fassociative-math", "-ffinite-math-only"} & set(room.FLAGS)

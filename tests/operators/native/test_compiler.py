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


def lying(folder: Path, compiler: Compiler, text: str) -> Compiler:
    """Return a compiler that answers like another one, and builds something else."""
    answers = f'case "$*" in *--version*|*-dM*) exec {compiler.command} "$@";; esac'
    found = examined(script(folder / "cc", f"{answers}\n{text}"))
    assert isinstance(found, Compiler)
    return found


@pytest.mark.parametrize("question", ["--version", "-dM"])
def test_a_compiler_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(room, "ANSWER_SECONDS", 0.2)
    started = tmp_path / "started"
    hang = f'sleep 1000 & echo $! > "{started}"; wait'
    found = examined(script(tmp_path / "cc", f'case "$*" in *{question}*) {hang};; esac'))
    assert isinstance(found, NoCompiler)
    assert "did not end within 0.2 s and was stopped" in found.reason
    state = Path(f"/proc/{started.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_build_that_hangs_is_an_error(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SECONDS", 0.2)
    with pytest.raises(ExecutionError, match=r"did not end within 0\.2 s and was stopped"):
        lying(tmp_path, compiler, "sleep 1000").build("int x;", tmp_path / "x.so")


def test_bytes_that_are_not_text_are_shown(tmp_path: Path, compiler: Compiler) -> None:
    found = examined(script(tmp_path / "cc", r"printf 'cc \377 1\n'"))
    assert isinstance(found, Compiler)
    assert found.version == "cc \ufffd 1"
    with pytest.raises(ExecutionError, match="bad \ufffd; correct"):
        lying(tmp_path, compiler, r"printf 'bad \377' >&2; exit 3").build("int x;", tmp_path / "x.so")


def test_a_build_without_a_library_is_an_error(tmp_path: Path, compiler: Compiler) -> None:
    with pytest.raises(ExecutionError, match="it says nothing, and wrote no library"):
        lying(tmp_path, compiler, "exit 0").build("int x;", tmp_path / "x.so")

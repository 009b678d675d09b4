"""Completions by Tab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from tofu.cli import COMMANDS, main
from tofu.cli.completion import SHELLS


def _completed(*words: str) -> list[str]:
    """Return the completions of the last word."""
    shell = ShellComplete(main, {}, "tofu", "_TOFU_COMPLETE")
    *before, incomplete = words
    return [
        item.value if item.type == "plain" else item.type
        for item in shell.get_completions(before, incomplete)
    ]


def test_commands() -> None:
    assert _completed("") == list(COMMANDS)
    assert _completed("de") == ["describe"]


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (("describe", "Convo"), ["Convolution"]),
        (("describe", "convo"), ["Convolution"]),
        (("audit", "softmax", "FullyC"), ["FullyConnected"]),
        (("plan", "wresnet-152-1"), ["wresnet-152-10"]),
        (("plan", "recipe:l"), ["recipe:lstm"]),
        (("plan", "mlp", "--method", "re"), ["recursive", "refine"]),
        (("plan", "mlp", "--method", "man"), ["manual"]),
        (("plan", "mlp", "--machine", "dgx-1"), ["dgx-1-v100"]),
        (("plan", "mlp", "--optimizer", "adam"), ["adam", "adamw"]),
        (("plan", "mlp", "--objective", ""), ["bytes", "time"]),
        (("train", "wresnet"), ["wresnet"]),
        (("train", "mlp", "--method", "ex"), ["exact"]),
        (("train", "mlp", "--metric", "acc"), ["accuracy"]),
        (("train", "mlp", "--level", ""), ["character", "word"]),
        (("train", "mlp", "--hold"), ["--hold-out"]),
        (("verify", "plan.json", "ml"), ["mlp"]),
        (("completion", ""), list(SHELLS)),
    ],
)
def test_names(words: tuple[str, ...], candidates: list[str]) -> None:
    assert _completed(*words)[: len(candidates)] == candidates


@pytest.mark.parametrize(
    "words", [("plan", "net"), ("describe", "./layers"), ("train", "mlp", "--data", ""), ("verify", "")]
)
def test_files_where_no_name_fits(words: tuple[str, ...]) -> None:
    assert _completed(*words) == ["file"]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(tofu: Callable[..., Result], shell: str) -> None:
    result = tofu("completion", shell)
    assert result.exit_code == 0
    assert f"_TOFU_COMPLETE={shell}_complete" in result.output


def test_another_shell_is_a_mistake(tofu: Callable[..., Result]) -> None:
    result = tofu("completion", "ksh")
    assert result.exit_code == 2
    assert "'ksh' is not one of 'bash', 'zsh', 'fish'" in result.output


def _needs(shell: str) -> pytest.MarkDecorator:
    absent = shutil.which(shell) is None
    return pytest.mark.skipif(absent, reason=f"{shell}, whose completion is tried, is not on the PATH")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The folder of a command `tofu`."""
    command = tmp_path / "tofu"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tofu "$@"\n')
    command.chmod(0o755)
    return tmp_path


def _said(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@_needs("bash")
def test_bash_completes(program: Path) -> None:
    script = (
        f'PATH={program}:$PATH; eval "$(tofu completion bash)"; '
        "COMP_WORDS=(tofu plan mlp --meth); COMP_CWORD=3; _tofu_completion tofu --meth mlp; "
        "echo ${COMPREPLY[@]}"
    )
    assert _said("bash", "-c", script) == ["--method"]


@_needs("fish")
def test_fish_completes(program: Path) -> None:
    script = (
        f"set PATH {program} $PATH; tofu completion fish | source; complete -C 'tofu plan mlp --method ex'"
    )
    assert _said("fish", "--no-config", "-c", script) == ["exact"]

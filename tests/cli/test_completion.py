"""What Tab completes."""

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
    """What the last word may become."""
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


@pytest.mark.skipif(
    shutil.which("bash") is None, reason="bash, whose completion is tried, is not on the PATH"
)
def test_bash_completes(tmp_path: Path) -> None:
    program = tmp_path / "tofu"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tofu "$@"\n')
    program.chmod(0o755)
    script = (
        f'PATH={tmp_path}:$PATH; eval "$(tofu completion bash)"; '
        "COMP_WORDS=(tofu plan mlp --meth); COMP_CWORD=3; _tofu_completion tofu --meth mlp; "
        "echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--method"]

"""How commands end: exit statuses, pipes, and what goes to which stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from tofu.cli import ending, main
from tofu.cli import models as models_command
from tofu.runtime.interrupts import handled

from ..file_sizes import files_of_at_most

Tofu = Callable[..., Result]


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def variables(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the environment of a command whose output Python buffers, or does not."""
    return {**os.environ, "PYTHONUNBUFFERED": request.param}


@pytest.mark.parametrize("argument", ["models", "--help"])
def test_a_closed_pipe_ends_without_a_traceback(argument: str, variables: dict[str, str]) -> None:
    arguments = (sys.executable, "-m", "tofu", argument)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait() == ending.CLOSED_PIPE
    assert said == ""


def test_what_the_encoding_of_the_output_lacks_is_replaced() -> None:
    command = (sys.executable, "-m", "tofu", "plan", "mlp", "-w", "2")
    full, *others = [
        subprocess.run(
            command,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout
        for encoding in ("utf-8", "ascii", "ascii:surrogateescape")
    ]
    assert "█" in full
    for text in others:
        assert text.isascii()
        assert "?" in text
    assert len({text.rpartition("searched in")[0] for text in others}) == 1


@pytest.mark.parametrize("command", [("models",), ("models", "--json")])
def test_a_closed_standard_output_is_not_written_to(command: tuple[str, ...]) -> None:
    script = f'exec "{sys.executable}" -m tofu {" ".join(command)} >&-'
    ended = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (ending.DONE, "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "mlp", "-w", "2", "--save", "{0}/plan.json"), "cannot write the plan file"),
        (("plan", "mlp", "-w", "2", "--report", "{0}/page.html"), "cannot write "),
        (("describe", "identity", "--draw", "{0}/one.svg"), "cannot write "),
        (("train", "mlp", "-w", "2", "--epochs", "1", "--checkpoint", "{0}/run"), "cannot be saved"),
        (("train", "mlp", "-w", "2", "--epochs", "1", "--log", "{0}/log"), "the disk is full"),
    ],
)
def test_a_full_disk_is_one_message(
    tofu: Tofu, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    with files_of_at_most(40):
        done = tofu(*(each.format(tmp_path) for each in arguments))
    assert done.exit_code == ending.MISTAKE
    assert says in done.stderr
    assert done.stderr.count("Error:") == 1
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in left] == [b""] * ("--log" in arguments)


@pytest.mark.parametrize("argument", ["models", "--help", "--version"])
def test_standard_output_on_a_full_disk_is_one_message(argument: str, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tofu", argument]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=variables, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (ending.MISTAKE, "Error: No space left on device\n")


def test_a_table_in_a_closed_pipe_ends_likewise(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> NoReturn:
        raise SystemExit(ending.CLOSED_PIPE)

    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console._write_buffer", closed)
    monkeypatch.setattr(ending, "leave_closed_pipe", leave)
    assert tofu("describe", "identity").exit_code == ending.CLOSED_PIPE


def test_json_is_alone_on_standard_output(tmp_path: Path) -> None:
    arguments = ["train", "mlp", "--epochs", "1", "--workers", "2", "--json", "--log", str(tmp_path / "log")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == ending.DONE
    assert ["epoch" in json.loads(line) for line in done.stdout.splitlines()] == [True, False]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "mlp", "--workers", "2", "--save", "/nowhere/plan.json"), "/nowhere/plan.json"),
        (("train", "mlp", "--workers", "1", "--checkpoint", "/proc/none/run"), "/proc/none"),
        (("train", "mlp", "--log", "/nowhere/log"), "the log /nowhere/log cannot be written: No such file"),
        (("train", "mlp", "--log", "/tmp"), "the log /tmp cannot be written: Is a directory"),
        (("train", "mlp", "--resume"), "--resume needs --checkpoint"),
        (("train", "mlp", "--steps", "3"), "need --data"),
        (("train", "mlp", "--metric", "acuracy"), "did you mean 'accuracy'"),
        (("train", "mlp", "--optimizer", "sdg"), "there is no optimizer 'sdg'"),
        (("train", "mlp", "--resize", "32"), "expected height and width such as 32x48, found '32'"),
        (("verify", "/nowhere/plan.json"), "/nowhere/plan.json"),
        (("plans",), "did you mean 'plan'?"),
    ],
)
def test_mistakes_end_in_one_message(arguments: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == ending.MISTAKE, done.exception
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error:") == 1


@pytest.mark.parametrize(
    ("number", "status", "says"),
    [
        (signal.SIGINT, ending.INTERRUPTED, "interrupted\n"),
        (signal.SIGTERM, ending.TERMINATED, "terminated\n"),
    ],
)
def test_a_signal_to_stop_has_its_own_status(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int, says: str
) -> None:
    def stopped() -> tuple[str, ...]:
        signal.raise_signal(number)
        raise AssertionError("the signal did nothing")

    with handled((signal.SIGINT,), signal.default_int_handler):  # ignored by programs in the background
        monkeypatch.setattr(models_command.models, "names", stopped)
        done = CliRunner().invoke(main, ["models"])
    assert done.exit_code == status
    assert done.stderr == says


def test_no_garbage_is_looked_for_at_the_end_of_a_command() -> None:
    script = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
    script += "from tofu.cli import main; main(['models', '--json'])"
    command = (sys.executable, "-c", script)
    said = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    assert said.splitlines()[-1] == "True"

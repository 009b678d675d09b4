"""`tofu train --processes`: one report, one message, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tofu.cli import main
from tofu.runtime.checkpoint import CheckpointFolder

PATIENCE_SECONDS = 60
TRAIN = [sys.executable, "-m", "tofu", "train", "mlp"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data that make an epoch of four steps."""
    path = tmp_path_factory.mktemp("data") / "data.npz"
    random = np.random.default_rng(0)
    found = random.standard_normal((48, 16)).astype(np.float32)
    np.savez(path, data=found, label=found[:, :4].argmax(axis=1))
    return path


@contextmanager
def training(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [*TRAIN, "--batch", "12", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def children(process: subprocess.Popen[str], count: int) -> list[int]:
    """Return the processes that a process started, in the order of their numbers."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(found) == count:
            return sorted(map(int, found))
        time.sleep(0.02)
    raise AssertionError(f"{count} processes did not start")


def gone(pids: list[int], seconds: float) -> bool:
    """Tell whether processes end within a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def await_checkpoint(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder.is_dir() and CheckpointFolder(folder).paths()):
        assert time.monotonic() < deadline, "no checkpoint was saved"
        time.sleep(0.02)


def test_the_report_is_printed_once(data: Path, tmp_path: Path) -> None:
    options = ("--data", str(data), "--epochs", "2", "--json")
    with training(*options, "--processes", "3", "--checkpoint", str(tmp_path)) as process:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line.get("epoch") for line in lines] == [1, 2, None]
    facts = lines[-1]
    assert (facts["workers"], facts["device"]) == (3, "3 processes")
    assert facts["fetched_bytes_per_step"] == facts["planned_bytes_per_step"] > 0
    [link] = facts["links"]
    assert link["from"] == link["to"] != ""
    assert link["sent_bytes"] == link["planned_bytes"] == facts["planned_bytes_per_step"]
    assert facts["checkpoint_writers"] == 3
    with training(*options, "--workers", "3", "--checkpoint", str(tmp_path / "alone")) as process:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert [json.loads(line) for line in out.splitlines()][:2] == lines[:2]


@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_killed_process_ends_all_with_one_message(data: Path, tmp_path: Path, victim: int) -> None:
    options = ("--data", str(data), "--epochs", "100000", "--json", "--checkpoint", str(tmp_path / "kept"))
    with training(*options, "--processes", "3") as process:
        pids = children(process, 3)
        await_checkpoint(tmp_path / "kept")
        os.kill(pids[victim], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert err.count("Error: ") == 1
    assert f"process {victim} (worker {victim} on " in err
    assert "was lost" in err
    assert gone(pids, 5)
    CheckpointFolder(tmp_path / "kept").load()


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(data: Path, tmp_path: Path) -> None:
    options = ("--data", str(data), "--epochs", "100000", "--checkpoint", str(tmp_path / "kept"))
    with training(*options, "--processes", "2") as process:
        pids = children(process, 2)
        await_checkpoint(tmp_path / "kept")
        process.kill()
        assert gone(pids, 10)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "says"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_asked_to_stop_they_save_once(data: Path, tmp_path: Path, number: signal.Signals, says: str) -> None:
    options = ("--data", str(data), "--epochs", "100000", "--json", "--checkpoint", str(tmp_path / "kept"))
    with training(*options, "--processes", "2") as process:
        pids = children(process, 2)
        await_checkpoint(tmp_path / "kept")
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 128 + number
    assert len(err.splitlines()) == 1
    assert err.startswith(f"{says}; ")
    assert "--resume" in err
    assert gone(pids, 5)
    CheckpointFolder(tmp_path / "kept").load()


def test_both_kinds_of_starting_are_refused() -> None:
    with training("--processes", "2", "--distributed") as process:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "torchrun" in err


def test_without_variables_the_error_says_how_to_start() -> None:
    with training("--distributed") as process:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "WORLD_SIZE is not set" in err
    assert "torchrun" in err


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    status: int
    out: str
    err: str


def distributed(*data: Path) -> list[Ended]:
    """Train with one process for each of the data, which variables alone tell of each other."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TOFU_TOKEN": "secret"}
    command = [*TRAIN, "--batch", "12", "--epochs", "1", "--json", "--distributed", "--data"]
    running = [
        subprocess.Popen(
            [*command, str(own)],
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, own in reversed(list(enumerate(data)))
    ]
    try:
        told = [each.communicate(timeout=PATIENCE_SECONDS) for each in running]
    finally:
        for each in running:
            each.kill()
    ended = [Ended(each.returncode, *said) for each, said in zip(running, told, strict=True)]
    return ended[::-1]


@pytest.mark.slow
def test_variables_alone_are_enough(data: Path) -> None:
    """As Slurm and Kubernetes start processes: nothing is inherited, and processes come in any order."""
    first, second = distributed(data, data)
    assert [first.status, second.status] == [0, 0], second.err
    assert second.out == ""
    assert [json.loads(line).get("workers") for line in first.out.splitlines()] == [None, 2]


def test_what_one_process_lacks_is_named_by_the_other(data: Path, tmp_path: Path) -> None:
    first, second = distributed(data, tmp_path / "missing.npz")
    assert [first.status, second.status] == [2, 2]
    assert "missing.npz" in second.err
    assert "process 1 (worker 1 on " in first.err
    assert "ended with DataError: " in first.err
    assert "missing.npz" in first.err


def test_workers_divide_evenly(data: Path) -> None:
    with training("--data", str(data), "--processes", "2", "--workers", "3") as process:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "3 workers do not divide evenly among 2 processes; give --workers a multiple of 2" in err


def test_nccl_without_cards_is_refused() -> None:
    with training("--processes", "2", "--transport", "nccl") as process:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "--transport nccl needs --device gpu" in err


@pytest.mark.parametrize("option", [("--transport", "gloo"), ("--timeout", "5")])
@pytest.mark.parametrize("command", [("train", "mlp"), ("profile", "mlp", "--save", "here.yaml")])
def test_options_of_processes_need_processes(
    command: tuple[str, ...], option: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(main, [*command, *option])
    assert ended.exit_code == 2
    assert f"{option[0]} is for several processes" in ended.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_processes_on_cards_say_once_what_is_missing() -> None:
    with training("--processes", "2", "--device", "gpu") as process:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert err.count("Error: ") == 1
    assert "a GPU needs cupy" in err


def test_messages_of_processes_are_profiled(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    command = [sys.executable, "-m", "tofu", "profile", "mlp", "--batch", "12", "--save", str(path)]
    done = subprocess.run(
        [*command, "--processes", "2", "--json"], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["programs"]
    assert row["measured"] > row["known"] == 0
    simulate = [sys.executable, "-m", "tofu", "simulate", "mlp", "--batch", "12", "--workers", "2"]
    found = subprocess.run(
        [*simulate, "--machine", str(path), "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout)["times"] == "measured"


@pytest.mark.parametrize("options", [("--workers", "2"), ("--device", "gpu")])
def test_processes_are_profiled_one_worker_each_on_processors(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tofu", "profile", "mlp", "--save", str(tmp_path / "run.yaml")]
    done = subprocess.run(
        [*command, "--processes", "2", *options], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 2
    assert "leave out --workers" in done.stderr or "--device cpu" in done.stderr

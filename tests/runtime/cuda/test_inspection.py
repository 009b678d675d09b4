"""The report on a machine for the CUDA engine."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import MemoryCopy
from tofu.runtime.cuda import inspection
from tofu.runtime.cuda.inspection import copy_bandwidth, inspect

from .guards import intact
from .host_machine import Compiled, HostMachine


def test_copies_are_measured_between_every_pair(tmp_path: Path) -> None:
    machine = HostMachine(3, Compiled(tmp_path))
    ticks = count()
    found = copy_bandwidth(machine, nbytes=600, copies=3, clock=lambda: next(ticks) / 2)
    assert found == ((1200.0,) * 3,) * 3  # half a second for each
    copies = [command for issued in machine.issued for command in issued]
    assert all(isinstance(command, MemoryCopy) and command.nbytes == 600 for command in copies)
    pairs = {(command.target, command.source) for command in copies if isinstance(command, MemoryCopy)}
    assert (len(copies), len(pairs)) == (9 * 4, 9)
    assert intact(machine)


def test_a_machine_without_anything_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, purpose: str) -> Any:
        raise ExecutionError(f"{purpose} needs {name}, which is not installed: get it")

    def no_version() -> str:
        raise ExecutionError("cuBLAS is not found: get it")

    monkeypatch.setattr(inspection, "library", nothing)
    monkeypatch.setattr(inspection.cublas, "version", no_version)
    found = inspect()
    assert not found.ready
    assert (found.cards, found.reaches, found.bandwidth) == ((), (), ())
    assert [part.name for part in found.parts] == ["NVIDIA driver", "CuPy", "cuDNN front end", "cuBLAS"]
    assert all(part.version is None and "gpu-cuda13" in part.remedy for part in found.parts)
    assert found.parts[0].remedy.startswith("not looked for without CuPy")


@pytest.mark.gpu
def test_a_machine_with_cards_is_described() -> None:
    found = inspect()
    assert found.ready
    assert all(0 < card.free_bytes <= card.total_bytes for card in found.cards)
    assert all(rate > 1e9 for row in found.bandwidth for rate in row)

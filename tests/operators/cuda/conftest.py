"""The CPU machine that generated kernels run on, and the operator library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tofu.operators.cuda import CudaKernel

from .library import Case, library_cases
from .machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    """`machine(kernels)` compiles kernels for the CPU."""

    def compiled(kernels: Sequence[CudaKernel], source: str | None = None) -> Machine:
        return Machine(kernels, tmp_path, source)

    return compiled


@pytest.fixture(scope="session")
def cases() -> Callable[[tuple[str, ...]], list[Case]]:
    """`cases(names)`: what operators of the library run in training, each description once."""
    return cache(library_cases)

"""The machine's compiler, and a folder for what it builds; without a compiler tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tofu.operators.native import asked
from tofu.operators.native.compiler import Compiler, NoCompiler, find
from tofu.support import cache_folder


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    found = find()
    if isinstance(found, NoCompiler):
        pytest.skip(f"no C compiler: {found.reason}")
    return found


@pytest.fixture(scope="session")
def kept_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all tests that do not look into it, so that equal kernels are built once."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def native(compiler: Compiler, kept_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask for kernels in C."""
    monkeypatch.setenv(cache_folder.FOLDER_VARIABLE, str(kept_kernels))
    with asked.asking():
        yield

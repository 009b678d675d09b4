"""The library is found and opened, or refused with the reason; its objects are destroyed."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.operators.kernels.onednn import library
from tofu.operators.kernels.onednn.forms import Form, described
from tofu.operators.kernels.onednn.handle import Handle
from tofu.operators.kernels.onednn.library import (
    Absent,
    Library,
    Unimplemented,
    check,
    find,
    library_path,
    opened,
)
from tofu.operators.kernels.onednn.primitive import is_reference


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(library.metadata, "files", missing)
    found = find.__wrapped__()
    assert isinstance(found, Absent)
    assert found.reason == "the package onednn-cpu-gomp is not installed"
    assert "pip install '.[cpu]'" in found.remedy


def test_a_file_that_is_not_the_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libdnnl.so.3"
    path.write_bytes(b"\x7fELF, but no more")
    found = opened(path)
    assert isinstance(found, Absent)
    assert found.reason.startswith("libdnnl.so.3 cannot be loaded: ")


@pytest.mark.parametrize("version", [(3, 1), (3, 3), (2, 2), (4, 0)])
def test_another_version_is_refused(
    version: tuple[int, int], onednn: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers may mean something else."""
    path = library_path()
    assert path is not None
    monkeypatch.setattr(library, "VERSION", version)
    found = opened(path)
    assert isinstance(found, Absent)
    assert f"is version {onednn.version}, and Tofu calls version {version[0]}.{version[1]}" in found.reason


def test_a_status_that_is_not_success_is_an_error() -> None:
    check("dnnl_memory_create", 0)
    with pytest.raises(ExecutionError, match="oneDNN's function dnnl_memory_create failed with status 2"):
        check("dnnl_memory_create", 2)
    with pytest.raises(Unimplemented):
        check("dnnl_memory_create", library.UNIMPLEMENTED)


@pytest.mark.usefixtures("only_new_garbage")
def test_what_nobody_refers_to_is_destroyed(onednn: Library) -> None:
    """Each object once, and not before."""
    destroyed: list[Any] = []

    def counting(name: str) -> Callable[..., Any]:
        function = getattr(onednn.functions, name)
        if not name.endswith("_destroy"):
            return function
        return lambda address: (destroyed.append(address), function(address))

    class Counted:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            return counting(name)

    counted = Library(
        Counted(), onednn.short, onednn.version, "", onednn.engine, onednn.stream, onednn.attributes
    )
    made = [described(counted, Form((2, 3), (3, 1))) for _ in range(3)]
    addresses = {each.address for each in made}
    assert not destroyed
    made.clear()
    gc.collect()
    assert sorted(destroyed) == sorted(addresses)


def test_a_handle_is_passed_as_its_address() -> None:
    handle = Handle(4096, lambda address: None)
    assert handle._as_parameter_.value == handle.address == 4096


def test_the_number_of_threads_is_as_before(onednn: Library) -> None:
    threads = onednn.short
    before = threads.omp_get_max_threads()
    threads.omp_set_num_threads(3)
    try:
        with onednn.one_thread():
            assert threads.omp_get_max_threads() == 1
        assert threads.omp_get_max_threads() == 3
    finally:
        threads.omp_set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "slow"),
    [("ref:any", True), ("gemm:ref", True), ("simple:any", False), ("jit:avx512_core", False)],
)
def test_reference_implementations_are_known(name: str, slow: bool) -> None:
    assert is_reference(name) == slow

"""Libraries on disk are built once, are rebuilt if they are damaged or stale, and are nobody else's."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tofu.errors import ExecutionError
from tofu.operators.native import built_libraries
from tofu.operators.native.built_libraries import function_in, kernels_folder, loaded
from tofu.operators.native.compiler import Compiler
from tofu.support import cache_folder
from tofu.support.cache_folder import own_folder

SOURCE = 'extern "C" __attribute__((visibility("default"))) int answer() {{ return {}; }}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the libraries, which is empty; nothing is remembered from other tests."""
    monkeypatch.setenv(cache_folder.FOLDER_VARIABLE, str(tmp_path))
    built_libraries._loaded.cache_clear()
    return kernels_folder()


def answer(number: int, compiler: Compiler) -> int:
    """Return what the library of a source returns, as a new process would load it."""
    built_libraries._loaded.cache_clear()
    return int(loaded(SOURCE.format(number), compiler).answer())


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


class Counted:
    """Counts what is built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.builds = 0
        build = Compiler.build

        def counted(compiler: Compiler, source: str, path: Path) -> None:
            self.builds += 1
            build(compiler, source, path)

        monkeypatch.setattr(Compiler, "build", counted)


def test_a_library_without_the_function_is_an_error(compiler: Compiler, folder: Path) -> None:
    library = loaded(SOURCE.format(5), compiler)
    assert function_in(library, "answer")() == 5
    with pytest.raises(ExecutionError, match=r"the kernel .*\.so has no function question; remove the file"):
        function_in(library, "question")


def test_a_library_is_built_once(compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    assert [answer(41, compiler), answer(41, compiler), answer(42, compiler)] == [41, 41, 42]
    assert counted.builds == 2
    assert len(entries(folder)) == 2, "nothing but the libraries is left"
    assert {stat.S_IMODE(path.stat().st_mode) for path in entries(folder)} == {0o600}


def flipped(path: Path) -> None:
    """Change one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped bit": flipped,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "without its digest": lambda path: path.write_bytes(path.read_bytes()[: -built_libraries.DIGEST_BYTES]),
    "a folder's worth of text": lambda path: path.write_text("int main() {}\n" * 100),
    "others may write it": lambda path: path.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_library_is_built_again(
    damage: str, compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer(7, compiler) == 7
    (path,) = entries(folder)
    copy = folder.parent / "copy.so"
    shutil.copy(path, copy)  # the library that is loaded keeps its contents
    os.replace(copy, path)
    DAMAGE[damage](path)
    counted = Counted(monkeypatch)
    assert answer(7, compiler) == 7
    assert counted.builds == 1
    assert entries(folder) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_library_of_another_source_is_stale(compiler: Compiler, folder: Path) -> None:
    """It is whole, but its name is that of another source."""
    assert answer(1, compiler) == 1
    (first,) = entries(folder)
    assert answer(2, compiler) == 2
    (second,) = set(entries(folder)) - {first}
    copy = folder.parent / "copy.so"
    shutil.copy(first, copy)
    os.replace(copy, second)
    assert answer(2, compiler) == 2


def test_another_compiler_builds_anew(
    compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version, its flags and the processor's instructions are in `target`."""
    counted = Counted(monkeypatch)
    answer(3, compiler)
    assert answer(3, replace(compiler, target="0" * 64)) == 3
    assert counted.builds == 2
    assert len(entries(folder)) == 2


def test_a_link_is_not_followed(compiler: Compiler, folder: Path) -> None:
    assert answer(5, compiler) == 5
    (path,) = entries(folder)
    moved = path.rename(folder.parent / "elsewhere.so")
    path.symlink_to(moved)
    assert answer(5, compiler) == 5
    assert not path.is_symlink()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_library_takes_the_place_of_what_is_not_a_file(
    compiler: Compiler, folder: Path, make: Callable[[Path], None]
) -> None:
    answer(5, compiler)
    (path,) = entries(folder)
    path.unlink()
    make(path)
    assert answer(5, compiler) == 5
    assert path.is_file()


def test_a_folder_in_the_place_of_a_library_is_an_error(compiler: Compiler, folder: Path) -> None:
    answer(5, compiler)
    (path,) = entries(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(ExecutionError, match=r"the kernel .*\.so cannot be written: .*directory"):
        answer(5, compiler)
    assert entries(folder) == [path]


def test_several_build_the_same_at_once(compiler: Compiler, folder: Path) -> None:
    """Each gets a whole library, whoever is first."""
    barrier = threading.Barrier(4)
    found: list[int] = []

    def build() -> None:
        barrier.wait()
        library = built_libraries._loaded.__wrapped__(SOURCE.format(9), compiler, folder)
        found.append(int(library.answer()))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [9] * 4
    assert len(entries(folder)) == 1


def test_a_build_that_fails_says_what_the_compiler_says(compiler: Compiler, folder: Path) -> None:
    with pytest.raises(
        ExecutionError, match=r"cannot compile a kernel \(exit status 1\): .*nothing_like_this"
    ):
        loaded("int x = nothing_like_this;", compiler)
    assert entries(folder) == [], "nothing is left"


def test_a_build_that_is_interrupted_leaves_nothing(
    compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    build = Compiler.build
    monkeypatch.setattr(Compiler, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        answer(6, compiler)
    monkeypatch.setattr(Compiler, "build", build)
    assert entries(folder) == []
    assert answer(6, compiler) == 6


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_can_write_is_refused(
    mode: int, compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: pytest.fail(f"{path} was loaded"))
    with pytest.raises(ExecutionError, match=rf"other users can change .*mode {mode:o}\); name a folder"):
        loaded(SOURCE.format(8), compiler)
    assert entries(folder) == []


def test_a_folder_whose_place_others_can_write_is_refused(tmp_path: Path) -> None:
    """They could rename it. With the sticky bit they cannot."""
    tmp_path.chmod(0o777)
    with pytest.raises(ExecutionError, match=f"other users can change {tmp_path}"):
        own_folder(tmp_path / "kernels")
    tmp_path.chmod(0o1777)
    assert own_folder(tmp_path / "kernels") == (tmp_path / "kernels").resolve()
    tmp_path.chmod(0o700)


def test_the_folder_is_made_for_this_user_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        own_folder(folder)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(place.stat().st_mode) for place in (folder, folder.parent)} == {0o700}


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match=r"code cannot be kept in .*name a folder of your own"):
        own_folder(tmp_path / "file" / "kernels")

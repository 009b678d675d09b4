"""The picture of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tofu.errors import DataError, TofuError
from tofu.reports.training import Start
from tofu.reports.training_curve import Curve
from tofu.runtime.progress import Epoch, Progress

START = Start("net $\\x$", "on arrays", 2, "cpu", 2, 6, 640, 64, 1000, 4_000_000, False)


def _run(curve: Curve, error: type[BaseException] | None = None) -> None:
    with curve:
        curve.start(START)
        for number in range(1, 7):
            curve.step(Progress(0, number, 6, {"cross-entropy": 1 / number}, 0.1, 64, 0.25, 12))
        if error is not None:
            raise error
        curve.epoch(Epoch(0, {"cross-entropy": 0.5}, {"cross-entropy": 0.75}, 1.0), 2)
        curve.summary({})


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_a_run_is_drawn(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"curve{suffix}"
    _run(Curve(path))
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_fails_is_drawn_as_far_as_it_went(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(Curve(tmp_path / "curve.png"), KeyboardInterrupt)
    assert (tmp_path / "curve.png").is_file()


def test_no_iteration_no_picture(tmp_path: Path) -> None:
    with Curve(tmp_path / "curve.png"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tofu.support.atomic_files.Files.write", full)
    (tmp_path / "curve.png").write_text("the one before")
    with pytest.raises(TofuError, match=r"cannot write '.*curve.png': No space left on device"):
        _run(Curve(tmp_path / "curve.png"))
    with pytest.raises(KeyboardInterrupt):
        _run(Curve(tmp_path / "curve.png"), KeyboardInterrupt)
    assert (tmp_path / "curve.png").read_text() == "the one before"


def test_another_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a plot ends in .png, .svg, .pdf, not '.gif'"):
        Curve(tmp_path / "curve.gif")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TofuError, match=r"there is no folder '.*none'; make it first"):
        Curve(tmp_path / "none" / "curve.png")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DataError, match="--plot needs matplotlib, the extra 'plot': pip install"):
        Curve(tmp_path / "curve.png")

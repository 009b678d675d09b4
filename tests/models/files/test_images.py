"""Folders of images, whole and malformed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tofu.errors import DataError
from tofu.models.files import Reading, read

Refuse = Callable[..., str]


def _save(path: Path, value: int, size: tuple[int, int] = (5, 4), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*size, 3) if mode == "RGB" else size, value, np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Two classes of three images, 5 high and 4 wide."""
    folder = tmp_path / "pets"
    for number in range(3):
        _save(folder / "dog" / f"{number}.png", 10 + number)
        _save(folder / "cat" / f"{number}.png", number)
    return folder


def test_classes_are_numbered_by_name(pets: Path) -> None:
    (pets / "cat" / ".DS_Store").write_bytes(b"hidden")
    found = read(pets, Reading(hold_out=0))
    assert found.names == ("cat", "dog")
    assert found.split.train_data.shape == (6, 3, 5, 4)
    assert found.split.train_label.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(found.split.train_data[:, 1, 2, 3] * 255, [0, 1, 2, 10, 11, 12], rtol=1e-6)
    assert len(found.split.test_data) == 0


def test_a_test_folder_is_held_out(pets: Path, tmp_path: Path) -> None:
    pets.rename(tmp_path / "train")
    _save(tmp_path / "val" / "cat" / "a.png", 7)
    _save(tmp_path / "val" / "dog" / "a.png", 8)
    found = read(tmp_path)
    assert (len(found.split.train_data), len(found.split.test_data)) == (6, 2)
    assert found.split.test_label.tolist() == [0, 1]


def test_grey_images_have_one_channel(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _save(tmp_path / name / "0.png", 3, mode="L")
    assert read(tmp_path).sample == (1, 5, 4)


def test_grey_images_of_two_bytes_a_pixel_are_not_clipped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number, value in enumerate((0, 257, 0x8000, 0xFFFF)):
        Image.fromarray(np.full((5, 4), value, np.uint16)).save(tmp_path / "a" / f"{number}.png")
    data = read(tmp_path, Reading(hold_out=0)).split.train_data
    assert data.shape == (4, 1, 5, 4)
    np.testing.assert_allclose(data[:, 0, 0, 0] * 255, [0, 1, 128, 255], rtol=1e-6)


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_images_whose_white_is_not_known(tmp_path: Path, refused: Refuse, kind: str) -> None:
    (tmp_path / "a").mkdir()
    Image.fromarray(np.ones((5, 4), kind)).save(tmp_path / "a" / "0.tif")
    said = refused(tmp_path)
    assert "expected pixels of one or two bytes a channel, found those of mode" in said
    assert said.endswith("save it with one byte a channel")


def test_one_image_in_colour_makes_all_so(pets: Path) -> None:
    _save(pets / "cat" / "grey.png", 9, mode="L")
    assert read(pets).sample == (3, 5, 4)


def test_mixed_sizes(pets: Path, refused: Refuse) -> None:
    odd = _save(pets / "dog" / "odd.png", 1, size=(7, 6))
    said = refused(pets)
    assert f"{odd}: expected height and width 5x4 as in {pets / 'cat' / '0.png'}, found 7x6" in said
    assert "--resize 5x4" in said
    assert read(pets, Reading(resize=(8, 9))).sample == (3, 8, 9)


def test_an_empty_class(pets: Path, refused: Refuse) -> None:
    (pets / "eel").mkdir()
    assert f"{pets / 'eel'}: expected images of the class, found none" in refused(pets)


def test_a_file_that_is_no_image(pets: Path, refused: Refuse) -> None:
    (pets / "cat" / "readme.txt").write_text("cats")
    assert f"{pets / 'cat' / 'readme.txt'}: expected an image, found another kind of file" in refused(pets)


def test_a_truncated_image(pets: Path, refused: Refuse) -> None:
    path = pets / "cat" / "1.png"
    path.write_bytes(path.read_bytes()[:45])
    assert f"{path} is a damaged image" in refused(pets)


def test_a_file_among_the_classes(pets: Path, refused: Refuse) -> None:
    (pets / "labels.csv").write_text("0,1")
    assert f"{pets / 'labels.csv'}: expected a folder for each class, found a file" in refused(pets)


def test_a_folder_in_a_class(pets: Path, refused: Refuse) -> None:
    (pets / "cat" / "more").mkdir()
    assert f"{pets / 'cat' / 'more'}: expected images in a class's folder, found a folder" in refused(pets)


def test_a_class_that_is_only_held_out(pets: Path, tmp_path: Path, refused: Refuse) -> None:
    pets.rename(tmp_path / "train")
    for name in ("cat", "dog", "eel"):
        _save(tmp_path / "test" / name / "a.png", 7)
    assert "expected a class as in training: cat, dog, found eel" in refused(tmp_path)


def test_an_image_of_very_many_pixels(pets: Path, refused: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    assert "far more pixels" in refused(pets)


def test_without_pillow_the_extra_is_named(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DataError, match="need Pillow, the extra 'images': pip install pillow"):
        read(pets)

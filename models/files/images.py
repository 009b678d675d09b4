"""Folders of images: one folder for each class."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...support.opened_files import open_regular
from ..split import Samples
from .dataset import Dataset, Reading, refusal
from .held_out import split

if TYPE_CHECKING:
    from PIL import Image

WHAT = "folders of images"
TRAIN = "train"
HELD_OUT = ("test", "val", "valid", "validation")
GREY = ("1", "L", "LA")
TWO_BYTES = "I;16"
"""How the modes of grey images with two bytes a pixel begin."""
UNBOUNDED = ("I", "F")
"""Modes whose pixels are any numbers, so that none is known to be white."""
Pixels = npt.NDArray[np.uint8]


def is_folder(folder: Path) -> bool:
    """Return whether a folder has folders in it."""
    return any(each.is_dir() for each in _visible(folder))


def read(path: Path, reading: Reading) -> Dataset:
    """Return images `[n, channels, height, width]` from 0 to 1, with one channel if all are grey, else
    three.

    Classes are numbered by the names of their folders. If `test` or `val` is next to `train`, the former
    is held out. Hidden files are ignored. Raises DataError for empty folders, files that are not images,
    images of several sizes, and where Pillow is missing.
    """
    reading.only(path, WHAT, "resize")
    _require_pillow()
    root, held = path, None
    if (path / TRAIN).is_dir():
        root = path / TRAIN
        held = next((path / name for name in HELD_OUT if (path / name).is_dir()), None)
    names = tuple(each.name for each in _visible(root))
    files, labels = _files(root, names)
    test_files, test_labels = ([], []) if held is None else _files(held, names)
    pixels = _pixels([*files, *test_files], reading.resize)
    data = pixels.astype(np.float32)
    data /= 255
    train = Samples(data[: len(files)], np.array(labels, np.float32))
    test = None if held is None else Samples(data[len(files) :], np.array(test_labels, np.float32))
    return Dataset(WHAT, split(path, train, test, reading.hold_out), len(names), names)


def _require_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise DataError("folders of images need Pillow, the extra 'images': pip install pillow") from error


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))


def _files(root: Path, names: tuple[str, ...]) -> tuple[list[Path], list[int]]:
    """Return the files of every class in `names`, and their classes. Refuse other folders and empty ones."""
    for each in _visible(root):
        if not each.is_dir():
            raise refusal(each, "a folder for each class", "a file", "move it into the folder of its class")
        if each.name not in names:
            raise refusal(
                each, f"a class as in training: {', '.join(names[:8])}", each.name, "remove or rename it"
            )
    files, labels = [], []
    for number, name in enumerate(names):
        found = _visible(root / name) if (root / name).is_dir() else []
        inner = next((each for each in found if each.is_dir()), None)
        if inner is not None:
            raise refusal(inner, "images in a class's folder", "a folder", "move its images up, or remove it")
        if not found:
            raise refusal(root / name, "images of the class", "none", "add some or remove the folder")
        files += found
        labels += [number] * len(found)
    return files, labels


def _pixels(paths: list[Path], resize: tuple[int, int] | None) -> Pixels:
    """Return all images as bytes `[n, channels, height, width]`."""
    images = [_image(path, resize) for path in paths]
    grey = all(image.ndim == 2 for image in images)
    size = images[0].shape[:2]
    whole = np.empty((len(images), 1 if grey else 3, *size), np.uint8)
    for number, (path, image) in enumerate(zip(paths, images, strict=True)):
        if image.shape[:2] != size:
            raise refusal(
                path,
                f"height and width {size[0]}x{size[1]} as in {paths[0]}",
                f"{image.shape[0]}x{image.shape[1]}",
                f"bring all to one size, for example with --resize {size[0]}x{size[1]}",
            )
        whole[number] = image if image.ndim == 2 else image.transpose(2, 0, 1)
    return whole


def _image(path: Path, resize: tuple[int, int] | None) -> Pixels:
    """Return one image as bytes, `[height, width]` if it is grey, else `[height, width, 3]`."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with open_regular(path) as file, Image.open(file) as opened:
                if opened.mode in UNBOUNDED:
                    raise refusal(
                        path,
                        "pixels of one or two bytes a channel",
                        f"those of mode {opened.mode}",
                        "save it with one byte a channel",
                    )
                return np.asarray(_converted(opened, resize), np.uint8)
    except UnidentifiedImageError as error:
        raise refusal(path, "an image", "another kind of file", "remove it from the folder") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise refusal(path, "an image to train on", "one with far more pixels", "make it smaller") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # what Pillow's decoders raise
        raise DataError(f"{path} is a damaged image: {error}; replace or remove it") from error


def _converted(image: Image.Image, resize: tuple[int, int] | None) -> Any:
    from PIL import Image

    if image.mode.startswith(TWO_BYTES):
        plain = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    else:
        plain = image.convert("L" if image.mode in GREY else "RGB")
    return plain if resize is None else plain.resize((resize[1], resize[0]))

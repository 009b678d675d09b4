"""Text for language models: characters or words as class numbers."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...support.opened_files import read_regular
from ..split import DataSplit, windows
from .dataset import HELD_OUT, STEPS, Dataset, Reading, refusal
from .held_out import held_out_count

WHAT = "text"
MOST_BYTES = 1 << 30
LEVELS = {"character": 256, "word": 10_000}
"""How a text may be cut, and how many of the most frequent get a class each by default."""
UNKNOWN = "<unknown>"
_WORD = re.compile(r"\w+|[^\w\s]|\n")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(path: Path, reading: Reading) -> Dataset:
    """Return windows `[n, steps]` of class numbers; labels are the classes that follow.

    The last tenth is held out.

    Words are runs of letters and digits, punctuation marks and line ends. Class 0 stands for all that is not
    among the most frequent in the part to train on. Raises DataError for text that is not UTF-8 or too short.
    """
    reading.only(path, WHAT, "steps", "level", "vocabulary")
    level, steps = reading.level or "character", STEPS if reading.steps is None else reading.steps
    if level not in LEVELS:
        raise DataError(f"--level must be {' or '.join(LEVELS)}, not {level!r}")
    names, found = (_words if level == "word" else _characters)(_decoded(path))
    total = max(0, (len(found) - 1) // steps)
    if total < 2:
        raise refusal(
            path,
            f"at least {2 * steps + 1} {level}s, two windows of {steps}",
            f"{len(found)}",
            "give a longer text or shorter windows with --steps",
        )
    held = held_out_count(path, total, HELD_OUT if reading.hold_out is None else reading.hold_out)
    cut = total - held
    kept, classes = _numbered(names, found, cut * steps, reading.vocabulary or LEVELS[level])
    samples = windows(classes, steps)
    return Dataset(
        f"text by {level}s", DataSplit.of(samples[:cut], samples[cut:]), len(kept), kept, sequence=True
    )


def _decoded(path: Path) -> str:
    raw = read_regular(path, MOST_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        utf16 = raw.startswith(UTF_16)
        encoding = "UTF-16" if utf16 else "LATIN1"
        raise refusal(
            f"{path}, byte {error.start} in line {line}",
            "UTF-8",
            encoding if utf16 else f"byte {raw[error.start]:02x}",
            f"convert it, for example with iconv -f {encoding} -t UTF-8",
        ) from error


def _characters(text: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the characters that occur, and the number of each in the text."""
    codes, numbers = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
    return [chr(code) for code in codes], numbers.astype(np.int64)


def _words(text: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the words that occur, and the number of each in the text."""
    number: dict[str, int] = {}
    found = [number.setdefault(match[0], len(number)) for match in _WORD.finditer(text)]
    return list(number), np.array(found, np.int64)


def _numbered(
    names: list[str], found: npt.NDArray[np.int64], trained: int, most: int
) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Return names of the classes, and the classes of a text of which the first `trained` decide what has
    one.
    """
    counts = np.bincount(found[:trained], minlength=len(names))
    frequent = sorted(np.flatnonzero(counts).tolist(), key=lambda each: (-counts[each], names[each]))[:most]
    kept = sorted(frequent, key=lambda each: names[each])
    classes = np.zeros(len(names), np.float32)
    classes[kept] = np.arange(1, len(kept) + 1)
    return (UNKNOWN, *(names[each] for each in kept)), classes[found]

"""Save files that users name: complete, or not at all with an error that names the file."""

from __future__ import annotations

from pathlib import Path

from ..errors import TofuError
from .atomic_files import write_whole


def save_whole(path: Path, data: bytes, what: str = "", error: type[TofuError] = TofuError) -> None:
    """Write a whole file, or leave the previous one unchanged.

    Raises an error of the given kind that names the file and `what` it is, such as "the plan file".
    """
    try:
        write_whole(path, data)
    except OSError as problem:
        named = f"{what} {str(path)!r}" if what else repr(str(path))
        raise error(f"cannot write {named}: {problem.strerror or problem}") from problem

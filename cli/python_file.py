"""`file.py:name` on the command line: an object that a user's Python file defines."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from ..errors import TofuError
from ..support.opened_files import open_regular
from ..support.wording import alternatives


def split(target: str) -> tuple[Path, str] | None:
    """Return the file and the name in it, of a target written `file.py:name`.

    Raises TofuError for a file alone.
    """
    if target.endswith(".py"):
        raise TofuError(f"{target} may define several things; say which one, as {target}:NAME")
    path, colon, name = target.rpartition(":")
    return (Path(path), name) if colon and path.endswith(".py") else None


def read(path: Path, name: str) -> object:
    """Run the file and return what it calls `name`.

    Raises a TofuError that names the line if the file fails.
    """
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise TofuError(f"the Python file {path} does not exist")
    module = importlib.util.module_from_spec(specification)
    try:
        open_regular(path).close()
    except OSError as error:
        raise TofuError(f"the Python file {path} cannot be read: {error.strerror}") from error
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except TofuError:
        raise
    except Exception as error:
        raise TofuError(failure(path, error)) from error
    finally:
        sys.path.remove(str(path.parent))
    found = vars(module)
    if name not in found:
        known = [
            each
            for each, value in found.items()
            if not each.startswith("_") and not isinstance(value, ModuleType)
        ]
        raise TofuError(f"{path} does not define {name!r}{alternatives(name, known)}")
    return found[name]


def failure(path: Path, error: Exception) -> str:
    """Return where in the file an exception came from, and what it says."""
    if isinstance(error, SyntaxError):
        return f"{path}:{error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    place = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{place} raises {type(error).__name__}: {error}"

"""A model in a file: a graph file that MXNet wrote, or `file.py:function`."""

from __future__ import annotations

from pathlib import Path

from ..dataflow import sym
from ..errors import TofuError
from ..models import Model, imported
from . import python_file


def from_file(target: str) -> Model | sym.Symbol | None:
    """Return the model of a Python function or a graph file of MXNet; None if `target` names neither.

    Raises TofuError.
    """
    if not is_file(target) or target.endswith(imported.SUFFIX):
        return None
    in_python = python_file.split(target)
    if in_python is None:
        return sym.load(target)
    found = _call(*in_python)
    if not isinstance(found, Model | sym.Symbol):
        raise TofuError(
            f"{target} returned a {type(found).__name__}; expected a tofu.models.Model or a symbol"
        )
    return found


def is_file(target: str) -> bool:
    """Return whether `target` is written as a Python function or a file of MXNet or ONNX."""
    return python_file.split(target) is not None or target.endswith((".json", imported.SUFFIX))


def _call(path: Path, name: str) -> object:
    build = python_file.read(path, name)
    if not callable(build):
        raise TofuError(f"{path}:{name} is a {type(build).__name__}; expected a function that makes a model")
    try:
        return build()
    except TofuError:
        raise
    except Exception as error:
        raise TofuError(python_file.failure(path, error)) from error

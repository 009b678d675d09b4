"""MODEL on the command line: a zoo name, a graph file that MXNet wrote, or `file.py:function`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from .. import models
from ..dataflow import sym
from ..errors import TofuError
from ..models import Model
from .options import Shape


def load_model(target: str, batch: int | None, shapes: dict[str, Shape]) -> Model:
    """The model that `target` names.

    A function in a Python file is called without arguments and returns a Model or a Symbol; graph files and
    symbols need `shapes` for their inputs. Raises TofuError saying what was expected.
    """
    path, colon, function = target.rpartition(":")
    if colon and path.endswith(".py"):
        found = _call(Path(path), function)
    elif target.endswith(".json"):
        found = sym.load(target)
    else:
        if shapes:
            raise TofuError(
                f"--shape is for graph files and functions; the shapes of {target} follow from --batch"
            )
        return models.get(target, batch=batch)
    if isinstance(found, Model):
        return found
    if not isinstance(found, sym.Symbol):
        raise TofuError(f"{target} gave a {type(found).__name__}; expected a tofu.models.Model or a symbol")
    if not shapes:
        inputs = ", ".join(found.list_arguments()[:1])
        raise TofuError(
            f"{target} is a graph without shapes; give them, for example --shape {inputs}=32,3,224,224"
        )
    return Model(target, found, shapes)


def _call(path: Path, function: str) -> object:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise TofuError(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    build = getattr(module, function, None)
    if not callable(build):
        raise TofuError(f"{path} has no function {function!r}")
    return build()

"""A model in a file: a graph file that MXNet wrote, or `file.py:function`."""

from __future__ import annotations

from pathlib import Path

from ..dataflow import sym
from ..errors import TofuError
from ..models import Model, imported
from ..models.torch_module import FILES, is_module, of_module
from . import python_file


def from_file(target: str, batch: int | None = None) -> Model | sym.Symbol | None:
    """Return the model of a Python function or a graph file of MXNet; None if `target` names neither.

    A module of PyTorch is read for batches of `batch` samples. Raises TofuError.
    """
    if not is_file(target) or target.endswith(imported.SUFFIX):
        return None
    if target.endswith(FILES):
        raise TofuError(
            f"{target} is a file of PyTorch, which may execute what its files hold, so Tofu opens none. "
            "If you trust the file, load it in a Python function that returns (module, example_inputs), as "
            "(torch.export.load(path).module(), inputs), and give file.py:function"
        )
    in_python = python_file.split(target)
    if in_python is None:
        return sym.load(target)
    found = _call(*in_python)
    match found:
        case (module, inputs) if is_module(module):
            return of_module(target, module, inputs, batch)
        case _ if is_module(found):
            raise TofuError(
                f"{target} returned a module of PyTorch alone; return (module, example_inputs), since its "
                "graph is read with the shapes of its inputs"
            )
    if not isinstance(found, Model | sym.Symbol):
        raise TofuError(
            f"{target} returned a {type(found).__name__}; expected a tofu.models.Model, a symbol, or a "
            "module of PyTorch with example inputs"
        )
    return found


def is_file(target: str) -> bool:
    """Return whether `target` is written as a Python function or a file of MXNet, ONNX or PyTorch."""
    return python_file.split(target) is not None or target.endswith((".json", imported.SUFFIX, *FILES))


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

"""MODEL on the command line: a zoo name, `recipe:NAME`, a file of MXNet or ONNX, or `file.py:function`."""

from __future__ import annotations

from .. import models
from ..analyzer.indices.region import Shape
from ..errors import TofuError
from ..models import Model, imported
from .model_file import from_file

RECIPE = "recipe:"
"""Begins the MODEL that `tofu train NAME` trains: `recipe:NAME`."""


def load_model(target: str, batch: int | None, shapes: dict[str, Shape]) -> Model:
    """Return the model that `target` names.

    A function in a Python file is called without arguments and returns a Model or a Symbol. Graph files and
    symbols need `shapes` for their inputs, and ONNX files for those that they leave open. Raises TofuError
    saying what was expected.
    """
    if target.endswith(imported.SUFFIX):
        return imported.load(target, batch, shapes)
    found = from_file(target, batch)
    if found is None:
        if shapes:
            raise TofuError(
                f"--shape is for graph files and functions; the shapes of {target} follow from --batch"
            )
        if target.startswith(RECIPE):
            from .recipes import recipe

            return recipe(target.removeprefix(RECIPE), batch).model
        return models.get(target, batch=batch)
    if isinstance(found, Model):
        from ..models.fitting import rebatched

        return rebatched(found, batch)
    if not shapes:
        inputs = ", ".join(found.list_arguments()[:1])
        raise TofuError(
            f"{target} is a graph file without shapes; give them, for example --shape {inputs}=32,3,224,224"
        )
    return Model(target, found, shapes)

"""Modules on PyTorch's meta device, whose parameters have shapes and no values, and take no memory."""

from __future__ import annotations

import copy
from typing import Any

from ...errors import GraphError
from .installed import installed


def with_stand_ins(module: Any) -> Any:
    """Return a copy of a module in which parameters of the meta device are NaN, in memory of one element.

    A module without such parameters is returned as it is. Raises GraphError for a buffer of the meta device:
    outputs may depend on its values.
    """
    torch = installed()
    if not isinstance(module, torch.nn.Module) or not any(p.is_meta for p in module.parameters()):
        return module
    for name, buffer in module.named_buffers():
        if buffer.is_meta:
            raise GraphError(
                f"buffer {name!r} is on the meta device and has no values, on which outputs may depend; make "
                "buffers on the processor, and parameters alone on the meta device"
            )
    found = copy.deepcopy(module)
    made: dict[int, Any] = {}
    for each in found.modules():
        for name, parameter in each._parameters.items():
            if parameter is None or not parameter.is_meta:
                continue
            if id(parameter) not in made:
                value = torch.full((), float("nan"), dtype=parameter.dtype).expand(parameter.shape)
                made[id(parameter)] = torch.nn.Parameter(value, parameter.requires_grad)
            each._parameters[name] = made[id(parameter)]
    return found

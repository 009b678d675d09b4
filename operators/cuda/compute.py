"""Compute one box of an operator on a card, by matrix products, convolutions, or a derived kernel.

The choice depends on the description, the kernel attached to it, and the types, never on a
name. There is no way back to the host: a stage without a kernel is an error.
"""

from __future__ import annotations

from typing import Any

from ..emit.kernel import generate
from ..emit.packing import pack
from ..kernels.kernel import KernelCall
from .launch.commands import Command, KernelLaunch
from .launch.launch import launches
from .launch.workspace import DeviceWorkspace
from .vendor import convolutions, products


def compute(
    call: KernelCall,
    workspace: DeviceWorkspace,
    scratch_bytes: convolutions.Need,
    *,
    finite: bool = False,
) -> tuple[Command, ...]:
    """Return the commands that compute a call's box; its arrays are DeviceViews.

    `scratch_bytes` is what the vendor's library asks for. With `finite` a result that is infinite or no
    number sets a flag of the workspace. Raises OperatorError if the description has no kernel: it calls an
    opaque function.
    """
    if not any(output.size for output in call.outputs):
        return ()
    if finite:
        return derived(call, workspace, finite=True)
    if convolutions.supported(call):
        return convolutions.commands(call, workspace, scratch_bytes)
    product = products.product(call)
    if product is not None:
        return products.commands(product, workspace)
    return derived(call, workspace)


def derived(call: KernelCall, workspace: DeviceWorkspace, *, finite: bool = False) -> tuple[Command, ...]:
    """Return the launches of the kernel that is generated from the call's description."""
    inputs: dict[str, Any] = dict(call.inputs)
    outputs: tuple[Any, ...] = call.outputs
    kernel = generate(
        call.bound.description,
        {name: view.type for name, view in inputs.items()},
        [view.type for view in outputs],
        finite=finite,
    )
    faults = kernel.parameters.faults
    struct = pack(kernel, call, workspace.flags(faults) if faults else 0)
    return tuple(
        KernelLaunch(kernel.source, each.function, each.blocks, each.threads, each.together, struct)
        for each in launches(kernel, call)
    )

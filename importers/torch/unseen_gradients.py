"""Changes of gradients that an exported program does not have: modules that make them are refused.

Gradients are derived from a program. It has no hooks of gradients, and no inference mode. It has changes in
place, also those that gradients do not see: within `torch.no_grad`, through a detached tensor of the same
memory, and by `detach_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from ...errors import GraphError
from .installed import installed

NO_HOOKS = "a graph does not call it, so remove it, or compute what it does in forward"
"""The reason to refuse a hook, and the way around it."""


def require_no_hooks(module: Any) -> None:
    """Raise GraphError if gradients of a parameter or of a submodule go through a hook."""
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            place = f"submodule {name!r}" if name else "module"
            raise GraphError(f"the {place} has a hook of its gradients; {NO_HOOKS}")
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            raise GraphError(f"the parameter {name!r} has a hook of its gradient; {NO_HOOKS}")


@contextmanager
def unseen_refused() -> Iterator[None]:
    """Raise GraphError if a module enters the inference mode meanwhile, or registers a hook of a gradient."""
    torch = installed()
    mode, tensor = torch.inference_mode, torch.Tensor
    enter, register = mode.__enter__, tensor.register_hook

    def entered(self: Any) -> None:
        if self.mode:
            raise GraphError("the module enters torch.inference_mode, which a graph cannot say; use no_grad")
        enter(self)

    def registered(self: Any, hook: Any) -> None:
        raise GraphError(f"the module registers a hook of a gradient; {NO_HOOKS}")

    mode.__enter__, tensor.register_hook = entered, registered
    try:
        yield
    finally:
        mode.__enter__, tensor.register_hook = enter, register


def require_seen_changes(program: Any) -> None:
    """Raise GraphError if a program changes a tensor that gradients reach, and they do not see the change."""
    signature = program.graph_signature
    trained = {spec.arg.name for spec in signature.input_specs if spec.kind.name == "PARAMETER"}
    _require_seen(program.graph_module, trained, in_gradients=True)


def _require_seen(graph_module: Any, given: Set[str] | None, in_gradients: bool) -> None:
    """Look at the calls of a graph and of the graphs inside.

    Gradients reach the inputs that are `given`, all of them if it is None. Unless `in_gradients`, they reach
    no result, and see no change.
    """
    reached: set[Any] = set()
    inside: dict[Any, tuple[Set[str] | None, bool]] = {}
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            if given is None or node.name in given:
                reached.add(node)
            continue
        if in_gradients and _passes_gradients_on(node) and not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
        for changed in _changed(node):
            if _unseen(changed, reached, in_gradients and "detach_" not in str(node.target)):
                raise GraphError(
                    f"the module calls {node.target} on a tensor that gradients flow through, but without "
                    "gradients (torch.no_grad, detach or .data), so its gradient is that before the change. "
                    "A graph cannot say that; compute a new tensor, such as "
                    "x + (x.clamp(min=0) - x).detach(), and change parameters between steps"
                )
        if leaves_gradients_out(node):
            nested = getattr(graph_module, node.args[1].target)
            inner = [each.name for each in nested.graph.nodes if each.op == "placeholder"]
            inside[nested] = (
                {name for name, each in zip(inner, node.args[2:], strict=True) if _unseen(each, reached)},
                False,
            )
    for child in graph_module.children():
        if hasattr(child, "graph"):
            _require_seen(child, *inside.get(child, (None, in_gradients)))


def leaves_gradients_out(node: Any) -> bool:
    """Tell whether a node calls the code of a `with torch.no_grad()`."""
    return node.op == "call_function" and "set_grad_enabled" in str(node.target) and not node.args[0]


def _passes_gradients_on(node: Any) -> bool:
    """Tell whether gradients flow from the result of a node to what it is computed from."""
    value = node.meta.get("val")
    discrete = hasattr(value, "dtype") and not (value.dtype.is_floating_point or value.dtype.is_complex)
    return not (discrete or leaves_gradients_out(node) or _is_detached(node))


def _changed(node: Any) -> Iterator[Any]:
    """Yield the arguments of a call that it changes in place."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return
    for place, argument in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if given is not None and argument.alias_info is not None and argument.alias_info.is_write:
            yield from given if isinstance(given, list | tuple) else (given,)


def _unseen(value: Any, reached: Set[Any], in_gradients: bool = False) -> bool:
    """Tell whether gradients reach the memory of a value, and would not see that it changes.

    Memory that is used only through a detached tensor has no gradient that could differ.
    """
    flows, detached, elsewhere = value in reached, False, False
    while _is_view(value):
        detached = detached or _is_detached(value)
        value = value.args[0]
        flows = flows or value in reached
        elsewhere = elsewhere or (detached and len(value.users) > 1)
    return flows and (elsewhere if detached else not in_gradients)


def _is_detached(node: Any) -> bool:
    return node.op == "call_function" and "detach" in str(node.target)


def _is_view(node: Any) -> bool:
    """Tell whether a node shares memory with its first argument."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return False
    returned = node.target._schema.returns
    return bool(returned) and returned[0].alias_info is not None

"""Nodes of an exported program, and the values in their arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def first_names(module: Any) -> dict[str, str]:
    """Return for each name of a parameter or buffer the first name of the same tensor."""
    first: dict[int, str] = {}
    found = {}
    named = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    for name, tensor in named:
        found[name] = first.setdefault(id(tensor), name)
    return found


def path_of(node: Any) -> str:
    """Return the name of the innermost module that made a call."""
    stack = node.meta.get("nn_module_stack") or {}
    path: str = list(stack.values())[-1][0] if stack else ""
    return path.removeprefix("L['self']").lstrip(".").replace("@", "_")


def is_call(node: Any) -> bool:
    """Tell whether a node is a call of an operator on tensors."""
    return node.op == "call_function" and hasattr(node.target, "_schema") and bool(node.all_input_nodes)


def is_running_statistic(node: Any) -> bool:
    """Tell whether a node is what batch normalisation makes of its running mean or variance."""
    if getattr(node.target, "__name__", "") != "getitem":
        return False
    return "batch_norm" in str(getattr(node.args[0], "target", "")) and node.args[1] >= 3


def misuse_of_statistics(node: Any, needed: Set[Any], outputs: Collection[str]) -> str | None:
    """Return what cannot be described about running statistics that a call of batch normalisation left; None
    if they only become those of the next call, or what the program's graph leaves.

    `needed` are the nodes that the outputs for users, `outputs`, depend on.
    """
    others = [
        user
        for user in node.users
        if user.op != "output" and not str(user.target).endswith("functional.default")
    ]
    if others or node.name in outputs:
        return "running statistics that are read after a call in training"
    results = [user for user in node.args[0].users if user.args[1] == 0]
    if needed.isdisjoint(results):
        return "running statistics of a call in training whose result is not used"
    return None


def needed_for(nodes: Sequence[Any], wanted: Sequence[str] | None) -> set[Any]:
    """Return the nodes that the wanted outputs depend on, all outputs by default."""
    names = {"output"} if wanted is None else set(wanted)
    needed: set[Any] = set()
    for node in reversed(nodes):
        if node.name in names or node in needed:
            needed.add(node)
            needed.update(node.all_input_nodes)
    return needed


def attribute_of(graph_module: Any, target: str) -> Any:
    value = graph_module
    for part in target.split("."):
        value = getattr(value, part)
    return value


def flattened(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists, tuples and mappings."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            pending.extend(each.values())
        elif isinstance(each, tuple | list):
            pending.extend(each)
        else:
            yield each

"""A module as a program of ATen operators: exported, functional, decomposed no further than the table needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import GraphError
from .installed import installed

ROUNDS = 8
"""Decompositions may need each other; no operator takes more rounds."""


def exported(module: Any, inputs: Any, known: Callable[[str], bool]) -> Any:
    """Return the exported program of a module. Operators that are not `known` are decomposed by PyTorch.

    Raises GraphError if PyTorch cannot export the module.
    """
    torch = installed()
    if not isinstance(module, torch.nn.Module):
        raise GraphError(f"expected a torch.nn.Module, found a {type(module).__name__}")
    args, kwargs = _arguments(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(module, args, kwargs)
        except Exception as error:  # PyTorch raises errors of many kinds
            raise GraphError(
                f"torch.export cannot read {type(module).__name__}: {_first_lines(error)}\n"
                "Shapes and branches must not depend on data; torch.export.export shows the whole message"
            ) from error
        program = program.run_decompositions({})
        table = torch.export.default_decompositions()
        for _ in range(ROUNDS):
            chosen = {
                target: table[target]
                for target in dict.fromkeys(call.target for call in calls(program.graph_module))
                if not known(name_of(target)) and target in table
            }
            if not chosen:
                break
            program = program.run_decompositions(chosen)
    return program


def calls(graph_module: Any) -> Iterator[Any]:
    """Yield the calls of ATen operators, those in nested graphs included."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and hasattr(node.target, "_schema"):
            yield node
    for child in graph_module.children():
        if hasattr(child, "graph"):
            yield from calls(child)


def name_of(target: Any) -> str:
    """Return an operator's name with its overload: `aten.add.Tensor`."""
    return str(target)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments of the module."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__

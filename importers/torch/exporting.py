"""A module as a program of ATen operators: functional, and decomposed only as far as the table needs."""

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
        hint = "; give program.module()" if isinstance(module, torch.export.ExportedProgram) else ""
        raise GraphError(f"expected a torch.nn.Module, found a value of {type(module).__name__}{hint}")
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
        _detach_code_without_gradients(program.graph_module)
        if any(_changes_in_place(call.target) for call in every_call(program.graph_module)):
            program = program.run_decompositions({})
        table = torch.export.default_decompositions()
        for _ in range(ROUNDS):
            chosen = {
                target: table[target]
                for target in dict.fromkeys(call.target for call in changing_calls(program))
                if not known(str(target)) and target in table
            }
            if not chosen:
                break
            program = program.run_decompositions(chosen)
    return program


def _detach_code_without_gradients(graph_module: Any) -> None:
    """Detach the results of `with torch.no_grad()`, which decompositions merge into the code around it."""
    torch = installed()
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or "set_grad_enabled" not in str(node.target) or node.args[0]:
            continue
        nested = getattr(graph_module, node.args[1].target)
        (output,) = (each for each in nested.graph.nodes if each.op == "output")
        results = []
        with nested.graph.inserting_before(output):
            for result in output.args[0]:
                detached = nested.graph.call_function(torch.ops.aten.detach.default, (result,))
                detached.meta = dict(result.meta)
                results.append(detached)
        output.args = (tuple(results),)
        nested.recompile()
    for child in graph_module.children():
        if hasattr(child, "graph"):
            _detach_code_without_gradients(child)


def every_call(graph_module: Any) -> Iterator[Any]:
    """Yield the calls of operators, those in nested graphs included."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and hasattr(node.target, "_schema"):
            yield node
    for child in graph_module.children():
        if hasattr(child, "graph"):
            yield from every_call(child)


def changing_calls(program: Any) -> Iterator[Any]:
    """Yield the calls of operators that depend on inputs or parameters; all of them in nested graphs."""
    graph_module = program.graph_module
    changing = changing_inputs(program.graph_signature)
    for node in graph_module.graph.nodes:
        if node.op == "placeholder" or not any(each.name in changing for each in node.all_input_nodes):
            continue
        changing.add(node.name)
        if node.op == "call_function" and hasattr(node.target, "_schema"):
            yield node
    for child in graph_module.children():
        if hasattr(child, "graph"):
            yield from every_call(child)


def changing_inputs(signature: Any) -> set[str]:
    """Return the names of inputs that are fed, trained or overwritten, and so are not constants."""
    overwritten = set(signature.buffers_to_mutate.values())
    return {
        spec.arg.name
        for spec in signature.input_specs
        if spec.kind.name in ("USER_INPUT", "PARAMETER") or spec.target in overwritten
    }


def _changes_in_place(target: Any) -> bool:
    """Tell whether an operator overwrites one of its arguments, as batch normalisation does in training."""
    return target._schema.is_mutable or "batch_norm" in target._schema.name


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

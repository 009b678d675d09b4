"""A module as a program of ATen operators: functional, and decomposed only as far as the table needs."""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from typing import Any

from ...errors import GraphError
from .installed import installed
from .own_backward import require_derived, watched
from .unseen_gradients import leaves_gradients_out, require_no_hooks, require_seen_changes, unseen_refused

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
    require_no_hooks(module)
    args, kwargs = _arguments(inputs)
    own: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _readable(module), watched(lambda cls, _: own.append(cls.__name__)):
            program = torch.export.export(module, args, kwargs)
        if own and not any(parameter.is_meta for parameter in module.parameters()):
            require_derived(module, args, kwargs)
        with _readable(module):
            return _decomposed(program, known)


def _decomposed(program: Any, known: Callable[[str], bool]) -> Any:
    """Return a program whose operators are known, as far as PyTorch can decompose others."""
    torch = installed()
    require_seen_changes(program)
    _detach_code_without_gradients(program.graph_module)
    _fill_views_of_diagonals(program.graph_module)
    if any(_changes_in_place(call.target) for call in every_call(program.graph_module)):
        program = program.run_decompositions({})
    table = torch.export.default_decompositions()
    for _ in range(ROUNDS):
        chosen = {}
        for target in dict.fromkeys(each.target for each in changing_calls(program)):
            if known(str(target)):
                continue
            if target in table:
                chosen[target] = table[target]
            elif target._can_decompose():
                chosen[target] = target.decompose
        if not chosen:
            break
        program = program.run_decompositions(chosen)
    return program


@contextmanager
def _readable(module: Any) -> Iterator[None]:
    """Raise GraphError for errors of PyTorch, which are of many kinds, with the line that led to them. What
    PyTorch logs, and prints when it fails, is left out.
    """
    printed = io.StringIO()
    try:
        with redirect_stderr(printed), _without_logs(), _without_values(), unseen_refused():
            yield
        sys.stderr.write(printed.getvalue())
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(
            f"torch.export cannot read {type(module).__name__}: {_first_lines(error)}{_line_of(error)}\n"
            "Shapes and branches must not depend on data; torch.export.export shows the whole message"
        ) from error


@contextmanager
def _without_values() -> Iterator[None]:
    """Keep PyTorch's own modules from looking at values, which a graph does not have. Distributions do not
    look at their arguments. Transformers do not look whether a mask is causal, and apply it as any other.
    """
    distribution = importlib.import_module("torch.distributions").Distribution
    transformer: Any = importlib.import_module("torch.nn.modules.transformer")
    checks, detect = distribution._validate_args, transformer._detect_is_causal_mask
    distribution.set_default_validate_args(False)
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    try:
        yield
    finally:
        distribution.set_default_validate_args(checks)
        transformer._detect_is_causal_mask = detect


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keep PyTorch from logging."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    handlers = [handler for name in names for handler in logging.getLogger(name).handlers]
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def _nothing(record: logging.LogRecord) -> bool:
    return False


def _line_of(error: Exception) -> str:
    """Return the last line outside of PyTorch that was running."""
    inside = os.path.dirname(installed().__file__)
    frames = traceback.extract_tb(error.__traceback__)
    outside = [each for each in frames if not each.filename.startswith((inside, os.path.dirname(__file__)))]
    if not outside:
        return ""
    frame = outside[-1]
    return f"\nat {frame.filename}, line {frame.lineno}: {frame.line}"


def _detach_code_without_gradients(graph_module: Any) -> None:
    """Detach the results of `with torch.no_grad()`, which decompositions merge into the code around it."""
    torch = installed()
    for node in graph_module.graph.nodes:
        if not leaves_gradients_out(node):
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


def _fill_views_of_diagonals(graph_module: Any) -> None:
    """Fill the diagonals of matrices by views, which are descriptions, and not by strides in memory."""
    aten = installed().ops.aten
    for call in every_call(graph_module):
        if call.target is not aten.fill_diagonal_.default or call.args[0].meta["val"].dim() != 2:
            continue
        matrix = call.args[0]
        rows, columns = matrix.meta["val"].shape
        if call.args[2:] == (True,) and rows > columns:
            continue
        with call.graph.inserting_before(call):
            view = call.graph.call_function(aten.diagonal.default, (matrix,))
            filled = call.graph.call_function(aten.fill_.Scalar, (view, call.args[1]))
        view.meta, filled.meta = ({**call.meta, "val": matrix.meta["val"].diagonal()} for _ in range(2))
        call.replace_all_uses_with(matrix)
        call.graph.erase_node(call)
    graph_module.recompile()


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
    """Return positional and keyword arguments of the module, each of them a tensor of its own."""
    inputs = _each_once(inputs)
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


def _each_once(inputs: Any) -> Any:
    """Copy a tensor that is given again. `torch.export` makes one input of the same tensor."""
    torch = installed()
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        again = id(value) in seen
        seen.add(id(value))
        return value.clone() if again else value

    return torch.utils._pytree.tree_map(own, inputs)


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__

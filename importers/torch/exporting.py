"""A module as a program of ATen operators: functional, and decomposed only as far as the table needs."""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, redirect_stderr
from typing import Any

from ...errors import GraphError
from .installed import installed
from .own_backward import require_derived, watched

ROUNDS = 8
"""Decompositions may need each other; no operator takes more rounds."""

NO_HOOKS = "a graph does not call it, so remove it, or compute what it does in forward"
"""The reason to refuse a hook, and the way around it."""


def exported(module: Any, inputs: Any, known: Callable[[str], bool]) -> Any:
    """Return the exported program of a module. Operators that are not `known` are decomposed by PyTorch.

    Raises GraphError if PyTorch cannot export the module.
    """
    torch = installed()
    if not isinstance(module, torch.nn.Module):
        hint = "; give program.module()" if isinstance(module, torch.export.ExportedProgram) else ""
        raise GraphError(f"expected a torch.nn.Module, found a value of {type(module).__name__}{hint}")
    _require_no_hooks(module)
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
    _detach_code_without_gradients(program.graph_module, set(program.graph_signature.inputs_to_parameters))
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

    Distributions do not look at their arguments meanwhile: a graph has no values.
    """
    distribution = importlib.import_module("torch.distributions").Distribution
    checks = distribution._validate_args
    distribution.set_default_validate_args(False)
    printed = io.StringIO()
    try:
        with redirect_stderr(printed), _without_logs(), _without_what_is_not_shown():
            yield
        sys.stderr.write(printed.getvalue())
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(
            f"torch.export cannot read {type(module).__name__}: {_first_lines(error)}{_line_of(error)}\n"
            "Shapes and branches must not depend on data; torch.export.export shows the whole message"
        ) from error
    finally:
        distribution.set_default_validate_args(checks)


@contextmanager
def _without_what_is_not_shown() -> Iterator[None]:
    """Raise GraphError if the module enters the inference mode, or registers a hook of a gradient."""
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


def _require_no_hooks(module: Any) -> None:
    """Raise GraphError if gradients of a parameter or of a submodule go through a hook."""
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            place = f"submodule {name!r}" if name else "module"
            raise GraphError(f"the {place} has a hook of its gradients; {NO_HOOKS}")
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            raise GraphError(f"the parameter {name!r} has a hook of its gradient; {NO_HOOKS}")


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


def _detach_code_without_gradients(graph_module: Any, learning: Set[str] | None) -> None:
    """Detach the results of `with torch.no_grad()`, which decompositions merge into the code around it.

    `learning` are the placeholders that gradients reach; None stands for all of them.
    Raises GraphError if a tensor that gradients flow through is changed without them.
    """
    torch = installed()
    reached: set[Any] = set()
    learning_inside: dict[Any, set[str]] = {}
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            if learning is None or node.name in learning:
                reached.add(node)
        elif not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
        _require_flow(node, reached)
        if node.op != "call_function" or "set_grad_enabled" not in str(node.target) or node.args[0]:
            continue
        nested = getattr(graph_module, node.args[1].target)
        given = [each for each in nested.graph.nodes if each.op == "placeholder"]
        kept = {inner for inner, outer in zip(given, node.args[2:], strict=True) if outer in reached}
        learning_inside[nested] = {inner.name for inner in kept}
        for inner in nested.graph.nodes:
            _require_flow(inner, kept, gradients=False)
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
            _detach_code_without_gradients(child, learning_inside.get(child))


def _require_flow(node: Any, reached: Set[Any], gradients: bool = True) -> None:
    """Raise GraphError if a call changes a tensor that gradients reach, and they do not see the change.

    That is so without `gradients`, and for tensors that were detached but share memory with one that is used.
    """
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return
    for place, argument in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if given is None or argument.alias_info is None or not argument.alias_info.is_write:
            continue
        for value in given if isinstance(given, list | tuple) else (given,):
            if _is_hidden(node, value, reached, gradients) and value.meta["val"].is_floating_point():
                raise GraphError(
                    f"the module calls {node.target} on a tensor that gradients flow through, but without "
                    "gradients (torch.no_grad, detach or .data), so its gradient is that before the change. "
                    "A graph cannot say that; compute a new tensor, such as "
                    "x + (x.clamp(min=0) - x).detach(), and change parameters between steps"
                )


def _is_hidden(node: Any, value: Any, reached: Set[Any], gradients: bool) -> bool:
    """Tell whether gradients reach a value that a call changes, or what it is a view of, but not the change.

    A tensor that is used only through a detached view has no gradient that could differ.
    """
    hidden = not gradients or "detach_" in str(node.target)
    whole, detached = value, False
    while _is_view(whole):
        detached = detached or "detach" in str(whole.target)
        whole = whole.args[0]
        hidden = hidden or (detached and len(whole.users) > 1)
    return hidden and whole in reached


def _is_view(node: Any) -> bool:
    """Tell whether a node shares memory with its first argument."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return False
    returned = node.target._schema.returns
    return bool(returned) and returned[0].alias_info is not None


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

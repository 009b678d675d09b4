"""The functions of a kernel for a processor: a nest of loops over the elements of a group of outputs.

Every index variable has a loop. What depends on the outer ones alone is read and reduced outside the others.
Iterations of the innermost loop are independent of each other. A long reduction has partial results in
*lanes*: term `i` of its innermost loop goes to lane `i % LANES`, and the lanes are combined at the end. So
the source states the order of a sum, which is the same with any vector instructions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ...tdl import ast
from .entry_functions import EntryFunction, output_groups, store
from .kernel import header, namespace_text
from .parameters import INSTANCE, ParameterStruct
from .reducers import reduced_kind, reducer_name
from .statements import (
    Body,
    CppBlock,
    Looper,
    ReductionLoop,
    declaration,
    indented,
    serial,
)
from .values import CppValue, bare

LANES = 32
"""The number of partial results of a long reduction: two vectors of AVX-512, four of AVX2."""


@dataclass(frozen=True, slots=True)
class LayoutClass:
    """Properties of arrays and boxes for which a function is written."""

    neighbours: tuple[str, ...]
    """The members of the struct that are strides of one element, as `in_data.stride[1]`."""

    long: frozenset[str]
    """The index variables with at least as many values as there are lanes."""


@dataclass(frozen=True, slots=True)
class LoopSource:
    """A translation unit for a processor. Each function takes the address of the struct."""

    text: str
    """The text in C++, which needs no header."""

    functions: tuple[str, ...]
    """The name of the function of each group of outputs, in the order in which they run."""


def loop_source(parameters: ParameterStruct, layout: LayoutClass) -> LoopSource:
    """Return the source that computes a description on a processor."""
    name = f"tofu_{parameters.operator}"
    entries = [
        EntryFunction(f"{name}_{group}_loops", numbers, variables, variables)
        for group, (variables, numbers) in enumerate(output_groups(parameters.description))
    ]
    functions = ["\n".join(_function(parameters, entry, layout)) for entry in entries]
    headers = map(header, ("processor.h", "vector_math.h", "prelude.h"))
    text = "\n".join([*headers, namespace_text(parameters, name, functions)])
    return LoopSource(text, tuple(entry.name for entry in entries))


def _function(parameters: ParameterStruct, entry: EntryFunction, layout: LayoutClass) -> list[str]:
    body = Body(parameters, (), _looper(layout.long))
    body.scopes += [CppBlock(frozenset((name,))) for name in entry.variables]
    store(body, entry)
    first, *scopes = body.scopes
    lines: list[str] = []
    for name, scope in zip(reversed(entry.variables), reversed(scopes), strict=True):
        independent = ["TOFU_INDEPENDENT"] if name == entry.variables[-1] else []
        lines = [*independent, *_loop(parameters, name, scope.lines + lines)]
    return [
        f'extern "C" TOFU_EXPORTED void {entry.name}(const Parameters* given) {{',
        *indented(
            [
                "using Index = long long;",
                f"Parameters {INSTANCE} = *given;",
                *(f"{INSTANCE}.{member} = 1;" for member in layout.neighbours),
                *first.lines,
                *lines,
            ]
        ),
        "}",
    ]


def _loop(parameters: ParameterStruct, name: str, lines: Iterable[str]) -> list[str]:
    variable = parameters.variable(name)
    lower, upper = parameters.lower(name), parameters.upper(name)
    return [
        f"for (Index {variable} = {lower}; {variable} < {upper}; ++{variable}) {{",
        *indented(list(lines)),
        "}",
    ]


def _looper(long: Collection[str]) -> Looper:
    """Return what writes a reduction that is inside no other."""

    def write(body: Body, node: ast.ReducerCall) -> ReductionLoop:
        if isinstance(node.reducer, ast.CustomReducer) or node.variables[-1].name not in long:
            return serial(body, node)
        return _in_lanes(body, node)

    return write


def _in_lanes(body: Body, node: ast.ReducerCall) -> ReductionLoop:
    """Return a reduction whose innermost loop has a partial result for each lane."""
    parameters, depth = body.parameters, len(body.scopes)
    body.scopes += [CppBlock(frozenset((binder.name,)), loop=True) for binder in node.variables]
    value = body.value(node.body)
    scopes, body.scopes = body.scopes[depth:], body.scopes[:depth]
    total = CppValue(body.fresh("r"), reduced_kind(node.reducer, value))
    partial, reducer, last = body.fresh("lanes"), reducer_name(node.reducer), node.variables[-1].name
    term = [*scopes[-1].lines, f"return {bare(value.number(total.kind))};"]
    lines = [
        f"tofu::add_to_lanes<{reducer}>({partial}, {parameters.lower(last)}, {parameters.upper(last)},",
        f"    [&](Index {parameters.variable(last)}) TOFU_INLINED -> {total.kind.value} {{",
        *indented(indented(term)),
        "    });",
    ]
    for binder, scope in zip(reversed(node.variables[:-1]), reversed(scopes[:-1]), strict=True):
        lines = _loop(parameters, binder.name, scope.lines + lines)
    lines = [
        f"{total.kind.value} {partial}[{LANES}];",
        f"for (auto& lane : {partial}) lane = {total.text};",
        *lines,
        f"{total.text} = tofu::combine_lanes<{reducer}>({partial});",
    ]
    return ReductionLoop(declaration(body, node, total), ["{", *indented(lines), "}"], total)

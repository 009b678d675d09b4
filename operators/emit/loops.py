"""The functions of a kernel for a processor: a nest of loops over the elements of a group of outputs.

Every index variable has a loop. Terms that depend on the outer ones alone are read and reduced outside the
others. Iterations of the innermost loop are independent of each other. A long reduction has partial results
in *lanes*: term `i` of its innermost loop goes to lane `i % LANES`, and the lanes are combined at the end. A
reduction *across* memory, such as the sum of each column, adds whole rows to the results of a block of
columns. So the source states the order of a sum, which is the same with any vector instructions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...tdl import ast
from .entry_functions import EntryFunction, output_groups, store
from .kernel import header, namespace_text
from .parameters import INSTANCE, ParameterStruct
from .reducers import neutral, reduced_kind, reducer_name
from .statements import (
    Body,
    CppBlock,
    Looper,
    ReductionLoop,
    accumulation,
    declaration,
    free_variables,
    indented,
    serial,
)
from .values import CppValue, bare

LANES = 32
"""The number of partial results of a long reduction: two vectors of AVX-512, four of AVX2."""

COLUMNS = 256
"""The most elements of the innermost index variable that a reduction across memory computes at once."""


@dataclass(frozen=True, slots=True)
class LayoutClass:
    """Properties of arrays and boxes for which a function is written."""

    neighbours: tuple[str, ...]
    """The members of the struct that are strides of one element, as `in_data.stride[1]`."""

    long: frozenset[str]
    """The index variables with at least as many values as there are lanes."""

    across: frozenset[str] = frozenset()
    """The innermost variables of reductions across memory. Neighbours of what they read are neighbours in the
    outputs."""


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
    body = Body(parameters, (), _looper(entry, layout))
    body.scopes += [CppBlock(frozenset((name,))) for name in entry.variables]
    if layout.across:
        body.scopes.insert(-1, CppBlock(frozenset()))
    store(body, entry)
    first, *scopes = body.scopes
    names, lines = list(entry.variables), list[str]()
    if layout.across:
        *scopes, block, innermost = scopes
        lines = _blocks(parameters, names.pop(), block.lines, innermost.lines)
    for name, scope in zip(reversed(names), reversed(scopes), strict=True):
        independent = ["TOFU_INDEPENDENT"] if not lines else []
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


def _blocks(parameters: ParameterStruct, name: str, block: list[str], innermost: list[str]) -> list[str]:
    """Return the innermost loop in blocks, with lines before each block."""
    upper = parameters.upper(name)
    return [
        f"for (Index first = {parameters.lower(name)}; first < {upper}; first += {COLUMNS}) {{",
        *indented(
            [
                f"const Index end = {upper} - first < {COLUMNS} ? {upper} : first + {COLUMNS};",
                *block,
                *_in_block(parameters, name, innermost),
            ]
        ),
        "}",
    ]


def _in_block(parameters: ParameterStruct, name: str, lines: list[str]) -> list[str]:
    variable = parameters.variable(name)
    head = f"for (Index {variable} = first; {variable} < end; ++{variable}) {{"
    return ["TOFU_INDEPENDENT", head, *indented(lines), "}"]


def _looper(entry: EntryFunction, layout: LayoutClass) -> Looper:
    """Return what writes a reduction that is inside no other."""

    def write(body: Body, node: ast.ReducerCall) -> ReductionLoop:
        last = node.variables[-1].name
        if last in layout.across and entry.variables[-1] in free_variables(node):
            return _across(body, node, entry.variables[-1])
        if isinstance(node.reducer, ast.CustomReducer) or last not in layout.long:
            return serial(body, node)
        return _in_lanes(body, node)

    return write


def _across(body: Body, node: ast.ReducerCall, column: str) -> ReductionLoop:
    """Return a reduction that is computed for a block of columns, row after row, before the block's loop."""
    parameters, saved = body.parameters, body.scopes
    *outer, block, _ = saved
    rows = [CppBlock(frozenset((binder.name,)), loop=True) for binder in node.variables]
    inside = CppBlock(frozenset((column,)))
    body.scopes = [*outer, block, *rows, inside]
    value = body.value(node.body)
    body.scopes = saved
    results, total = body.fresh("columns"), CppValue(body.fresh("r"), reduced_kind(node.reducer, value))
    place = f"{results}[{parameters.variable(column)} - first]"
    lines = _in_block(
        parameters, column, [*inside.lines, accumulation(node, CppValue(place, total.kind), value)]
    )
    for binder, scope in zip(reversed(node.variables), reversed(rows), strict=True):
        lines = _loop(parameters, binder.name, scope.lines + lines)
    start = neutral(parameters.operator, node.reducer, total.kind, parameters.real)
    block.lines += [
        f"{total.kind.value} {results}[{COLUMNS}];",
        f"for (auto& column : {results}) column = {start};",
        *lines,
    ]
    return ReductionLoop(f"const {total.kind.value} {total.text} = {place};", [], total)


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

"""The functions of a kernel: one thread for each output element, or one block for each reduction.

Outputs over the same index variables are computed together, all of their values before any is stored, so
they may be stored over inputs that are read element by element. Another group of outputs is another entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...tdl import ast
from ...tdl.traverse import Node, children
from .parameters import INSTANCE, ParameterStruct
from .reducers import reduced_kind, reducer_name
from .statements import Body, CppBlock, ReductionLoop, accumulation, declaration, free_variables, indented
from .values import CppValue, bare

BLOCK_THREADS = 256
"""The most threads of a block, a power of two."""


@dataclass(frozen=True, slots=True)
class EntryFunction:
    """One way to compute a group of outputs.

    If there are cooperative reductions, a block shares the `outer` variables, reduces together, and spreads
    the others over its threads. Otherwise every element has a thread.
    """

    name: str
    """The name of the entry, from which its functions are named."""

    outputs: tuple[int, ...]
    """The numbers of the outputs that it computes."""

    variables: tuple[str, ...]
    """Their index variables, in order."""

    outer: tuple[str, ...]
    """The variables whose values are fixed for a block; all of them without cooperative reductions."""

    cooperative: tuple[tuple[str, ...], ...] = ()
    """For each cooperative reduction, its index variables."""

    @property
    def inner(self) -> tuple[str, ...]:
        return tuple(name for name in self.variables if name not in self.outer)

    def function(self, narrow: bool) -> str:
        """Return the name to launch: with 32-bit or with 64-bit index arithmetic."""
        return f"{self.name}_{'i32' if narrow else 'i64'}"


def entries(parameters: ParameterStruct, name: str) -> tuple[tuple[EntryFunction, ...], ...]:
    """Return, for each group of outputs, the entries to choose from, the one by threads first."""
    return tuple(
        tuple(_choices(parameters, f"{name}_{group}", numbers, variables))
        for group, (variables, numbers) in enumerate(output_groups(parameters.description))
    )


def output_groups(description: ast.Description) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Return the index variables of each group of outputs, and the numbers of these."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, output in enumerate(description.outputs):
        groups.setdefault(tuple(binder.name for binder in output.variables), []).append(number)
    return [(variables, tuple(numbers)) for variables, numbers in groups.items()]


def _choices(
    parameters: ParameterStruct, name: str, numbers: tuple[int, ...], variables: tuple[str, ...]
) -> Iterator[EntryFunction]:
    threads = EntryFunction(f"{name}_threads", numbers, variables, variables)
    yield threads
    bodies = [parameters.description.outputs[number].body for number in numbers]
    reductions = [node for body in bodies for node in outermost_reductions(body)]
    if reductions:
        used = frozenset[str]().union(*(free_variables(node) for node in reductions))
        yield replace(
            threads,
            name=f"{name}_blocks",
            outer=tuple(variable for variable in variables if variable in used),
            cooperative=tuple(tuple(binder.name for binder in node.variables) for node in reductions),
        )


def outermost_reductions(body: ast.Expression) -> Iterator[ast.ReducerCall]:
    """Yield reductions that are not inside another."""
    pending: list[Node] = [body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ReducerCall):
            yield node
        else:
            pending.extend(reversed(children(node)))


def entry_text(parameters: ParameterStruct, entry: EntryFunction) -> str:
    """Return the entry's template and its two instances."""
    lines = _by_blocks(parameters, entry) if entry.cooperative else _by_threads(parameters, entry)
    text = ["template <typename Index>"]
    text += [f"TOFU_DEVICE void {entry.name}(const Parameters& {INSTANCE}) {{", *indented(lines), "}"]
    return "\n".join([*text, *instances(entry.function, f"{entry.name}<Index>({INSTANCE});")])


def instances(name: Callable[[bool], str], body: str) -> list[str]:
    """Write the functions to launch, `name(narrow)`: the statement with a 32-bit and a 64-bit `Index`."""
    text = []
    for narrow, index in ((True, "int"), (False, "long long")):
        head = f'extern "C" __global__ void __launch_bounds__(tofu::block_threads)\n{name(narrow)}'
        text.append(f"{head}(const __grid_constant__ Parameters {INSTANCE}) {{")
        text += [f"    {body.replace('<Index', f'<{index}', 1)}", "}"]
    return text


def _by_threads(parameters: ParameterStruct, entry: EntryFunction) -> list[str]:
    body = Body(parameters, entry.variables)
    if entry.variables:
        body.add("Index at = Index(blockIdx.x) * Index(blockDim.x) + Index(threadIdx.x);")
        body.add(f"if (at >= {_count(parameters, entry.variables)}) return;")
        _take_apart(body, entry.variables)
    else:
        body.add("if (blockIdx.x > 0 || threadIdx.x > 0) return;")
    store(body, entry)
    return body.scopes[0].lines


def _by_blocks(parameters: ParameterStruct, entry: EntryFunction) -> list[str]:
    body = Body(parameters, entry.outer, cooperative)
    if entry.outer:
        body.add("Index at = Index(blockIdx.x);")
        _take_apart(body, entry.outer)
    inner = CppBlock(frozenset(entry.inner))
    body.scopes.append(inner)
    head = "if (threadIdx.x == 0) {"
    if entry.inner:
        head = _spread(body, entry.inner)
    store(body, entry)
    return [*body.scopes[0].lines, head, *indented(inner.lines), "}"]


def cooperative(body: Body, node: ast.ReducerCall) -> ReductionLoop:
    """Return a reduction by all threads of a block: each a stride of the elements, then combined in fixed
    order.
    """
    names = tuple(binder.name for binder in node.variables)
    depth = len(body.scopes)
    body.scopes.append(CppBlock(frozenset(names), loop=True))
    head = _spread(body, names, free_variables(node.body))
    value = body.value(node.body)
    scope = body.scopes.pop()
    assert len(body.scopes) == depth, "a scope was left open"
    total = CppValue(body.fresh("r"), reduced_kind(node.reducer, value))
    lines = [head, *indented([*scope.lines, accumulation(node, total, value)]), "}"]
    lines.append(f"{total.text} = tofu::combine_block<{reducer_name(node.reducer)}>({total.text});")
    return ReductionLoop(declaration(body, node, total), lines, total)


def _spread(body: Body, names: tuple[str, ...], used: frozenset[str] | None = None) -> str:
    """Return the head of a loop in which the threads of a block share the values of index variables."""
    body.add("Index at = next;")
    _take_apart(body, names, used)
    count = _count(body.parameters, names)
    return f"for (Index next = Index(threadIdx.x); next < {count}; next += Index(blockDim.x)) {{"


def _count(parameters: ParameterStruct, names: tuple[str, ...]) -> str:
    return f"tofu::count<Index>({', '.join(map(parameters.interval, names))})"


def _take_apart(body: Body, names: tuple[str, ...], used: frozenset[str] | None = None) -> None:
    """Index variables from the position `at` among all their values, the last one fastest."""
    parameters = body.parameters
    for position, name in reversed(list(enumerate(names))):
        taken = f"tofu::take(at, {parameters.interval(name)})"
        if used is not None and name not in used:
            body.add(f"{taken};")
        elif position:
            body.add(f"const Index {parameters.variable(name)} = {taken};")
        else:
            body.add(f"const Index {parameters.variable(name)} = {parameters.lower(name)} + at;")


def store(body: Body, entry: EntryFunction) -> None:
    """Write all values of the group, then all stores."""
    parameters = body.parameters
    values = [body.value(parameters.description.outputs[number].body) for number in entry.outputs]
    named = [body.fresh("o") for _ in values]
    for name, value in zip(named, values, strict=True):
        body.add(f"const {value.kind.value} {name} = {bare(value.text)};")
    if parameters.finite:
        body.add(f"if (!tofu::finite({', '.join(named)})) {parameters.infinite} = 1;")
    at = [f"{parameters.variable(name)} - {parameters.lower(name)}" for name in entry.variables]
    for name, number in zip(named, entry.outputs, strict=True):
        body.add(f"{INSTANCE}.out_{number}.set<Index>({', '.join((name, *at))});")

"""Write statements for an expression: elements and reductions become variables, the rest one expression.

A reduction is computed in the outermost place where everything it depends on is known, so an inner one
that does not vary with the outer is computed once. The loops that it leaves may be empty: then nothing
may be read, so it is put under the condition that they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never

from ...errors import OperatorError
from ...tdl import ast
from ...tdl.printer import format_expression
from ...tdl.reducers import combination
from ...tdl.traverse import reads_elements, walk
from .functions import spelling
from .indices import index_text
from .parameters import INSTANCE, Gather, ParameterStruct
from .reducers import neutral, reduced_kind, reducer_name
from .values import CppType, CppValue, bare, common, literal

_ARITHMETIC = {"+": "{} + {}", "-": "{} - {}", "*": "{} * {}"}
_FLOORED = {"//": "tofu::floor_quotient({}, {})", "%": "tofu::floor_remainder({}, {})"}
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_LOGICAL = {"and": "&&", "or": "||"}
LARGEST_POWER = 64
"""Powers of integers from here on are computed as floats."""

Key = tuple[object, ...]


@dataclass(slots=True)
class CppBlock:
    """A block of C++."""

    names: frozenset[str]
    """The index variables that it introduces."""

    loop: bool = False
    """Whether it runs for every value of its index variables, perhaps for none."""

    lines: list[str] = field(default_factory=list)
    """Its statements, one per line."""

    known: dict[Key, CppValue] = field(default_factory=dict)
    """The C++ variables that hold values already computed in it."""


Looper = Callable[["Body", ast.ReducerCall], "ReductionLoop"]


class Body:
    """The statements of one kernel, being written.

    `names` are the index variables of the outermost scope. `cooperate`, if given, writes the reductions
    that are inside no other. `given` are variables that stand for values. `outside` holds the loops that
    the reduction being written has left.
    """

    def __init__(
        self,
        parameters: ParameterStruct,
        names: tuple[str, ...],
        cooperate: Looper | None = None,
        given: Mapping[str, CppValue] = MappingProxyType({}),
    ) -> None:
        self.parameters = parameters
        self.given = given
        self.cooperate = cooperate
        self.scopes = [CppBlock(frozenset(names))]
        self.outside: tuple[str, ...] = ()
        self.count = 0

    def fresh(self, letter: str) -> str:
        """Return a new variable's name."""
        self.count += 1
        return f"{letter}{self.count}"

    def add(self, line: str) -> None:
        """Add a statement at the end of the innermost scope."""
        self.scopes[-1].lines.append(line)

    def value(self, node: ast.Index) -> CppValue:
        """Return the node's value; adds the statements that it takes.

        Raises OperatorError if there is none.
        """
        parameters = self.parameters
        match node:
            case ast.Number(value=number):
                return literal(parameters.operator, number, parameters.real)
            case ast.Variable(name=name) if name in self.given:
                return self.given[name]
            case ast.Variable(name=name):
                return CppValue(f"static_cast<long long>({parameters.variable(name)})", CppType.INTEGER)
            case ast.Extent(tensor=tensor, axis=axis):
                return CppValue(parameters.extent(tensor, axis), CppType.INTEGER)
            case ast.Element():
                return self._known(node, lambda: self._element(node, None))
            case ast.Pad(element=element, value=padding):
                return self._known(node, lambda: self._element(element, padding))
            case ast.Unary(operator="-", operand=operand):
                inner = self.value(operand)
                kind = common((inner,))
                return CppValue(f"(-{inner.number(kind)})", kind)
            case ast.Unary(operand=operand):
                return CppValue(f"(!{self.value(operand).truth})", CppType.TRUTH)
            case ast.Binary():
                return self._binary(node)
            case ast.Call(function="where", arguments=arguments):
                condition, x, y = map(self.value, arguments)
                kind = common((x, y))
                return CppValue(f"({condition.truth} ? {x.number(kind)} : {y.number(kind)})", kind)
            case ast.Call(function=function, arguments=arguments):
                return self._call(function, tuple(map(self.value, arguments)))
            case ast.ReducerCall():
                return self._reduce(node)
            case ast.OpaqueElement(function=function):
                raise OperatorError(
                    f"{parameters.operator}: no kernel can be derived because {function!r} is an opaque "
                    "function; attach a kernel to the operator"
                )
            case ast.Star() | ast.Attribute() | ast.Choice() | ast.FullSlice():
                raise OperatorError(
                    f"{parameters.operator}: {type(node).__name__} found in a description that should be "
                    "specialised; specialise it before deriving a kernel"
                )
            case _:
                assert_never(node)

    def _call(self, function: str, arguments: tuple[CppValue, ...]) -> CppValue:
        entry = spelling(self.parameters.operator, function)
        kind = common(arguments) if entry.integer else CppType.REAL
        text = entry.integer if kind is CppType.INTEGER else entry.real
        return CppValue(
            text.format(*(_argument(text, argument.number(kind)) for argument in arguments)), kind
        )

    def _binary(self, node: ast.Binary) -> CppValue:
        if node.operator == "**":
            return self._power(node)
        left, right = self.value(node.left), self.value(node.right)
        kind = common((left, right))
        a, b = left.number(kind), right.number(kind)
        match node.operator:
            case "/":
                return CppValue(f"({left.real} / {right.real})", CppType.REAL)
            case operator if operator in _ARITHMETIC:
                return CppValue(f"({_ARITHMETIC[operator].format(a, b)})", kind)
            case operator if operator in _FLOORED:
                return CppValue(_FLOORED[operator].format(bare(a), bare(b)), kind)
            case operator if operator in _COMPARISONS:
                return CppValue(f"({a} {operator} {b})", CppType.TRUTH)
            case operator if operator in _LOGICAL:
                return CppValue(f"({left.truth} {_LOGICAL[operator]} {right.truth})", CppType.TRUTH)
            case operator:
                raise OperatorError(
                    f"{self.parameters.operator}: operator {operator!r} is not supported in CUDA; attach a "
                    "kernel to the operator"
                )

    def _power(self, node: ast.Binary) -> CppValue:
        base = self.value(node.left)
        match node.right:
            case ast.Number(value=int(exponent)) if 0 <= exponent < LARGEST_POWER:
                kind = common((base,))
                text = f"tofu::raise({bare(base.number(kind))}, {int(exponent)})"
                return CppValue(text, kind)
            case _:
                return CppValue(f"pow({bare(base.real)}, {bare(self.value(node.right).real)})", CppType.REAL)

    def _element(self, node: ast.Element, padding: ast.Expression | None) -> CppValue:
        """Return a variable that holds the element; guarded if its indices may leave the given region."""
        kind = CppType.INTEGER if dict(self.parameters.inputs)[node.tensor].integer else CppType.REAL
        gathered = [axis for axis, index in enumerate(node.indices) if reads_elements(index)]
        guarded = padding is not None or bool(gathered)
        indices = [self._index(node, axis, name_it=guarded) for axis in range(len(node.indices))]
        name, listed = f"{INSTANCE}.in_{node.tensor}", ", ".join(indices)
        read = CppValue(f"{name}.at<Index>({listed})", kind)
        if not guarded:
            return self._named("e", read)
        held = self.fresh("held")
        self.add(f"const bool {held} = {name}.holds<Index>({listed});")
        if padding is None:
            for axis in gathered:
                fault = self.parameters.fault(Gather(node.tensor, axis, node.indices[axis].span))
                self.add(f"if (!{name}.holds_axis<Index>({axis}, {indices[axis]})) {fault} = 1;")
            other = CppValue("real(tofu::not_a_number())" if kind is CppType.REAL else "0LL", kind)
        else:
            other = self.value(padding)
        result = common((read, other))
        return self._named("e", CppValue(f"{held} ? {read.number(result)} : {other.number(result)}", result))

    def _index(self, node: ast.Element, axis: int, name_it: bool) -> str:
        index = node.indices[axis]
        if isinstance(index, ast.Variable):
            return self.parameters.variable(index.name)
        if reads_elements(index):
            fault = self.parameters.fault(Gather(node.tensor, axis, index.span))
            text = f"tofu::to_index<Index>({bare(self.value(index).text)}, {fault})"
        else:
            text = index_text(self.parameters, index)
            if not name_it:
                return text
        name = self.fresh("x")
        self.add(f"const Index {name} = {text};")
        return name

    def _named(self, letter: str, value: CppValue) -> CppValue:
        name = self.fresh(letter)
        self.add(f"const {value.kind.value} {name} = {value.text};")
        return CppValue(name, value.kind)

    def _reduce(self, node: ast.ReducerCall) -> CppValue:
        level = self._home(free_variables(node))
        home, inner, outside = self.scopes[level], self.scopes[level + 1 :], self.outside
        left = outside + tuple(name for scope in inner if scope.loop for name in sorted(scope.names))
        key = (format_expression(node), left)
        if (known := home.known.get(key)) is not None:
            return known
        self.scopes, self.outside = self.scopes[: level + 1], left
        nested = any(scope.loop for scope in self.scopes)
        loop = (serial if nested or self.cooperate is None else self.cooperate)(self, node)
        self.scopes, self.outside = self.scopes + inner, outside
        home.lines.append(loop.declaration)
        home.lines += self._under(left, loop.lines)
        home.known[key] = loop.total
        return loop.total

    def _under(self, left: tuple[str, ...], lines: list[str]) -> list[str]:
        """Return the lines, run if none of these index variables has an empty interval."""
        if not left:
            return lines
        conditions = (f"{self.parameters.lower(name)} < {self.parameters.upper(name)}" for name in left)
        return [f"if ({' && '.join(conditions)}) {{", *indented(lines), "}"]

    def _home(self, names: frozenset[str]) -> int:
        """Return the outermost scope that knows these index variables."""
        levels = range(len(self.scopes) - 1, 0, -1)
        return next((level for level in levels if names & self.scopes[level].names), 0)

    def _known(self, node: ast.Element | ast.Pad, make: Callable[[], CppValue]) -> CppValue:
        """Return the value if an enclosing scope has it, else a new one.

        That is read in the outermost place where its index variables are known. It leaves no loop that may
        be empty.
        """
        key = (format_expression(node),)
        for scope in self.scopes:
            if key in scope.known:
                return scope.known[key]
        loops = [level for level, scope in enumerate(self.scopes) if scope.loop]
        level = max(self._home(free_variables(node)), *loops, 0)
        inner, self.scopes = self.scopes[level + 1 :], self.scopes[: level + 1]
        value = make()
        self.scopes += inner
        self.scopes[level].known[key] = value
        return value


@dataclass(frozen=True, slots=True)
class ReductionLoop:
    """A reduction: the declaration of `total`, then the lines that compute it."""

    declaration: str
    lines: list[str]
    total: CppValue


def serial(body: Body, node: ast.ReducerCall) -> ReductionLoop:
    """Return a reduction as nested loops of one thread, the last index variable fastest."""
    depth = len(body.scopes)
    body.scopes += [CppBlock(frozenset((binder.name,)), loop=True) for binder in node.variables]
    value = body.value(node.body)
    scopes, body.scopes = body.scopes[depth:], body.scopes[:depth]
    total = CppValue(body.fresh("r"), reduced_kind(node.reducer, value))
    lines = [accumulation(node, total, value)]
    for binder, scope in zip(reversed(node.variables), reversed(scopes), strict=True):
        name = body.parameters.variable(binder.name)
        lower, upper = body.parameters.lower(binder.name), body.parameters.upper(binder.name)
        head = f"for (Index {name} = {lower}; {name} < {upper}; ++{name}) {{"
        lines = [head, *indented(scope.lines + lines), "}"]
    return ReductionLoop(declaration(body, node, total), lines, total)


def declaration(body: Body, node: ast.ReducerCall, total: CppValue) -> str:
    """Return the declaration of a reduction's result, which starts as the reducer's neutral element."""
    start = neutral(body.parameters.operator, node.reducer, total.kind, body.parameters.real)
    return f"{total.kind.value} {total.text} = {start};"


def accumulation(node: ast.ReducerCall, total: CppValue, element: CppValue) -> str:
    """Return the statement that adds one element to a reduction's result."""
    number = bare(element.number(total.kind))
    return f"{total.text} = {reducer_name(node.reducer)}::combine({total.text}, {number});"


def reducer_text(parameters: ParameterStruct, reducer: ast.CustomReducer) -> str:
    """Return the struct of a description's own reducer."""
    sides = {
        name: CppValue(parameters.variable(name), CppType.REAL) for name in (reducer.left, reducer.right)
    }
    result = Body(parameters, (), given=sides).value(combination(reducer))
    head = ", ".join(f"real {value.text}" for value in sides.values())
    lines = [
        f"struct {reducer_name(reducer)} {{",
        f"    static TOFU_DEVICE real combine({head}) {{ return {bare(result.real)}; }}",
        "};",
    ]
    return "\n".join(lines)


def indented(lines: list[str]) -> list[str]:
    """Return the lines, one level deeper."""
    return [f"    {line}" for line in lines]


def free_variables(node: ast.Expression) -> frozenset[str]:
    """Index variables that a value depends on; no variable is bound twice on one path."""
    used = {part.name for part in walk(node) if isinstance(part, ast.Variable)}
    return frozenset(used - {part.name for part in walk(node) if isinstance(part, ast.Binder)})


def _argument(spelled: str, text: str) -> str:
    """Return an argument, without parentheses if the spelling is a function's call."""
    return bare(text) if spelled[0].isalpha() else text

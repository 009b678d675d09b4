"""Build the syntax tree from lark's parse tree.

The builder decides what a name stands for if the header and the form alone say it: an attribute, a reducer,
`pad`, an opaque function, a constant, a scalar stage. The checker finds out later whether names are bound and
ranks agree.
The builder raises nothing: it collects complaints and puts a placeholder in the tree, so that the rest is
still checked. It works bottom-up and iteratively, so the depth of the text does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...support.wording import suggestion
from .. import advice, ast
from ..ast import AnyReducer, CustomReducer, Expression, Index, Lambda, Reducer, Span
from ..constants import NamedConstants, is_constant
from ..extremes import EXTREMES, position
from ..functions import CONSTANTS, FUNCTIONS
from ..source import Diagnostic
from .calls import NO_CALLABLES, Calls
from .header import is_tree, name_of, read_number, read_parameters, span_of
from .inlining import MisfitError
from .layout import MAX_TOKENS
from .parts import (
    AttributeSetting,
    Declaration,
    DescriptionCall,
    Failed,
    Group,
    Listing,
    Name,
    OpaqueCall,
    Part,
    Shape,
    listed,
    why_no_value,
)
from .results import Returned, resolve_results

if TYPE_CHECKING:
    from lark import Token, Tree

    ParseTree = Tree[Token]

_NOT_RECURSIVE = "a description cannot be recursive"
_DECLARING = frozenset({"Opaque", "Reducer"})
LANGUAGE: frozenset[str] = frozenset({"pad", *_DECLARING, *Reducer, *EXTREMES, *FUNCTIONS, *CONSTANTS})
"""The words that have a meaning without a declaration."""

BINARY_OPERATORS = {
    "or": "or",
    "and": "and",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "modulo": "%",
    "power": "**",
}


class TreeBuilder:
    """Build one description (or expression) and collect what is wrong with it in `diagnostics`."""

    def __init__(self, text: str, callables: Mapping[str, ast.Description] = NO_CALLABLES) -> None:
        """`callables` are the descriptions that this one may call, by name."""
        self.text = text
        self.diagnostics: list[Diagnostic] = []
        self.opaques: dict[str, Span] = {}
        self.reducers: dict[str, CustomReducer] = {}
        self.constants = NamedConstants(MAX_TOKENS)
        self._scalars: set[str] = set()
        self._stages: list[ast.NamedStage] = []
        self._calls = Calls(callables, text)
        self._operator = ""
        self._attributes: frozenset[str] = frozenset()

    def description(self, tree: ParseTree) -> ast.Description:
        """Return the description of a `description` tree."""
        self._operator = name_of(tree)
        parts = {str(part.data): part for part in tree.children if is_tree(part)}
        statements = [part for part in tree.children if is_tree(part) and part.data == "statement"]
        tensors, attributes = read_parameters(parts["parameters"], self.diagnostics)
        self._attributes = frozenset(attribute.name for attribute in attributes)
        for statement in statements:
            self._declare(statement)
        self._calls.declare(tensor.name for tensor in tensors)
        self._calls.declare(self._attributes)
        self._calls.declare(str(statement.children[0]) for statement in statements)
        for statement in statements:
            stage = self._stage(statement)
            self._stages += [stage] if stage else []
        results = [self._result(child) for child in parts["results"].children]
        kept, outputs = resolve_results(self._stages, results, self.diagnostics)
        return ast.Description(
            self._operator, tensors, attributes, tuple(self.opaques), kept, outputs, source=self.text
        )

    def expression(self, tree: ParseTree | Token) -> Expression:
        """Return the expression of a `test` tree."""
        return self._expression(self._build(tree))

    def _complain(self, message: str, span: Span, hint: str) -> Failed:
        self.diagnostics.append(Diagnostic(message, span, hint))
        return Failed(span)

    def _declare(self, statement: ParseTree) -> None:
        """Record the opaque function or reducer of a statement, before any stage is built."""
        name, value = str(statement.children[0]), statement.children[1]
        keyword = _declared(value)
        if not keyword:
            return
        span = span_of(statement.children[0])
        if name in self.opaques or name in self.reducers:
            self._complain(f"'{name}' is declared twice", span, "delete one declaration")
        elif keyword == "Opaque":
            self.opaques[name] = span
        else:
            assert is_tree(value)
            self._build(value.children[0])
            self.reducers[name] = self._reducer(name, listed(self._build(value.children[1])), statement)

    def _reducer(self, name: str, arguments: tuple[Part, ...], statement: ParseTree) -> CustomReducer:
        span = span_of(statement)
        match arguments:
            case (Lambda(variables=(left, right)) as combine, identity) if all(
                binder.extent is None and not binder.star for binder in combine.variables
            ):
                value = self._expression(identity)
                if not isinstance(value, ast.Number):
                    hint = "write a number that changes nothing: 0 for a sum, -inf for a maximum"
                    self._complain(f"the identity of '{name}' must be a number", value.span, hint)
                    value = ast.Number(0)
                return CustomReducer(name, left.name, right.name, combine.body, value.value, span)
            case _:
                hint = "write Reducer(lambda a, b: a * b, 1)"
                self._complain("Reducer expects a lambda of two variables, and the identity", span, hint)
                both = ast.Binary("+", ast.Variable("a"), ast.Variable("b"))
                return CustomReducer(name, "a", "b", both, 0, span)

    def _stage(self, statement: ParseTree) -> ast.NamedStage | None:
        name, value = statement.children
        if _declared(value) == "Reducer":
            return None
        built, span = self._build(value), span_of(statement)
        if isinstance(built, Declaration):
            return None
        if not isinstance(built, Lambda):
            expression = self._expression(built)
            if is_constant(expression) and name in self.constants.named:
                self._complain(f"'{name}' is declared twice", span, "delete one declaration")
                return None
            if is_constant(expression):
                self.constants.define(str(name), expression, span)
                return None
            built = Lambda((), expression, built.span)
        if not built.variables:
            self._scalars.add(str(name))
        return ast.NamedStage(str(name), built, span)

    def _result(self, child: ParseTree | Token) -> Returned:
        built = self._build(child)
        if isinstance(built, Lambda):
            return built
        assert isinstance(built, Name)
        return built.name, built.span

    def _build(self, tree: ParseTree | Token) -> Part:
        """Return the meaning of a tree, children before parents."""
        assert is_tree(tree)
        built: dict[int, Part] = {}
        for subtree in tree.iter_subtrees():
            parts = [built[id(child)] for child in subtree.children if is_tree(child)]
            tokens = [child for child in subtree.children if not is_tree(child)]
            built[id(subtree)] = self._node(str(subtree.data), tokens, parts, span_of(subtree))
        return built[id(tree)]

    def _node(self, rule: str, tokens: Sequence[Token | ParseTree], parts: list[Part], span: Span) -> Part:
        if rule in BINARY_OPERATORS:
            left, right = map(self._expression, parts)
            return ast.Binary(BINARY_OPERATORS[rule], left, right, span)
        match rule:
            case "name" | "returned_name":
                return Name(str(tokens[0]), span)
            case "number":
                return ast.Number(read_number(tokens[0], self.diagnostics), span)
            case "group":
                return Group(self._expression(parts[0]), span)
            case "negative":
                operand = self._expression(parts[0])
                if isinstance(operand, ast.Number) and not isinstance(parts[0], Group):
                    return ast.Number(-operand.value, span)
                return ast.Unary("-", operand, span)
            case "positive":
                return self._expression(parts[0])
            case "not":
                return ast.Unary("not", self._expression(parts[0]), span)
            case "conditional":
                value, condition, otherwise = map(self._expression, parts)
                return ast.Call("where", (condition, value, otherwise), span)
            case "star":
                return ast.Star(str(tokens[0]), span)
            case "full_slice":
                return ast.FullSlice(span)
            case "plain_binder":
                return ast.Binder(str(tokens[0]), span=span)
            case "star_binder":
                return ast.Binder(str(tokens[0]), star=True, span=span)
            case "extent_binder":
                return ast.Binder(str(tokens[0]), self._expression(parts[0]), span=span)
            case "lambda":
                return Lambda(self._binders(parts[0]), self._expression(parts[1]), span)
            case "setting":
                return AttributeSetting(str(tokens[0]), self._expression(parts[0]), span)
            case "member":
                return self._member(parts[0], str(tokens[0]), span)
            case "call":
                return self._call(parts[0], listed(parts[1]), span)
            case "subscript":
                return self._subscript(parts[0], listed(parts[1]), span)
            case "binders" | "arguments" | "indices":
                return Listing(tuple(parts), span)
            case _:
                raise AssertionError(f"the grammar has a rule {rule} that nothing builds")

    def _binders(self, listing: Part) -> tuple[ast.Binder, ...]:
        return tuple(binder for binder in listed(listing) if isinstance(binder, ast.Binder))

    def _expression(self, part: Part) -> Expression:
        """Return a part as a value. If it is not one, complain and return a number in its place."""
        match part:
            case Group(value=value):
                return value
            case Name(name=name, span=span) if name in CONSTANTS:
                return ast.Number(CONSTANTS[name], span)
            case Name(name=name, span=span) if name in self._attributes:
                return ast.Attribute(name, span=span)
            case Name(name=name, span=span) if name in self.constants.named:
                return self.constants.value(name, span, self.diagnostics)
            case Name(name=name, span=span) if name in self._scalars:
                return ast.Element(name, (), span)
            case Name(name=name, span=span):
                return ast.Variable(name, span)
            case ast.Binder() | Listing():
                raise AssertionError("the grammar puts no list where a value belongs")
            case Failed(span=span):
                return ast.Number(1, span)
            case (
                Shape()
                | OpaqueCall()
                | DescriptionCall()
                | AttributeSetting()
                | Declaration()
                | Lambda()
                | ast.Star()
                | ast.FullSlice()
            ):
                self._complain(*why_no_value(part))
                return ast.Number(1, part.span)
            case _:
                return part

    def _member(self, base: Part, name: str, span: Span) -> Part:
        match base:
            case Name(name="tofu") if name in LANGUAGE:
                return Name(name, span)
            case Name(name=tensor) if name == "shape":
                return Shape(tensor, span)
            case Name(name=module) if name in LANGUAGE:
                message = f"'{module}.{name}' is not part of the language: a description never runs Python"
                self._complain(message, span, f"write {name}")
                return Name(name, span)
            case _:
                return self._complain(
                    f"expected '.shape', found '.{name}'",
                    span,
                    "a tensor has no member but shape; write tensor.shape[axis]",
                )

    def _call(self, base: Part, arguments: tuple[Part, ...], span: Span) -> Part:
        match base:
            case Name(name="Opaque"):
                if arguments:
                    self._complain("Opaque takes no argument", span, "write Opaque()")
                return Declaration("Opaque", span)
            case Name(name="Reducer"):
                return Declaration("Reducer", span)
            case Name(name="pad"):
                return self._pad(arguments, span)
            case Name(name=name) if name in self._calls.callables:
                return DescriptionCall(name, arguments, span)
            case Name(name=name) if name in self.opaques:
                return self._opaque_call(name, arguments, span)
            case Name(name=name) if name in self.reducers:
                return self._reduce(self.reducers[name], arguments, span)
            case Name(name=name) if name in set(Reducer):
                return self._reduce(Reducer(name), arguments, span)
            case Name(name=name) if name in EXTREMES:
                return self._position(name, arguments, span)
            case Name(name=name) if name not in FUNCTIONS and any(isinstance(a, Lambda) for a in arguments):
                hint = advice.FUNCTIONS.get(name) or suggestion(name, (*Reducer, *EXTREMES, *self.reducers))
                hint = hint or f"declare it: {name} = Reducer(lambda a, b: ..., identity)"
                return self._complain(f"unknown reducer '{name}'", span, hint)
            case Name(name=name):
                return ast.Call(name, tuple(map(self._expression, arguments)), span)
            case Failed():
                return base
            case _:
                return self._complain(
                    "only a function can be called", base.span, "multiplication is written with *"
                )

    def _reduce(self, reducer: AnyReducer, arguments: tuple[Part, ...], span: Span) -> Part:
        if len(arguments) != 1 or not isinstance(arguments[0], Lambda):
            for argument in arguments:
                if not isinstance(argument, Lambda):
                    self._expression(argument)
            return self._complain(
                f"{reducer} expects one lambda",
                span,
                f"write {reducer}(lambda i: ...) with the variables to reduce over",
            )
        return ast.ReducerCall(reducer, arguments[0].variables, arguments[0].body, span)

    def _position(self, name: str, arguments: tuple[Part, ...], span: Span) -> Part:
        match arguments:
            case (Lambda(variables=(ast.Binder(star=False),)) as over,):
                if not self.constants.repeat(over.body, span, self.diagnostics):
                    return Failed(span)
                return position(EXTREMES[name], over, self.text, span)
            case _:
                message = f"{name} expects one lambda of one variable"
                return self._complain(message, span, f"write {name}(lambda i: ...)")

    def _pad(self, arguments: tuple[Part, ...], span: Span) -> Part:
        if len(arguments) != 2:
            return self._complain(
                f"pad expects 2 arguments, found {len(arguments)}", span, "write pad(tensor[i - 1], 0)"
            )
        element, value = map(self._expression, arguments)
        if not isinstance(element, ast.Element):
            return self._complain(
                "the first argument of pad must be a tensor's element",
                element.span,
                "write pad(tensor[i - 1], 0)",
            )
        return ast.Pad(element, value, span)

    def _opaque_call(self, name: str, arguments: tuple[Part, ...], span: Span) -> Part:
        hint = "write a tensor with its indices, such as data[b, :, :]"
        if not arguments:
            self._complain(f"'{name}' is called without a slice", span, hint)
        slices: list[ast.Element] = []
        for argument in arguments:
            if isinstance(argument, ast.Element):
                slices.append(argument)
            else:
                self._complain(f"'{name}' expects slices of tensors", argument.span, hint)
        return OpaqueCall(name, tuple(slices), span)

    def _subscript(self, base: Part, parts: tuple[Part, ...], span: Span) -> Part:
        match base:
            case Name(name=name) if name in self._attributes:
                return self._attribute(name, parts, span)
            case Shape(tensor=tensor):
                return self._extent(tensor, parts, span)
            case Name(name=name):
                return ast.Element(name, self._indices(parts), span)
            case OpaqueCall(function=function, arguments=arguments):
                return ast.OpaqueElement(function, arguments, self._indices(parts), span)
            case DescriptionCall() as call:
                return self._called(call, self._indices(parts), span)
            case Failed():
                return base
            case ast.Call(function=function) if function == self._operator:
                return self._complain(f"operator '{function}' calls itself", base.span, _NOT_RECURSIVE)
            case ast.Call(function=function) if function not in FUNCTIONS:
                hint = f"describe it above this one, or declare {function} = Opaque()"
                return self._complain(f"unknown description '{function}'", base.span, hint)
            case ast.Element(tensor=tensor):
                hint = f"write all indices in one bracket: {tensor}[i, j]"
                return self._complain("only a tensor can be indexed", span, hint)
            case _:
                hint = "to index a computed tensor, make it a stage: part = lambda i: ..."
                return self._complain("only a tensor can be indexed", base.span, hint)

    def _called(self, call: DescriptionCall, indices: tuple[Index, ...], span: Span) -> Part:
        """Return an element of a call's result, whose stages come before the statement being built."""
        try:
            stages = self._calls.stages(call)
        except MisfitError as error:
            return self._complain(str(error), call.span, error.hint)
        if not all(self.constants.repeat(stage, span, self.diagnostics) for stage in stages):
            return Failed(span)
        self._stages += stages
        return self._calls.element(call, indices, span)

    def _indices(self, parts: tuple[Part, ...]) -> tuple[Index, ...]:
        return tuple(
            part if isinstance(part, ast.Star | ast.FullSlice) else self._expression(part) for part in parts
        )

    def _attribute(self, name: str, parts: tuple[Part, ...], span: Span) -> Part:
        match parts:
            case (ast.Number(value=int(index)),) if index >= 0:
                return ast.Attribute(name, index, span)
            case _:
                return self._complain(
                    f"the index of attribute '{name}' must be a number",
                    span,
                    f"write {name}[0] for its first value",
                )

    def _extent(self, tensor: str, parts: tuple[Part, ...], span: Span) -> Part:
        match parts:
            case (ast.Number(value=int(axis)),):
                return ast.Extent(tensor, axis, span)
            case _:
                hint = f"write {tensor}.shape[0] or {tensor}.shape[-1]"
                return self._complain(f"an axis of '{tensor}.shape' must be a whole number", span, hint)


def _declared(value: ParseTree | Token) -> str:
    """Return `Opaque` or `Reducer` if a statement's value declares one, else an empty string."""
    if not (is_tree(value) and value.data == "call" and is_tree(value.children[0])):
        return ""
    keyword = str(value.children[0].children[-1])
    return keyword if keyword in _DECLARING else ""

"""Build expressions from lark's parse tree: names, calls and subscripts get their meaning here.

A name means what the header, the statements above and the form say: an attribute, a reducer, `pad`, an opaque
function, a constant, a scalar stage, a description that is called. Names that are not bound and ranks that do
not agree are found later. Building works bottom-up and iteratively, so the depth of the text does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...support.wording import suggestion
from .. import advice, ast
from ..ast import AnyReducer, CustomReducer, Expression, Index, Lambda, Reducer, Span
from ..constants import NamedConstants
from ..extremes import EXTREMES, position
from ..functions import CONSTANTS, FUNCTIONS
from ..source import Diagnostic
from .calls import Callee, Calls
from .header import is_tree, read_number, read_word, span_of
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
    Quoted,
    Shape,
    listed,
    why_no_value,
)
from .words import BINARY_OPERATORS, LANGUAGE

if TYPE_CHECKING:
    from lark import Token, Tree

    ParseTree = Tree[Token]

_NOT_RECURSIVE = "a description cannot be recursive"


class Expressions:
    """The meaning of expressions in one text, which its statements add to."""

    def __init__(self, text: str, callables: Mapping[str, Callee]) -> None:
        """`callables` are the descriptions that the text may call, by name."""
        self.text = text
        self.diagnostics: list[Diagnostic] = []
        self.opaques: dict[str, Span] = {}
        self.reducers: dict[str, CustomReducer] = {}
        self.constants = NamedConstants(MAX_TOKENS)
        self.scalars: set[str] = set()
        self.stages: list[ast.NamedStage] = []
        self.calls = Calls(callables, text)
        self.operator = ""
        self.attributes: frozenset[str] = frozenset()
        self.choices: frozenset[str] = frozenset()

    def complain(self, message: str, span: Span, hint: str) -> Failed:
        """Record a complaint and return a placeholder."""
        self.diagnostics.append(Diagnostic(message, span, hint))
        return Failed(span)

    def build(self, tree: ParseTree | Token) -> Part:
        """Return the meaning of a tree, children before parents."""
        assert is_tree(tree)
        built: dict[int, Part] = {}
        for subtree in tree.iter_subtrees():
            parts = [built[id(child)] for child in subtree.children if is_tree(child)]
            tokens = [child for child in subtree.children if not is_tree(child)]
            built[id(subtree)] = self._node(str(subtree.data), tokens, parts, span_of(subtree))
        return built[id(tree)]

    def _node(self, rule: str, tokens: Sequence[Token | ParseTree], parts: list[Part], span: Span) -> Part:
        if rule in ("equal", "not_equal") and any(isinstance(part, Quoted) for part in parts):
            return self._choice(rule, parts, span)
        if rule in BINARY_OPERATORS:
            left, right = map(self.expression, parts)
            return ast.Binary(BINARY_OPERATORS[rule], left, right, span)
        match rule:
            case "name" | "returned_name":
                return Name(str(tokens[0]), span)
            case "number":
                return ast.Number(read_number(tokens[0], self.diagnostics), span)
            case "string":
                return Quoted(read_word(tokens[0], self.diagnostics), span)
            case "group":
                return Group(self.expression(parts[0]), span)
            case "negative":
                operand = self.expression(parts[0])
                if isinstance(operand, ast.Number) and not isinstance(parts[0], Group):
                    return ast.Number(-operand.value, span)
                return ast.Unary("-", operand, span)
            case "positive":
                return self.expression(parts[0])
            case "not":
                return ast.Unary("not", self.expression(parts[0]), span)
            case "conditional":
                value, condition, otherwise = map(self.expression, parts)
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
                return ast.Binder(str(tokens[0]), self.expression(parts[0]), span=span)
            case "lambda":
                return Lambda(self._binders(parts[0]), self.expression(parts[1]), span)
            case "setting":
                (part,) = parts
                if isinstance(part, Quoted) and not part.value:
                    return Failed(span)
                given = part if isinstance(part, Quoted) else self.expression(part)
                return AttributeSetting(str(tokens[0]), given, span)
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

    def expression(self, part: Part) -> Expression:
        """Return a part as a value. If it is not one, complain and return a number in its place."""
        match part:
            case Group(value=value):
                return value
            case Name(name=name, span=span) if name in CONSTANTS:
                return ast.Number(CONSTANTS[name], span)
            case Name(name=name, span=span) if name in self.choices:
                hint = f'compare it with a string: {name} == "..."'
                self.complain(f"choice '{name}' is not a number", span, hint)
                return ast.Number(1, span)
            case Name(name=name, span=span) if name in self.attributes:
                return ast.Attribute(name, span=span)
            case Name(name=name, span=span) if name in self.constants.named:
                return self.constants.value(name, span, self.diagnostics)
            case Name(name=name, span=span) if name in self.scalars:
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
                | Quoted()
            ):
                self.complain(*why_no_value(part))
                return ast.Number(1, part.span)
            case _:
                return part

    def _choice(self, rule: str, parts: Sequence[Part], span: Span) -> Part:
        """Return a comparison of a choice with a word."""
        match parts:
            case (Name(name=name), Quoted(value=word)) if name in self.choices:
                same = ast.Choice(name, word, span)
                return same if rule == "equal" else ast.Unary("not", same, span)
            case (Name(name=name), Quoted()) if name in self.attributes:
                hint = f'a choice has a string as default: *, {name}="..."'
                return self.complain(f"attribute '{name}' is a number, and not a choice", span, hint)
            case _:
                hint = 'write mode == "edge", for an attribute with a string as default'
                return self.complain("only a choice is compared with a string", span, hint)

    def _member(self, base: Part, name: str, span: Span) -> Part:
        match base:
            case Name(name="tofu") if name in LANGUAGE:
                return Name(name, span)
            case Name(name=tensor) if name == "shape":
                return Shape(tensor, span)
            case Name(name=module) if name in LANGUAGE:
                message = f"'{module}.{name}' is not part of the language: a description never runs Python"
                self.complain(message, span, f"write {name}")
                return Name(name, span)
            case _:
                return self.complain(
                    f"expected '.shape', found '.{name}'",
                    span,
                    "a tensor has no member but shape; write tensor.shape[axis]",
                )

    def _call(self, base: Part, arguments: tuple[Part, ...], span: Span) -> Part:
        match base:
            case Name(name="Opaque"):
                if arguments:
                    self.complain("Opaque takes no argument", span, "write Opaque()")
                return Declaration("Opaque", span)
            case Name(name="Reducer"):
                return Declaration("Reducer", span)
            case Name(name="pad"):
                return self._pad(arguments, span)
            case Name(name=name) if name in self.opaques:
                return self._opaque_call(name, arguments, span)
            case Name(name=name) if name in self.reducers:
                return self._reduce(self.reducers[name], arguments, span)
            case Name(name=name) if self.calls.has(name, arguments):
                return DescriptionCall(name, arguments, span)
            case Name(name=name) if name in set(Reducer):
                return self._reduce(Reducer(name), arguments, span)
            case Name(name=name) if name in EXTREMES:
                return self._position(name, arguments, span)
            case Name(name=name) if name not in FUNCTIONS and any(isinstance(a, Lambda) for a in arguments):
                hint = advice.FUNCTIONS.get(name) or suggestion(name, (*Reducer, *EXTREMES, *self.reducers))
                hint = hint or f"declare it: {name} = Reducer(lambda a, b: ..., identity)"
                return self.complain(f"unknown reducer '{name}'", span, hint)
            case Name(name=name):
                return ast.Call(name, tuple(map(self.expression, arguments)), span)
            case Failed():
                return base
            case _:
                return self.complain(
                    "only a function can be called", base.span, "multiplication is written with *"
                )

    def _reduce(self, reducer: AnyReducer, arguments: tuple[Part, ...], span: Span) -> Part:
        if len(arguments) != 1 or not isinstance(arguments[0], Lambda):
            for argument in arguments:
                if not isinstance(argument, Lambda):
                    self.expression(argument)
            return self.complain(
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
                return self.complain(message, span, f"write {name}(lambda i: ...)")

    def _pad(self, arguments: tuple[Part, ...], span: Span) -> Part:
        if len(arguments) != 2:
            return self.complain(
                f"pad expects 2 arguments, found {len(arguments)}", span, "write pad(tensor[i - 1], 0)"
            )
        element, value = map(self.expression, arguments)
        if not isinstance(element, ast.Element):
            return self.complain(
                "the first argument of pad must be a tensor's element",
                element.span,
                "write pad(tensor[i - 1], 0)",
            )
        return ast.Pad(element, value, span)

    def _opaque_call(self, name: str, arguments: tuple[Part, ...], span: Span) -> Part:
        hint = "write a tensor with its indices, such as data[b, :, :]"
        if not arguments:
            self.complain(f"'{name}' is called without a slice", span, hint)
        slices: list[ast.Element] = []
        for argument in arguments:
            if isinstance(argument, ast.Element):
                slices.append(argument)
            else:
                self.complain(f"'{name}' expects slices of tensors", argument.span, hint)
        return OpaqueCall(name, tuple(slices), span)

    def _subscript(self, base: Part, parts: tuple[Part, ...], span: Span) -> Part:
        match base:
            case Name(name=name) if name in self.choices:
                hint = f'compare it with a string: {name} == "..."'
                return self.complain(f"choice '{name}' is not a tuple", span, hint)
            case Name(name=name) if name in self.attributes:
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
            case ast.Call(function=function) if function == self.operator:
                return self.complain(f"operator '{function}' calls itself", base.span, _NOT_RECURSIVE)
            case ast.Call(function=function) if function not in FUNCTIONS:
                if self.calls.is_family(function):
                    hint = f"write ':' for each dimension of a tensor, such as {function}(x[:, :])"
                    return self.complain(f"'{function}' needs slices", base.span, hint)
                hint = f"describe it above this one, or declare {function} = Opaque()"
                return self.complain(f"unknown description '{function}'", base.span, hint)
            case ast.Element(tensor=tensor):
                hint = f"write all indices in one bracket: {tensor}[i, j]"
                return self.complain("only a tensor can be indexed", span, hint)
            case _:
                hint = "to index a computed tensor, make it a stage: part = lambda i: ..."
                return self.complain("only a tensor can be indexed", base.span, hint)

    def _called(self, call: DescriptionCall, indices: tuple[Index, ...], span: Span) -> Part:
        """Return an element of a call's result, whose stages come before the statement being built."""
        if any(isinstance(argument, Failed) for argument in call.arguments):
            return Failed(span)
        try:
            stages = self.calls.stages(call)
        except MisfitError as error:
            return self.complain(str(error), call.span, error.hint)
        if not all(self.constants.repeat(stage, span, self.diagnostics) for stage in stages):
            return Failed(span)
        self.stages += stages
        return self.calls.element(call, indices, span)

    def _indices(self, parts: tuple[Part, ...]) -> tuple[Index, ...]:
        return tuple(
            part if isinstance(part, ast.Star | ast.FullSlice) else self.expression(part) for part in parts
        )

    def _attribute(self, name: str, parts: tuple[Part, ...], span: Span) -> Part:
        match parts:
            case (ast.Number(value=int(index)),) if index >= 0:
                return ast.Attribute(name, index, span)
            case _:
                return self.complain(
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
                return self.complain(f"an axis of '{tensor}.shape' must be a whole number", span, hint)

"""Build descriptions from lark's parse tree, statement by statement.

The builder raises nothing: it collects complaints and puts a placeholder in the tree, so that the rest is
still checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .. import ast
from ..ast import CustomReducer, Expression, Lambda
from ..constants import is_constant
from .calls import NO_CALLABLES, Callee
from .expressions import Expressions
from .header import is_tree, name_of, read_parameters, span_of
from .parts import Declaration, Name, Part, listed
from .results import Returned, resolve_results
from .words import DECLARING

if TYPE_CHECKING:
    from lark import Token, Tree

    ParseTree = Tree[Token]


class TreeBuilder:
    """Build one description (or expression) and collect what is wrong with it in `diagnostics`."""

    def __init__(self, text: str, callables: Mapping[str, Callee] = NO_CALLABLES) -> None:
        """`callables` are the descriptions that this one may call, by name."""
        self.text = text
        self._meaning = Expressions(text, callables)
        self.diagnostics = self._meaning.diagnostics
        self.opaques = self._meaning.opaques
        self.reducers = self._meaning.reducers
        self.constants = self._meaning.constants

    def description(self, tree: ParseTree) -> ast.Description:
        """Return the description of a `description` tree."""
        name = name_of(tree)
        self._meaning.operator = name
        parts = {str(part.data): part for part in tree.children if is_tree(part)}
        statements = [part for part in tree.children if is_tree(part) and part.data == "statement"]
        tensors, attributes = read_parameters(parts["parameters"], self.diagnostics)
        self._meaning.attributes = frozenset(attribute.name for attribute in attributes)
        self._meaning.choices = frozenset(each.name for each in attributes if isinstance(each.default, str))
        for statement in statements:
            self._declare(statement)
        self._meaning.calls.declare(tensor.name for tensor in tensors)
        self._meaning.calls.declare(self._meaning.attributes)
        self._meaning.calls.declare(str(statement.children[0]) for statement in statements)
        for statement in statements:
            stage = self._stage(statement)
            self._meaning.stages += [stage] if stage else []
        results = [self._result(child) for child in parts["results"].children]
        kept, outputs = resolve_results(self._meaning.stages, results, self.diagnostics)
        return ast.Description(
            name, tensors, attributes, tuple(self.opaques), kept, outputs, source=self.text
        )

    def expression(self, tree: ParseTree | Token) -> Expression:
        """Return the expression of a `test` tree."""
        return self._meaning.expression(self._meaning.build(tree))

    def _declare(self, statement: ParseTree) -> None:
        """Record the opaque function or reducer of a statement, before any stage is built."""
        name, value = str(statement.children[0]), statement.children[1]
        keyword = _declared(value)
        if not keyword:
            return
        span = span_of(statement.children[0])
        if name in self.opaques or name in self.reducers:
            self._meaning.complain(f"'{name}' is declared twice", span, "delete one declaration")
        elif keyword == "Opaque":
            self.opaques[name] = span
        else:
            assert is_tree(value)
            self._meaning.build(value.children[0])
            self.reducers[name] = self._reducer(
                name, listed(self._meaning.build(value.children[1])), statement
            )

    def _reducer(self, name: str, arguments: tuple[Part, ...], statement: ParseTree) -> CustomReducer:
        span = span_of(statement)
        match arguments:
            case (Lambda(variables=(left, right)) as combine, identity) if all(
                binder.extent is None and not binder.star for binder in combine.variables
            ):
                value = self._meaning.expression(identity)
                if not isinstance(value, ast.Number):
                    hint = "write a number that changes nothing: 0 for a sum, -inf for a maximum"
                    self._meaning.complain(f"the identity of '{name}' must be a number", value.span, hint)
                    value = ast.Number(0)
                return CustomReducer(name, left.name, right.name, combine.body, value.value, span)
            case _:
                hint = "write Reducer(lambda a, b: a * b, 1)"
                self._meaning.complain(
                    "Reducer expects a lambda of two variables, and the identity", span, hint
                )
                both = ast.Binary("+", ast.Variable("a"), ast.Variable("b"))
                return CustomReducer(name, "a", "b", both, 0, span)

    def _stage(self, statement: ParseTree) -> ast.NamedStage | None:
        name, value = statement.children
        if _declared(value) == "Reducer":
            return None
        built, span = self._meaning.build(value), span_of(statement)
        if isinstance(built, Declaration):
            return None
        if not isinstance(built, Lambda):
            expression = self._meaning.expression(built)
            if is_constant(expression) and name in self.constants.named:
                self._meaning.complain(f"'{name}' is declared twice", span, "delete one declaration")
                return None
            if is_constant(expression):
                self.constants.define(str(name), expression, span)
                return None
            built = Lambda((), expression, built.span)
        if not built.variables:
            self._meaning.scalars.add(str(name))
        return ast.NamedStage(str(name), built, span)

    def _result(self, child: ParseTree | Token) -> Returned:
        built = self._meaning.build(child)
        if isinstance(built, Lambda):
            return built
        assert isinstance(built, Name)
        return built.name, built.span


def _declared(value: ParseTree | Token) -> str:
    """Return `Opaque` or `Reducer` if a statement's value declares one, else an empty string."""
    if not (is_tree(value) and value.data == "call" and is_tree(value.children[0])):
        return ""
    keyword = str(value.children[0].children[-1])
    return keyword if keyword in DECLARING else ""

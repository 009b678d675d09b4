"""Check a description's meaning: names, scopes, forms, ranks, indices and extents.

Every check runs and every complaint is collected. The parser raises them as one error. Properties that depend
on attribute values or shapes (such as reading outside a tensor) are checked once those are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from ...support.wording import counted, suggestion
from .. import advice
from ..ast import (
    Attribute,
    Binary,
    Binder,
    Call,
    Choice,
    CustomReducer,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Lambda,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Span,
    Star,
    Unary,
    Variable,
)
from ..constants import NamedConstants
from ..extremes import EXTREMES
from ..functions import CONSTANTS, FUNCTIONS
from ..reducers import check_promise, check_reducer_body
from ..source import Diagnostic
from ..traverse import variable_names, walk
from .extents import misread_results, open_stars, unknown_extents
from .indices import check_index, check_whole
from .usage import Usage, check_choices

Scope = Mapping[str, Binder]

_CALLABLE = (*FUNCTIONS, *Reducer, *EXTREMES, "pad")


def check(
    description: Description,
    opaques: Mapping[str, Span],
    reducers: Mapping[str, CustomReducer],
    constants: NamedConstants,
    complete: bool = True,
) -> list[Diagnostic]:
    """Return all complaints about a description.

    `opaques` says where each opaque function is declared. `reducers` and `constants` hold all custom reducers
    and named constants, used or not.

    A missing use or extent is not reported if `complete` is false or a name is unknown: a placeholder may
    stand for it.
    """
    return _Checker(description, opaques, reducers, constants, complete).run()


class _Checker:
    """One run over one description. `complete` becomes False as soon as a name is unknown."""

    def __init__(
        self,
        description: Description,
        opaques: Mapping[str, Span],
        reducers: Mapping[str, CustomReducer],
        constants: NamedConstants,
        complete: bool,
    ) -> None:
        self.description = description
        self.opaques = opaques
        self.reducers = reducers
        self.constants = constants
        self.complete = complete
        self.complaints: list[Diagnostic] = []
        self.missing: list[Diagnostic] = []
        self.usage = Usage()
        self.kinds: dict[str, str] = {}
        self.stages_so_far: set[str] = set()
        self.stage = ""

    def run(self) -> list[Diagnostic]:
        self.declare()
        for reducer in self.reducers.values():
            self.check_reducer(reducer)
        for name, constant in self.constants.named.items():
            self.check_constant(name, constant.value)
        for stage in self.description.stages:
            self.stage = stage.name
            self.check_lambdas([stage.value])
            self.stages_so_far.add(stage.name)
        self.stage = ""
        self.check_lambdas(self.description.outputs)
        self.missing += open_stars(self.description)
        self.complaints += self.usage.check_agreement(self.description)
        self.missing += check_choices(self.description)
        if self.complete:
            self.complaints += self.missing + self.usage.check_unused(
                self.description, self.opaques, self.reducers
            )
            self.complaints += [
                Diagnostic(f"constant '{name}' is never used", constant.span, "use it or delete it")
                for name, constant in self.constants.unused().items()
            ]
        return self.complaints

    def complain(self, message: str, span: Span, hint: str = "") -> None:
        self.complaints.append(Diagnostic(message, span, hint))

    def complain_unknown(self, message: str, span: Span, hint: str) -> None:
        """Complain about a name that may be a misspelling of another."""
        self.complete = False
        self.complain(message, span, hint)

    def declare(self) -> None:
        """Check that names of the header and of statements differ from each other and from constants."""
        declared = [(parameter.name, "tensor", parameter.span) for parameter in self.description.tensors]
        declared += [
            (parameter.name, "attribute", parameter.span) for parameter in self.description.attributes
        ]
        declared += [(name, "opaque function", span) for name, span in self.opaques.items()]
        declared += [(name, "reducer", reducer.span) for name, reducer in self.reducers.items()]
        declared += [(name, "constant", constant.span) for name, constant in self.constants.named.items()]
        declared += [(stage.name, "stage", stage.span) for stage in self.description.stages]
        for name, kind, span in declared:
            self.check_reserved(name, span)
            if kind in ("opaque function", "reducer") and name in _CALLABLE:
                self.complain(f"'{name}' is a function of the language", span, "choose another name")
            if name in self.kinds:
                message = f"'{name}' is declared twice: as {self.kinds[name]} and as {kind}"
                self.complain_unknown(message, span, "rename one of them")
            self.kinds.setdefault(name, kind)

    def check_reserved(self, name: str, span: Span) -> None:
        if name in CONSTANTS:
            self.complain_unknown(f"'{name}' is a constant", span, "choose another name")

    def check_reducer(self, reducer: CustomReducer) -> None:
        """Check that a custom reducer combines two numbers and keeps its promise for 0 and 1."""
        binders = tuple(Binder(name, span=reducer.span) for name in (reducer.left, reducer.right))
        before = len(self.complaints)
        scope = self.bind(binders, {})
        foreign = check_reducer_body(reducer)
        self.complaints += foreign
        if not foreign:
            self.visit(reducer.body, scope)
        if len(self.complaints) == before:
            self.complaints += check_promise(reducer)

    def check_constant(self, name: str, value: Expression) -> None:
        """Check that a constant is made of numbers, attributes and extents."""
        for variable in sorted(variable_names(value) - self.kinds.keys()):
            node = next(node for node in walk(value) if node == Variable(variable))
            self.complain_unknown(
                f"constant '{name}' uses '{variable}', which is not a constant",
                node.span,
                "use numbers, attributes, tensor.shape[axis] and constants above it",
            )
        self.visit(
            value, {variable: Binder(variable) for variable in variable_names(value) - self.kinds.keys()}
        )

    def check_lambdas(self, lambdas: Sequence[Lambda]) -> None:
        """Check lambdas that share their variables: one stage, or all outputs."""
        for value in lambdas:
            self.visit(value.body, self.bind(value.variables, {}))
        self.complaints += misread_results(lambdas)
        self.missing += unknown_extents(lambdas)

    def bind(self, variables: tuple[Binder, ...], outer: Scope) -> Scope:
        """Return the scope inside a lambda."""
        scope = dict(outer)
        names: set[str] = set()
        for binder in variables:
            self.check_reserved(binder.name, binder.span)
            if binder.name in names:
                self.complain(
                    f"variable '{binder.name}' occurs twice in one lambda", binder.span, "rename one of them"
                )
            elif binder.name in outer:
                self.complain(
                    f"variable '{binder.name}' shadows the one of an outer lambda",
                    binder.span,
                    "rename one of them",
                )
            elif binder.name in self.kinds:
                kind = self.kinds[binder.name]
                message = f"variable '{binder.name}' shadows the {kind}"
                self.complain_unknown(message, binder.span, "rename the variable")
            if binder.extent is not None:
                self.check_extent(binder.name, binder.extent)
            names.add(binder.name)
            scope[binder.name] = binder
        return scope

    def check_extent(self, name: str, extent: Expression) -> None:
        """Check that an extent is a whole number that attributes and shapes determine."""
        attributes = [parameter.name for parameter in self.description.attributes]
        for node in walk(extent):
            unknown = ""
            match node:
                case Variable(name=used) | Element(tensor=used) if used not in self.kinds:
                    unknown = used
                    message = f"the extent of '{name}' uses '{used}', which is not a constant"
                case Element() | OpaqueElement() | ReducerCall():
                    message = f"the extent of '{name}' depends on the values of tensors"
                case _:
                    continue
            hint = suggestion(unknown, attributes) or "use numbers, attributes and tensor.shape[axis]"
            self.complain(message, node.span, hint)
            if not isinstance(node, Variable):
                return
        self.complaints += check_whole(extent, "an extent")
        complained = variable_names(extent) - self.kinds.keys()
        self.visit(extent, {variable: Binder(variable) for variable in complained})

    def visit(self, node: Expression, scope: Scope) -> None:
        """Check a value and everything below it."""
        match node:
            case Number():
                pass
            case Variable():
                self.check_variable(node, scope)
            case Attribute(name=name):
                self.usage.attributes.setdefault(name, []).append(node)
            case Choice():
                pass
            case Extent(tensor=tensor, span=span):
                if self.check_tensor(tensor, span):
                    self.usage.extents.setdefault(tensor, []).append(node)
            case Element():
                self.check_element(node, scope, slices=False)
            case Pad(element=element, value=value):
                self.visit(element, scope)
                self.visit(value, scope)
            case Unary(operand=operand):
                self.visit(operand, scope)
            case Binary(operator=operator, left=left, right=right):
                if operator in ("/", "//", "%") and isinstance(right, Number) and right.value == 0:
                    self.complain(f"'{operator}' by zero", node.span, "divide by something else")
                self.visit(left, scope)
                self.visit(right, scope)
            case Call():
                self.check_call(node, scope)
            case ReducerCall(variables=variables, body=body):
                self.visit(body, self.bind(variables, scope))
            case OpaqueElement(function=function, arguments=arguments, indices=indices):
                self.usage.opaques.setdefault(function, []).append(node)
                for argument in arguments:
                    self.check_element(argument, scope, slices=True)
                self.check_indices(indices, scope, slices=False)
            case _:
                assert_never(node)

    def check_variable(self, node: Variable, scope: Scope) -> None:
        name = node.name
        if name in scope:
            if scope[name].star:
                self.complain(
                    f"'{name}' stands for several variables", node.span, f"write *{name} as an index"
                )
            return
        match self.kinds.get(name):
            case "tensor" | "stage" as kind:
                self.complain_unknown(f"{kind} '{name}' must be indexed here", node.span, f"write {name}[i]")
            case "opaque function":
                hint = f"write {name}(tensor[b, :, :])[i, j]"
                self.complain_unknown(f"opaque function '{name}' must be called here", node.span, hint)
            case "reducer":
                hint = f"write {name}(lambda i: ...)"
                self.complain_unknown(f"reducer '{name}' must be called here", node.span, hint)
            case "constant":
                hint = "a statement uses only what is defined above it"
                self.complain_unknown(f"constant '{name}' is used before it is defined", node.span, hint)
            case _ if name in _CALLABLE:
                self.complain(f"function '{name}' must be called here", node.span, f"write {name}(...)")
            case _:
                attributes = (parameter.name for parameter in self.description.attributes)
                hint = suggestion(name, (*scope, *attributes))
                self.complain_unknown(f"unknown name '{name}'", node.span, hint or "bind it: lambda ...:")

    def check_tensor(self, name: str, span: Span) -> bool:
        """Return whether a name is a tensor that can be read here. Complain if it is not."""
        match self.kinds.get(name):
            case "tensor":
                return True
            case "stage" if name in self.stages_so_far:
                return True
            case "stage":
                when = "in its own definition" if name == self.stage else "before it is defined"
                self.complain_unknown(
                    f"stage '{name}' is read {when}", span, "a stage reads only those above it"
                )
            case str() as kind:
                article = "an" if kind[0] in "ao" else "a"
                message = f"'{name}' is not a tensor but {article} {kind}"
                self.complain_unknown(message, span, "index a tensor")
            case None if name == self.description.name:
                self.complain(
                    f"operator '{name}' reads its own result", span, "a description cannot be recursive"
                )
            case None:
                tensors = (*self.description.tensor_names, *self.stages_so_far)
                hint = suggestion(name, tensors) or f"the tensors are: {', '.join(tensors) or 'none'}"
                self.complain_unknown(f"unknown tensor '{name}'", span, hint)
        return False

    def check_element(self, node: Element, scope: Scope, slices: bool) -> None:
        if self.check_tensor(node.tensor, node.span):
            self.usage.elements.setdefault(node.tensor, []).append(node)
        self.check_indices(node.indices, scope, slices)

    def check_indices(self, indices: tuple[Index, ...], scope: Scope, slices: bool) -> None:
        for index in indices:
            match index:
                case FullSlice(span=span):
                    if not slices:
                        hint = "write an index; ':' is for the arguments of opaque functions"
                        self.complain("':' is not one element", span, hint)
                case Star(name=name, span=span):
                    if name not in scope:
                        hint = suggestion(name, scope) or f"bind it: lambda *{name}: ..."
                        self.complain_unknown(f"unknown name '{name}'", span, hint)
                    elif not scope[name].star:
                        self.complain(
                            f"'{name}' is a single variable", span, f"write {name} without the star"
                        )
                case _:
                    self.complaints += check_index(index)
                    self.visit(index, scope)

    def check_call(self, node: Call, scope: Scope) -> None:
        name, count = node.function, len(node.arguments)
        if name in FUNCTIONS:
            arity = FUNCTIONS[name].arity
            if count != arity:
                arguments = ", ".join("xyz"[:arity])
                self.complain(
                    f"{name} expects {counted(arity, 'argument')}, found {count}",
                    node.span,
                    f"write {name}({arguments})",
                )
        elif name == self.description.name:
            self.complain_unknown(
                f"operator '{name}' calls itself", node.span, "a description cannot be recursive"
            )
        elif name in self.kinds:
            hint = f"write {name}[...]" if self.kinds[name] in ("tensor", "stage") else f"write {name}"
            self.complain_unknown(f"{self.kinds[name]} '{name}' cannot be called", node.span, hint)
        else:
            hint = advice.FUNCTIONS.get(name) or suggestion(name, (*_CALLABLE, *self.opaques, *self.reducers))
            self.complain_unknown(
                f"unknown function '{name}'", node.span, hint or f"declare it: {name} = Opaque()"
            )
        for argument in node.arguments:
            self.visit(argument, scope)

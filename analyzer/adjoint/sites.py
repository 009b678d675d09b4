"""Where an output depends on a tensor's elements, and with which factor each place enters the gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from ...errors import OperatorError
from ...support.wording import counted
from ...tdl.ast import (
    Binary,
    Binder,
    Call,
    CustomReducer,
    Description,
    Element,
    Expression,
    Lambda,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Variable,
)
from ...tdl.reproducible import is_reproducible
from ...tdl.traverse import Node, children, substitute, transform, variable_names, walk
from .algebra import ONE, ZERO, add, choose, conjunction, divide, multiply, negation
from .derivative import no_adjoint, partial
from .opaque_calls import GradientsOf, called_gradient, filled, gradient_name, sliced_at, stands_alone

CHOICES = frozenset(("maximum", "minimum", "where"))
"""The functions whose derivatives depend on the order of equal arguments."""


def origin(name: str) -> str:
    """Return the forward description's name of a variable that was renamed with `#`."""
    return name.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Site:
    """One access of the differentiated tensor.

    For all values of the variables the gradient gains `cofactor` at the position that the indices give, as
    long as no condition is negative.
    """

    element: Element
    """The access."""

    cofactor: Expression
    """The derivative of the output by the element, times the head gradient."""

    head: Element
    """The element of the head gradient, at the output variables."""

    output_variables: tuple[str, ...]
    """The names of the output variables, as in the forward description."""

    reduction_variables: tuple[Binder, ...] = ()
    """The binders of all reductions around the access, renamed so that no two have the same name."""

    conditions: tuple[Expression, ...] = ()
    """Differences of indices. The element contributes only if all of them are at least 0."""


class SiteFinder:
    """Finds the sites of one tensor in one output, reduction by reduction from the root."""

    def __init__(
        self,
        description: Description,
        tensor: str,
        output: Lambda,
        head_name: str,
        output_name: str,
        gradients_of: GradientsOf,
    ) -> None:
        indices = tuple(Variable(binder.name) for binder in output.variables)
        self.description = description
        self.tensor = tensor
        self.output = output
        self.gradients_of = gradients_of
        self.head = Element(head_name, indices)
        self.result = Element(output_name, indices)
        self.numbers = count(1)

    def sites(self) -> Iterator[Site]:
        """Yield all sites whose factor is not zero. Raises OperatorError if there is no derivative."""
        body = self.output.body
        if (
            isinstance(body, OpaqueElement)
            and body.function in self.gradients_of
            and stands_alone(self.output)
        ):
            yield from self._called(body, self.gradients_of[body.function])
            return
        for node in walk(body):
            if isinstance(node, OpaqueElement) and self._reads(node):
                raise self._no_gradient_of(node)
        yield from self._scope(body, self.head, ())

    def _no_gradient_of(self, call: OpaqueElement) -> OperatorError:
        """Return the error for a call through which no gradient goes."""
        if call.function in self.gradients_of:
            reason = f"the gradient of '{call.function}' is known for a stage that only calls it"
            hint = f"name the result: part = lambda b, i: {call.function}(...)[i], with i after b"
            return no_adjoint(self.description, call.span, reason, hint)
        reason = "nothing is known about an opaque function's inside"
        hint = f"give its gradient, opaque={{'{call.function}': tofu.Differentiable(function, gradient)}}"
        hint += ", or apply the operator to data, which needs no gradient"
        return no_adjoint(self.description, call.span, reason, hint)

    def _no_gradient_of_candidates(self, reduction: ReducerCall) -> OperatorError:
        """Return the error for candidates that may have other bits than the result, which is one of them."""
        reason = (
            f"which candidate of {reduction.reducer} is the best is found by comparing it with the result, "
        )
        reason += "and computed again it may have other bits"
        variables = ", ".join(binder.name for binder in reduction.variables)
        hint = f"name the candidates: part = lambda i, {variables}: ..., and read part[i, {variables}]"
        return no_adjoint(self.description, reduction.span, reason, hint)

    def _called(self, call: OpaqueElement, nonzero: tuple[bool, ...]) -> Iterator[Site]:
        """Yield the arguments of a call that is the whole output, if they read the tensor."""
        if len(nonzero) != len(call.arguments):
            reason = f"'{call.function}' takes {counted(len(call.arguments), 'argument')}"
            reason += f", but has {counted(len(nonzero), 'gradient')}"
            raise no_adjoint(self.description, call.span, reason, "give one for each argument, None for zero")
        result: frozenset[str] = frozenset().union(*map(variable_names, call.indices))
        head = sliced_at(self.head.tensor, result, self.output)
        outputs = tuple(b.name for b in self.output.variables if b.name not in result)
        for place, argument in enumerate(call.arguments):
            if argument.tensor != self.tensor or not nonzero[place]:
                continue
            element, binders = filled(argument, self.numbers)
            name = gradient_name(self.description, call.function, place)
            own = sliced_at(self.result.tensor, result, self.output)
            yield Site(element, called_gradient(name, head, own, call, binders), head, outputs, binders)

    def _scope(self, body: Expression, cofactor: Expression, bound: tuple[Binder, ...]) -> Iterator[Site]:
        """Yield sites in a body, where `cofactor` is the gradient of the body's value."""
        for part in dict.fromkeys(_parts(body)):
            if not self._reads(part):
                continue
            factor = multiply(cofactor, self._with_result(partial(self.description, body, part)))
            if factor == ZERO:
                continue
            match part:
                case Element():
                    if part.tensor == self.tensor:
                        outputs = tuple(binder.name for binder in self.output.variables)
                        yield Site(part, factor, self.head, outputs, bound)
                case ReducerCall():
                    inner = self._renamed(part)
                    factor = self._through(part, inner, factor)
                    yield from self._scope(inner.body, factor, bound + inner.variables)
                case _:
                    assert_never(part)

    def _with_result(self, slope: Expression) -> Expression:
        """If the slope computes the whole output again, use the output instead."""
        body = self.output.body
        if not isinstance(body, Call):
            return slope
        return transform(slope, lambda node: self.result if node == body else node)

    def _through(self, reduction: ReducerCall, inner: ReducerCall, factor: Expression) -> Expression:
        """Return the gradient of one summand, or candidate, or factor of a reduction."""
        match reduction.reducer:
            case CustomReducer() as reducer:
                return multiply(factor, self._slope(reducer, reduction, inner))
            case Reducer.SUM:
                return factor
            case Reducer.MAX | Reducer.MIN:
                if not is_reproducible(inner.body):
                    raise self._no_gradient_of_candidates(reduction)
                winner = self.result if reduction == self.output.body else reduction
                return multiply(choose(Binary("==", inner.body, winner), ONE, ZERO), factor)
            case Reducer.PROD:
                return multiply(factor, self._others(reduction, inner, ONE))
            case _:
                assert_never(reduction.reducer)

    def _slope(self, reducer: CustomReducer, reduction: ReducerCall, inner: ReducerCall) -> Expression:
        """Return how a custom reduction follows one of its terms, combined with all the others by
        `reducer`.

        Where a choice of the two has a slope that depends on their order, such as `maximum(a, b)` of equal
        values, it is the mean of both orders.
        """
        term, rest = Element("#term", ()), Element("#rest", ())
        orders = [(reducer.left, reducer.right), (reducer.right, reducer.left)]
        chooses = any(isinstance(node, Call) and node.function in CHOICES for node in walk(reducer.body))
        slopes = [
            partial(self.description, substitute(reducer.body, {own: term, other: rest}), term)
            for own, other in orders[: 2 if chooses else 1]
        ]
        slope = divide(add(*slopes), Number(len(slopes)))
        if slope == ZERO:
            return ZERO
        values = {term: inner.body, rest: self._others(reduction, inner, Number(reducer.identity))}
        return transform(slope, lambda node: values.get(node, node) if isinstance(node, Element) else node)

    def _others(self, reduction: ReducerCall, inner: ReducerCall, identity: Number) -> ReducerCall:
        """Return the reduction of all terms but the one at the variables of `inner`."""
        others = self._renamed(reduction)
        same = (
            Binary("==", Variable(a.name), Variable(b.name))
            for a, b in zip(others.variables, inner.variables, strict=True)
        )
        value = choose(negation(conjunction(tuple(same))), others.body, identity)
        return ReducerCall(reduction.reducer, others.variables, value)

    def _renamed(self, reduction: ReducerCall) -> ReducerCall:
        names = {b.name: f"{origin(b.name)}#{next(self.numbers)}" for b in reduction.variables}
        variables = tuple(Binder(names[b.name], b.extent) for b in reduction.variables)
        body = substitute(reduction.body, {old: Variable(new) for old, new in names.items()})
        return ReducerCall(reduction.reducer, variables, body)

    def _reads(self, node: Node) -> bool:
        return any(isinstance(below, Element) and below.tensor == self.tensor for below in walk(node))


def _parts(node: Node) -> Iterator[Element | ReducerCall]:
    """Yield elements and reductions used as values, without looking into reductions and indices."""
    match node:
        case Element() | ReducerCall():
            yield node
        case Pad(element, value):
            yield element
            yield from _parts(value)
        case OpaqueElement():
            return
        case _:
            for child in children(node):
                yield from _parts(child)

"""Gradients through calls of opaque functions that bring a gradient.

    output[b, i] = f(x[b, :])[i]
    grad_x[b, j] = f_gradient_0(grad_0[b, :], output_0[b, :], x[b, :])[j]

The gradient of the result must be a tensor. So the call must be the whole output, and output variables must
index its result in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import count

from ...tdl.ast import (
    Binder,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Lambda,
    OpaqueElement,
    Variable,
)
from ...tdl.traverse import variable_names

GradientsOf = Mapping[str, tuple[bool, ...]]
"""By opaque function that has gradients, for each argument whether its gradient is not zero."""


def gradient_name(description: Description, function: str, argument: int) -> str:
    """Return the name under which adjoints call the gradient of an opaque function by one argument."""
    taken = {*description.opaques, *description.tensor_names}
    names = (f"{function}{'_gradient' * times}_{argument}" for times in count(1))
    return next(name for name in names if name not in taken)


def stands_alone(output: Lambda) -> bool:
    """Return whether an output is a call whose result is indexed by output variables in their order."""
    call = output.body
    if not isinstance(call, OpaqueElement):
        return False
    indices = [index.name if isinstance(index, Variable) else "" for index in call.indices]
    sliced = set().union(*(variable_names(argument) for argument in call.arguments))
    in_order = [binder.name for binder in output.variables if binder.name in indices]
    return in_order == indices and sliced.isdisjoint(indices)


def sliced_at(tensor: str, result: Set[str], output: Lambda) -> Element:
    """Return a tensor of the output's shape, with `:` for the variables that index the call's result."""
    return Element(
        tensor,
        tuple(FullSlice() if binder.name in result else Variable(binder.name) for binder in output.variables),
    )


def filled(element: Element, numbers: Iterator[int]) -> tuple[Element, tuple[Binder, ...]]:
    """Return a slice with new variables for `:`, and the binders of these."""
    binders: list[Binder] = []
    indices: list[Index] = []
    for axis, index in enumerate(element.indices):
        if isinstance(index, FullSlice):
            binders.append(Binder(f"k#{next(numbers)}", Extent(element.tensor, axis)))
            indices.append(Variable(binders[-1].name))
        else:
            indices.append(index)
    return Element(element.tensor, tuple(indices), element.span), tuple(binders)


def called_gradient(
    name: str, head: Element, result: Element, call: OpaqueElement, binders: tuple[Binder, ...]
) -> Expression:
    """Return an element of the gradient by one argument, at the variables of its slice."""
    indices = tuple(Variable(binder.name) for binder in binders)
    return OpaqueElement(name, (head, result, *call.arguments), indices, call.span)

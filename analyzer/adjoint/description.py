"""Adjoints: the descriptions of an operator's gradients, derived from its own.

Let `t` be read in output `k` at indices `A(o, r)`, for output variables `o` and reduction variables `r`.
The gradient at position `j` gains

    sum over all (o, r) with A(o, r) = j of  grad_k[o] * d(output_k[o]) / d(t[A(o, r)])

so an adjoint is found by differentiating the scalar expression and inverting the access. The results are
ordinary descriptions: they have strategies, kernels and adjoints.
"""

from __future__ import annotations

from functools import cache
from itertools import count

from ...errors import DescriptionError, OperatorError
from ...tdl import format, parse
from ...tdl.ast import (
    Attribute,
    Binder,
    Description,
    Extent,
    Lambda,
    Star,
    TensorParameter,
)
from ...tdl.syntax.parser import MAX_DEPTH
from ...tdl.traverse import levels, opaques_in, tensors_in, walk
from .algebra import ZERO, add
from .bent_indices import straightened
from .extents import KnownExtents, forward_extents
from .gradient_term import GradientTerm, gradient_term, position
from .naming import rename, state_extents
from .sites import SiteFinder


@cache
def adjoint(
    description: Description, tensor: str, gradients_of: tuple[tuple[str, tuple[bool, ...]], ...] = ()
) -> tuple[Description, ...]:
    """Return descriptions whose results sum to the gradient with respect to `tensor`; none if it is zero.

    Takes a description without attributes, stars and stages. A result's parameters are the head gradients
    (`head_names`) and outputs (`output_names`) it needs, then the forward's tensors it needs, in the
    forward's order. All terms without a reduction, and those at single positions, form one description; each
    other term has its own, a Sum at the root, so that it can be split by reduction. Where candidates of a Max
    or Min tie, each gets the gradient.

    `gradients_of` are the opaque functions that bring gradients. For each argument it says whether the
    gradient is not zero. Results call these gradients by the names that `gradient_name` gives.

    Raises OperatorError if the description has no derivative with respect to `tensor`.
    """
    _check(description, tensor)
    heads, results = head_names(description), output_names(description)
    extents = forward_extents(description, heads)
    pointwise: list[GradientTerm] = []
    summed: list[GradientTerm] = []
    for output, head, result in zip(description.outputs, heads, results, strict=True):
        for bent in SiteFinder(description, tensor, output, head, result, dict(gradients_of)).sites():
            for site in straightened(bent):
                found = gradient_term(extents, site)
                (summed if found.free and not found.local else pointwise).append(found)
    terms = [_lambda(description, tensor, (found,), extents) for found in summed]
    if pointwise:
        terms.insert(0, _lambda(description, tensor, tuple(pointwise), extents))
    gradients = [term for term in terms if term.body != ZERO]
    parameters = heads + results + description.tensor_names
    return tuple(
        _description(f"{description.name}_grad_{tensor}{f'_{n}' if n > 1 else ''}", gradient, parameters)
        for n, gradient in enumerate(gradients, 1)
    )


def head_names(description: Description) -> tuple[str, ...]:
    """Return names of the head gradients, one for each output: `grad_0`, `grad_1`, ...

    If the description has tensors of these names, being an adjoint itself, they are `grad_grad_0`, ...
    """
    return _numbered("grad_", description)


def output_names(description: Description) -> tuple[str, ...]:
    """Return names under which adjoints read the outputs: `output_0`, ... or `output_output_0`, ..."""
    return _numbered("output_", description)


def _numbered(word: str, description: Description) -> tuple[str, ...]:
    for repetitions in count(1):
        names = tuple(f"{word * repetitions}{k}" for k in range(len(description.outputs)))
        if not set(names) & set(description.tensor_names):
            return names
    raise AssertionError("some repetition is free")


def _check(description: Description, tensor: str) -> None:
    if tensor not in description.tensor_names:
        known = ", ".join(description.tensor_names)
        raise OperatorError(
            f"{description.name} has no tensor {tensor!r} to differentiate by; it has {known}"
        )
    general = any(isinstance(node, Star | Attribute) for node in walk(description))
    if description.stages or description.attributes or general:
        raise OperatorError(
            f"{description.name} has stages, attributes or starred variables: specialise it, split it into "
            "its stages and differentiate these one by one"
        )


def _lambda(
    description: Description, tensor: str, terms: tuple[GradientTerm, ...], extents: KnownExtents
) -> Lambda:
    rank = len(terms[0].positions)
    binders = tuple(Binder(position(axis), Extent(tensor, axis)) for axis in range(rank))
    body = add(*(term.expression for term in terms))
    stated = state_extents(Lambda(binders, body), extents)
    return rename(stated, terms[0].named_after, description)


def _description(name: str, gradient: Lambda, parameters: tuple[str, ...]) -> Description:
    used = tensors_in(gradient)
    tensors = tuple(TensorParameter(parameter) for parameter in parameters if parameter in used)
    if max(level for _, level in levels(gradient)) > MAX_DEPTH:
        raise OperatorError(
            f"{name} cannot be derived: it is nested more than {MAX_DEPTH} levels deep; name parts of the "
            f"operator as separate stages: part = lambda ...: ..."
        )
    text = format(Description(name, tensors, (), opaques_in(gradient), (), (gradient,)))
    try:
        return _parsed(text, name)
    except DescriptionError as error:
        raise OperatorError(f"{name} cannot be derived: its text is not a description\n{error}") from error


@cache
def _parsed(text: str, name: str) -> Description:
    """Return the description of a text. Those of an operator with other shapes often have the same one."""
    return parse(text, origin=name)

"""Candidate choices of one step or of several steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, split, whole
from ..layouts.choices import (
    OperatorChoices,
    TensorChoices,
    axes,
    choices_of_boxes,
    choices_of_regions,
    operator_choices,
    split_further,
    splittable,
    tensor_choices,
    variables,
    with_copies,
)
from ..layouts.forms import Partial
from ..layouts.step_split import Dimensions, Strategies
from .sequences import Near

KeepVariables = Callable[[Bound, tuple[str, ...]], Strategies]
"""Takes an operator and the variables that a step can split; returns those that a method considers."""

KeepDimensions = Callable[[Dimensions], Dimensions]
"""Takes the dimensions of a tensor that a step can split; returns those that a method considers."""


def every_variable(bound: Bound, fitting: tuple[str, ...]) -> Strategies:
    return fitting


def every_variable_or_repeat(bound: Bound, fitting: tuple[str, ...]) -> Strategies:
    return (*fitting, None)


def every_variable_or_terms(bound: Bound, fitting: tuple[str, ...]) -> Strategies:
    return (*fitting, None, Partial())


def every_dimension(fitting: Dimensions) -> Dimensions:
    return fitting


def first_dimension_or_whole(fitting: Dimensions) -> Dimensions:
    return (0,) if 0 in fitting else (None,)


def every_dimension_or_whole(fitting: Dimensions) -> Dimensions:
    return (*fitting, None)


def every_dimension_or_terms(fitting: Dimensions) -> Dimensions:
    return (*(fitting or (None,)), Partial())


def everything(fitting: Dimensions) -> Dimensions:
    return (*fitting, None, Partial())


class Tables:
    """Choices for one factorisation, each computed once because layers repeat.

    Bound operators are compared by identity, which is how binding caches them.
    """

    def __init__(self, factors: Sequence[int]) -> None:
        self.factors = tuple(factors)
        self._operators: dict[tuple[Bound, Strategies, KeepVariables], OperatorChoices] = {}
        self._tensors: dict[tuple[Shape, Dimensions, KeepDimensions, bool], TensorChoices] = {}
        self._operators_near: dict[tuple[Bound, Near[str]], OperatorChoices] = {}
        self._tensors_near: dict[tuple[Shape, Near[int], bool], TensorChoices] = {}
        self._with_copies: dict[tuple[TensorChoices, TensorChoices], TensorChoices] = {}

    def operator(
        self, bound: Bound, earlier: Strategies, keep: KeepVariables = every_variable
    ) -> OperatorChoices:
        """Return the further splits of an operator that `keep` keeps; if there are none, it stays whole.

        A variable qualifies if it has a strategy and every worker group would get at least one value.
        """
        key = (bound, earlier, keep)
        found = self._operators.get(key)
        if found is None:
            step = len(earlier)
            factor = self.factors[step]
            boxes = bound.split(variables(earlier), self.factors[:step])
            extents = (boxes[..., 1] - boxes[..., 0]).min(axis=0).tolist()
            names = bound.variables
            fitting = tuple(
                v for v, n in zip(names, extents, strict=True) if n >= factor and bound.kind(v) is not None
            )
            kept = keep(bound, fitting) or (None,)
            places = [names.index(variable) if isinstance(variable, str) else None for variable in kept]
            sequences = [(*earlier, variable) for variable in kept]
            boxes = split_further(boxes, places, factor)
            found = choices_of_boxes(bound, sequences, self.factors[: step + 1], boxes)
            self._operators[key] = found
        return found

    def tensor(
        self, shape: Shape, earlier: Dimensions, keep: KeepDimensions = every_dimension, stops: bool = False
    ) -> TensorChoices:
        """Return the further splits of a tensor that `keep` keeps; if there are none, it is replicated.

        With `stops`, partial results may be reduced on their way.
        """
        key = (shape, earlier, keep, stops)
        found = self._tensors.get(key)
        if found is None:
            step = len(earlier)
            factor = self.factors[step]
            boxes = split(whole(shape), axes(earlier), self.factors[:step])
            extents = (boxes[..., 1] - boxes[..., 0]).min(axis=0).tolist()
            fitting = tuple(axis for axis, extent in enumerate(extents) if extent >= factor)
            kept = keep(fitting) or (None,)
            sequences = tuple((*earlier, axis) for axis in kept)
            regions = split_further(boxes, axes(kept), factor)
            found = choices_of_regions(shape, sequences, self.factors[: step + 1], regions, stops)
            self._tensors[key] = found
        return found

    def with_copies(self, homes: TensorChoices, layouts: TensorChoices) -> TensorChoices:
        """Return homes alone, and pairs of a home and a copy in one of the layouts."""
        found = self._with_copies.get((homes, layouts))
        if found is None:
            found = self._with_copies[homes, layouts] = with_copies(homes, layouts)
        return found

    def operator_near(self, bound: Bound, near: Near[str]) -> OperatorChoices:
        """Return the strategies of a neighbourhood."""
        found = self._operators_near.get((bound, near))
        if found is None:
            sequences = near.sequences(splittable(bound), self.factors)
            found = self._operators_near[bound, near] = operator_choices(bound, sequences, self.factors)
        return found

    def tensor_near(self, shape: Shape, near: Near[int], stops: bool = False) -> TensorChoices:
        """Return the layouts of a neighbourhood."""
        found = self._tensors_near.get((shape, near, stops))
        if found is None:
            sequences = near.sequences(dict(enumerate(shape)), self.factors)
            found = tensor_choices(shape, sequences, self.factors, stops)
            self._tensors_near[shape, near, stops] = found
        return found

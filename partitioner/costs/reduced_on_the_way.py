"""Decide whether the partial results of a tensor are reduced on their way home, in parts of their own."""

from __future__ import annotations

from dataclasses import replace

from ...analyzer.bind.bound import Bound
from ..layouts.choices import operator_choices, tensor_choices
from ..layouts.step_split import Dimensions, Layout, Strategies
from ..layouts.two_hops import in_two_hops
from ..layouts.uses import Use
from .box_counts import communication


def on_the_way(bound: Bound, strategies: Strategies, use: Use, layout: Layout) -> Layout:
    """Return a layout of steps that reduces on the way if fewer bytes move so; `use` is how it is made."""
    if not isinstance(use, int):
        return layout
    dimensions: Dimensions = layout.form  # type: ignore[assignment]
    operator = operator_choices(bound, [strategies], layout.factors)
    if operator.terms.item() == 1:
        return layout  # nothing is reduced
    tensor = tensor_choices(layout.shape, [dimensions], layout.factors, stops=True)
    direct = replace(tensor, stops=None)
    if communication(operator, tensor, use).item() == communication(operator, direct, use).item():
        return layout
    return in_two_hops(layout)

"""The table from ATen operators to descriptions."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    draws,
    elementwise,
    extremes,
    losses,
    moves,
    normalization,
    ordering,
    padding,
    picking,
    pooling,
    products,
    reductions,
    scatters,
    vector_norms,
    windows,
)
from .converter import Converter

CONVERTERS: Mapping[str, Converter] = {
    **elementwise.CONVERTERS,
    **reductions.CONVERTERS,
    **vector_norms.CONVERTERS,
    **extremes.CONVERTERS,
    **moves.CONVERTERS,
    **padding.CONVERTERS,
    **picking.CONVERTERS,
    **scatters.CONVERTERS,
    **ordering.CONVERTERS,
    **draws.CONVERTERS,
    **products.CONVERTERS,
    **windows.CONVERTERS,
    **pooling.CONVERTERS,
    **normalization.CONVERTERS,
    **losses.CONVERTERS,
}
"""By the name of an ATen operator, without its overload, the function that describes a call of it."""

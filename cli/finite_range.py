"""Numbers on the command line that are finite."""

from __future__ import annotations

import math

import click


class FiniteRange(click.FloatRange):
    """A range that neither infinity nor NaN is in."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number

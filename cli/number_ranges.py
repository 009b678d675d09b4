"""Numbers on the command line. Messages call them what they are: an integer, or a number that is finite."""

from __future__ import annotations

import math
from typing import Any

import click


class IntegerRange(click.IntRange):
    """A range of integers."""

    name = "integer"


class FiniteRange(click.FloatRange):
    """A range that neither infinity nor NaN is in."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number

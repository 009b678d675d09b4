"""A bound operator: what the analysis knows about a stage for given shapes, and how to compute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..analyzer.bound import Bound
from ..analyzer.region import Shape, to_region
from .kernel import Array, KernelCall

if TYPE_CHECKING:
    from .stage import Stage


class BoundOperator(Bound):
    """A `Bound` that can be computed: by the kernel attached to its stage, else by a derived one."""

    stage: Stage

    def prepare(self, call: KernelCall) -> Callable[[], None]:
        """The function that computes one box of this operator, called once per iteration."""
        raise NotImplementedError

    def compute(self, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
        """The outputs for whole input tensors, from the attached or derived kernel."""
        raise NotImplementedError

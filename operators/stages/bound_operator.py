"""A bound operator: the analysis of a stage for given shapes, and the kernels that compute it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from ...analyzer.bind.analysis import Analysis
from ...analyzer.bind.bound import Bound
from ...analyzer.bind.shapes import checked_shapes
from ...analyzer.indices.region import Boxes, Interval, Shape, to_region
from ...errors import ShapeError
from ...support.memory import allocating, require_memory
from ...tdl.numbers import real_array
from ..kernels.kernel import Array, Kernel, KernelCall, Run, prepared, view_of
from ..kernels.narrow import is_narrow, widened
from .contraction import Factors, contraction
from .opaque_kernels import Functions, compute_by_parts, has_parts

MOST_VARIABLES = 32
"""The most dimensions of an array in every version of NumPy that is supported."""


class BoundOperator(Bound):
    """A `Bound` that can be computed: by the kernel attached to its stage, else by a derived one.

    Derived kernels are array operations of NumPy, or C if that is asked for.
    """

    def __init__(
        self, analysis: Analysis, shapes: Mapping[str, Shape], kernel: Kernel | None, opaques: Functions
    ) -> None:
        """`shapes` has exactly the tensors of the description. Raises ShapeError if they do not fit.

        `kernel` is the attached kernel, and `opaques` are the functions behind `Opaque()` names.
        """
        super().__init__(analysis, checked_shapes(analysis.description, analysis.ranks, shapes))
        if len(self.variables) > MOST_VARIABLES:
            raise ShapeError(
                f"{self.description.name} has {len(self.variables)} index variables, and arrays have at most "
                f"{MOST_VARIABLES} dimensions; compute in stages with fewer variables"
            )
        self.kernel = kernel
        self.opaques = opaques

    @cached_property
    def factors(self) -> Factors | None:
        """The two tensors whose products it sums; see `contraction`."""
        return contraction(self.description)

    def prepare(self, call: KernelCall) -> Run:
        """Return the function that computes one box of this operator, called once per iteration."""
        return self._prepare(call, {})

    def _prepare(self, call: KernelCall, opaque: Functions) -> Run:
        from ..derive import derive  # plans need no kernels
        from ..native.generated import generated

        if not any(output.size for output in call.outputs):
            return _nothing
        if is_narrow(call):
            return widened(call, partial(self._prepare, opaque=opaque))
        if self.kernel is not None:
            return prepared(self.kernel, call)
        if not self.description.opaques and (run := generated(call)) is not None:
            return run
        functions = {**self.opaques, **opaque}
        return compute_by_parts(call, functions) if self._has_parts else derive(call)

    @cached_property
    def _has_parts(self) -> bool:
        return has_parts(self.description)

    def interpret(self, tensors: Mapping[str, Array], opaque: Functions | None = None) -> tuple[Array, ...]:
        """Return the outputs from the description alone.

        `opaque` adds to the functions that the stage brings.
        """
        return super().interpret(tensors, {**self.opaques, **(opaque or {})})

    def compute(
        self,
        tensors: Mapping[str, Array],
        opaque: Functions | None = None,
        box: Mapping[str, Interval] | None = None,
    ) -> tuple[Array, ...]:
        """Return the outputs for whole input tensors, from the attached kernel or else the derived one.

        `box` restricts variables to intervals: the outputs are then the parts that a worker computes for this
        box, partial results if a reduction variable is restricted. Outputs have the inputs' floating-point
        type. Integers are computed in float64. `opaque` gives the functions behind `Opaque()`, as for
        `interpret`. An attached kernel does not need them.

        Raises ShapeError if a tensor is missing, its shape is not the one the operator is bound to, or the
        box is not a part of the iteration space, OperatorError if an opaque function is missing,
        ExecutionError if the memory does not suffice.
        """
        arrays = checked_arrays(self.description.name, self.shapes, tensors)
        dtype = np.result_type(np.float32, *arrays.values())
        name = self.description.name
        part = boxed(self, box or {})
        require_memory(sum(map(prod, self.output_shapes)) * dtype.itemsize, f"what '{name}' computes")
        with allocating(f"what '{name}' computes"):
            return self._computed(arrays, dtype, opaque or {}, part)

    def _computed(
        self, arrays: Mapping[str, Array], dtype: np.dtype[Any], opaque: Functions, part: Boxes
    ) -> tuple[Array, ...]:
        lengths = (np.diff(boxes[0])[:, 0] for boxes in self.output_regions(part[None]))
        outputs = tuple(np.empty(tuple(shape), dtype) for shape in lengths)
        regions = {
            name: to_region(boxes[0])
            for name, boxes in self.input_regions(part[None]).items()
            if name in self.reads
        }
        inputs = {
            name: view_of(arrays[name], (slice(*interval) for interval in region)).astype(dtype, copy=False)
            for name, region in regions.items()
        }
        box = dict(zip(self.variables, to_region(part), strict=True))
        with np.errstate(
            all="ignore"
        ):  # as while an iteration runs: warnings would name lines of this package
            self._prepare(KernelCall(self, box, inputs, regions, outputs), opaque)()
        return outputs


def boxed(bound: Bound, box: Mapping[str, Interval]) -> Boxes:
    """Return a box of the iteration space, `[variable, 2]`, whole where no interval is given.

    Raises ShapeError for an unknown variable, and for an interval that leaves its extent.
    """
    part = bound.full_box.copy()
    for name, (lower, upper) in box.items():
        if name not in bound.variables:
            raise ShapeError(
                f"{bound.description.name} has no variable {name!r}; "
                f"it has {', '.join(bound.variables) or 'none'}"
            )
        extent = bound.extents[name]
        if not 0 <= lower < upper <= extent:
            raise ShapeError(
                f"{bound.description.name}: [{lower}, {upper}) is not a part of '{name}', "
                f"whose extent is {extent}"
            )
        part[bound.variables.index(name)] = lower, upper
    return part


def _nothing() -> None:
    """Do nothing: the kernel of an empty output. No other kernel has to expect an empty box."""


def checked_arrays(
    operator: str, shapes: Mapping[str, Shape], tensors: Mapping[str, Array]
) -> dict[str, Array]:
    """Return one array for each of `shapes`.

    Raises ShapeError for a missing one or one of another shape, DataError for one without numbers.
    """
    missing = [name for name in shapes if name not in tensors]
    if missing:
        raise ShapeError(f"{operator}: tensor {', '.join(missing)} is missing; pass an array for it")
    arrays = {name: real_array(f"{operator}: tensor '{name}'", tensors[name]) for name in shapes}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ShapeError(
                f"{operator} is bound to {name} of shape {shape}, "
                f"but the array has shape {arrays[name].shape}"
            )
    return arrays

"""Compute descriptions with opaque functions and custom reducers part by part.

Each call of an opaque function, and each custom reduction, is computed into an array. An element of that
array takes its place in the description. The rest is an ordinary description, whose kernel is derived. All
terms of a reduction are in memory at once: these kernels work for any operator, but are not fast.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.analysis import analyze
from ...analyzer.indices.region import Interval, Region, Shape
from ...errors import DataError, OperatorError
from ...tdl import ast, combiner
from ...tdl.opaque import call_opaque
from ...tdl.traverse import children, custom_reducers, rebuild, tensors_in, transform, variable_names, walk
from ..kernels.kernel import Array, KernelCall, Run

Functions = Mapping[str, Callable[..., Any]]
Resolving = Generator[Run, None, Any]


def has_parts(description: ast.Description) -> bool:
    """Return whether a description has opaque functions or custom reducers, and so no kernel in one piece."""
    return bool(description.opaques or custom_reducers(description))


def compute_by_parts(call: KernelCall, functions: Functions) -> Run:
    """Return the function that computes one box; `functions` are those behind `Opaque()`, on NumPy arrays.

    Raises OperatorError for an opaque function that is not given; when run, ShapeError or DataError for a
    result of one that does not fit the indices.
    """
    description = call.bound.description
    for name in description.opaques:
        if name not in functions:
            raise OperatorError(
                f"'{description.name}' calls opaque function '{name}', which is not given: pass "
                f"opaque={{'{name}': function}} to tofu.parse, tofu.load, tofu.op or compute, "
                "or attach a kernel"
            )
    steps: list[Run] = [] if description.opaques else list(_Parts(call, functions).steps())

    def run() -> None:
        for step in steps:
            step()
        if not steps:
            made = []
            for step in _Parts(call, functions).steps():
                step()
                made.append(step)
            steps.extend(made)

    return run


class _Parts:
    """One box being prepared: the arrays of the parts so far, as tensors of the description that remains.

    If a function is opaque, each step runs before the next one is made, because the shape of the function's
    result is known only then.
    """

    def __init__(self, call: KernelCall, functions: Functions) -> None:
        self.call = call
        self.functions = functions
        self.name = call.bound.description.name
        self.dtype = call.outputs[0].dtype
        self.shapes: dict[str, Shape] = dict(call.bound.shapes)
        self.inputs: dict[str, Array] = dict(call.inputs)
        self.regions: dict[str, Region] = dict(call.regions)

    def steps(self) -> Resolving:
        """Return all steps in order; the last one writes the outputs."""
        outputs = []
        for output in self.call.bound.description.outputs:
            body = yield from self.resolve(output.body)
            outputs.append(ast.Lambda(output.variables, body))
        yield self.derived(outputs, self.call.outputs)

    def resolve(self, node: Any) -> Resolving:
        """Return the node with elements of computed arrays in place of the parts, inner ones first."""
        inner = []
        for child in children(node):
            inner.append((yield from self.resolve(child)))
        node = rebuild(node, tuple(inner))
        match node:
            case ast.OpaqueElement():
                return (yield from self.opaque(node))
            case ast.ReducerCall(reducer=ast.CustomReducer() as reducer):
                return (yield from self.reduction(node, reducer))
            case _:
                return node

    def reduction(self, node: ast.ReducerCall, reducer: ast.CustomReducer) -> Resolving:
        """Compute all terms, then fold them by halves: the order depends on their number alone."""
        outer = self.free(node)
        reduced = tuple(binder.name for binder in node.variables)
        terms = self.array((*outer, *reduced))
        yield self.evaluate(node.body, (*outer, *reduced), terms)
        flat = terms.reshape(*terms.shape[: len(outer)], prod(terms.shape[len(outer) :]))
        total = self.array(outer)
        combine = combiner(reducer)

        def fold() -> None:
            count = flat.shape[-1]
            while count > 1:
                half = count // 2
                combine(flat[..., :half], flat[..., count - half : count], flat[..., :half])
                count -= half
            total[...] = flat[..., 0] if count else reducer.identity

        yield fold
        return self.element(total, outer, ())

    def opaque(self, node: ast.OpaqueElement) -> Resolving:
        """Call the function once for every position of its arguments' slices."""
        batch = self.free(*(index for argument in node.arguments for index in argument.indices))
        fixed: list[list[npt.NDArray[np.float64] | None]] = []
        for argument in node.arguments:
            places: list[npt.NDArray[np.float64] | None] = []
            for index in argument.indices:
                if isinstance(index, ast.Star | ast.FullSlice):
                    places.append(None)
                    continue
                place = np.empty([self.length(name) for name in batch])
                yield self.evaluate(index, batch, place)
                places.append(place)
            fixed.append(places)
        results: list[Array] = []

        def call() -> None:
            found = [
                self.called(node, fixed, position)
                for position in np.ndindex(*(self.length(name) for name in batch))
            ]
            shapes = {result.shape for result in found} | {array.shape[len(batch) :] for array in results}
            if len(shapes) > 1:
                raise DataError(
                    f"{self.name}: all results of '{node.function}' must have one shape, "
                    f"found {sorted(shapes)}"
                )
            (shape,) = shapes
            if not results:
                results.append(np.empty([*(self.length(name) for name in batch), *shape], self.dtype))
            results[0][...] = np.reshape(found, results[0].shape)

        yield call
        return self.element(results[0], batch, node.indices)

    def called(
        self,
        node: ast.OpaqueElement,
        fixed: Sequence[Sequence[npt.NDArray[np.float64] | None]],
        position: tuple[int, ...],
    ) -> Array:
        slices = []
        for argument, places in zip(node.arguments, fixed, strict=True):
            starts = [lower for lower, _ in self.regions[argument.tensor]]
            index = tuple(
                slice(None) if place is None else self.whole(place[position]) - start
                for place, start in zip(places, starts, strict=True)
            )
            taken = self.inputs[argument.tensor][index].view()
            taken.flags.writeable = False
            slices.append(taken)
        result = call_opaque(self.name, node.function, self.functions[node.function], slices)
        if result.ndim != len(node.indices):
            raise DataError(
                f"{self.name}: '{node.function}' returns an array of shape {result.shape}, but its result is "
                f"read with {len(node.indices)} indices"
            )
        return result

    def whole(self, value: np.float64) -> int:
        if not value.is_integer():
            raise DataError(f"{self.name}: {value} is used as an index; an index is a whole number")
        return int(value)

    def evaluate(self, body: ast.Expression, names: Sequence[str], target: Array) -> Run:
        """Return the step that computes an expression at all values of the variables within the box."""
        binders = tuple(ast.Binder(name) for name in names)
        return self.derived([ast.Lambda(binders, body)], (target,))

    def derived(self, outputs: Sequence[ast.Lambda], targets: tuple[Array, ...]) -> Run:
        """Return the derived kernel for these outputs, over the call's box."""
        from ..derive import derive  # plans need no kernels

        stated = tuple(transform(output, self.stated) for output in outputs)
        mentioned = set[str]().union(*map(tensors_in, stated))
        tensors = tuple(ast.TensorParameter(name) for name in self.shapes if name in mentioned)
        description = ast.Description(self.name, tensors, (), (), (), stated)
        bound = analyze(description).bind({name: self.shapes[name] for name in description.tensor_names})
        box = {name: self.call.box[name] for name in bound.variables}
        inputs = {name: self.inputs[name] for name in bound.reads}
        regions = {name: self.regions[name] for name in bound.reads}
        return derive(KernelCall(bound, box, inputs, regions, targets, self.call.workspace))

    def stated(self, node: Any) -> Any:
        """Return the node, its binders with the extents known so far: the tensors that imply them may be
        gone.
        """
        if not isinstance(node, ast.Binder):
            return node
        return ast.Binder(node.name, ast.Number(self.call.bound.extents[node.name]))

    def element(self, array: Array, names: tuple[str, ...], indices: tuple[ast.Index, ...]) -> ast.Element:
        """Return an element of a part's array, which becomes a tensor that has the box's region."""
        tensor = f"part#{len(self.shapes)}"
        rest = array.shape[len(names) :]
        self.shapes[tensor] = (*(self.call.bound.extents[name] for name in names), *rest)
        self.regions[tensor] = (*(self.interval(name) for name in names), *((0, extent) for extent in rest))
        self.inputs[tensor] = array
        return ast.Element(tensor, (*map(ast.Variable, names), *indices))

    def free(self, *nodes: ast.Index) -> tuple[str, ...]:
        """Return variables that nodes use and do not bind, in the order of the bound operator."""
        used = set().union(*map(variable_names, nodes))
        bound = {part.name for node in nodes for part in walk(node) if isinstance(part, ast.Binder)}
        return tuple(name for name in self.call.bound.variables if name in used - bound)

    def array(self, names: Sequence[str]) -> Array:
        return self.call.workspace.array([self.length(name) for name in names], self.dtype)

    def interval(self, name: str) -> Interval:
        return self.call.box[name]

    def length(self, name: str) -> int:
        lower, upper = self.interval(name)
        return upper - lower

"""Placements of another system, as users write them, read as forms in steps.

    sequence      a placement for each axis of the mesh: `[Shard(0), Replicate()]`, of Tofu or of PyTorch
    mapping       placements by axis, all others replicate: `{"tp": Shard(1)}`
    `column`      of a layer on an axis: its weight `[out, in]` and its bias are cut along `out`
    `row`         of a layer on an axis: its weight is cut along `in`, its bias is whole

Each prime factor of an axis is a step. DTensor cuts into chunks of equal size, and steps cut evenly, so parts
that differ are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph, Phase, Role, Tensor
from ...errors import PlanError
from ...support.wording import alternatives
from ..layouts.step_split import Layout, prime_factors
from .axis_uses import Obstacle
from .dtensor import as_placement
from .named_mesh import NamedMesh
from .placements import Placement, Placements, Replicate, Shard, chunks
from .translation import Unsaid

LAYER_SUFFIXES = (".weight", "_weight", ".bias", "_bias")
"""The ends of the names of a layer's parameters."""

STYLES = {"column": (0, 0), "row": (1, None)}
"""For each style of a layer the dimension of its weight and of its bias that is cut."""

Dimensions = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ReadPlacements:
    """The placements of a graph's tensors, as a plan can say them."""

    forms: Mapping[str, Dimensions]
    """For each tensor that is fixed, the dimension that each step splits: data that are named, all
    parameters, and the states of optimizers, which lie as their parameters do.
    """

    changed: tuple[Unsaid, ...]
    """Tensors whose parts are other ones than the placements give, with the reason."""


def read_placements(graph: Graph, placements: Mapping[str, Any], mesh: NamedMesh) -> ReadPlacements:
    """Read placements of parameters and data, by name or pattern; parameters that none names replicate.

    Raises PlanError for a name that matches nothing, and for what is not a placement or does not fit.
    """
    return _Reading(graph, placements, mesh).run()


def axes_of_steps(mesh: NamedMesh) -> tuple[int, ...]:
    """Return for each prime factor of the number of workers, largest first, the axis that it belongs to."""
    left, found = list(mesh.sizes), []
    for factor in prime_factors(mesh.workers):
        axis = next(axis for axis, size in enumerate(left) if size % factor == 0)
        left[axis] //= factor
        found.append(axis)
    return tuple(found)


class _Reading:
    """Reads the placements of one graph."""

    def __init__(self, graph: Graph, placements: Mapping[str, Any], mesh: NamedMesh) -> None:
        if not isinstance(placements, Mapping):
            raise PlanError(
                f"placements are a {type(placements).__name__}; give a dict from names to placements"
            )
        self._graph, self._placements, self._mesh = graph, placements, mesh
        self._factors, self._axes = prime_factors(mesh.workers), axes_of_steps(mesh)
        self._changed: list[Unsaid] = []

    def run(self) -> ReadPlacements:
        tensors = [t for t in self._graph.tensors if t.alias is None]
        named = self._by_name([t for t in tensors if t.role in (Role.PARAMETER, Role.DATA)])
        forms: dict[str, Dimensions] = {}
        of_parameter: dict[int, Tensor] = {}
        for tensor in tensors:
            if tensor.name in named:
                forms[tensor.name] = self._form(tensor, named[tensor.name])
            elif tensor.role is Role.PARAMETER:
                forms[tensor.name] = (None,) * len(self._factors)
            if tensor.role is Role.PARAMETER:
                of_parameter[tensor.index] = tensor
        for operation in self._graph.operations:
            if operation.phase is Phase.UPDATE:
                read = [self._graph.tensors[i] for i in operation.inputs]
                parameter = next((t for t in read if t.index in of_parameter), None)
                for state in read:
                    same = parameter is not None and state.shape == parameter.shape
                    if parameter is not None and same and state.role in (Role.STATE, Role.ACCUMULATOR):
                        forms[state.name] = forms[parameter.name]
        if self._axes != tuple(sorted(self._axes)):
            text = f"steps go from the largest factor to the smallest, {self._factors}, whatever the axes"
            self._changed.append(Unsaid("the order of workers", Obstacle("workers", text)))
        return ReadPlacements(forms, tuple(self._changed))

    def _by_name(self, tensors: Sequence[Tensor]) -> dict[str, Placements]:
        """Return the placements of every tensor that a key names; a name counts more than a pattern."""
        found: dict[str, Placements] = {}
        used: set[str] = set()
        known = {tensor.name for tensor in tensors}
        keys = sorted(self._placements, key=lambda key: key not in known)
        for tensor in tensors:
            for key in keys:
                said = self._said(key, tensor)
                if said is not None:
                    used.add(key)
                    found.setdefault(tensor.name, said)
        for key in self._placements:
            if key not in used:
                raise PlanError(f"{key!r} matches no parameter or input{alternatives(key, known)}")
        return found

    def _said(self, key: str, tensor: Tensor) -> Placements | None:
        """Return what a key says of a tensor; None if it does not mean it."""
        value = self._placements[key]
        styles = {each for each in value.values() if isinstance(each, str)} if _is_mapping(value) else set()
        layer = next((tensor.name[: -len(s)] for s in LAYER_SUFFIXES if tensor.name.endswith(s)), None)
        if styles & STYLES.keys():
            if layer is None or not fnmatchcase(layer, key):
                return None
        elif tensor.name != key and not fnmatchcase(tensor.name, key):
            return None
        return self._placements_of(value, tensor, f"{key!r}")

    def _placements_of(self, value: Any, tensor: Tensor, place: str) -> Placements:
        names = self._mesh.names
        if _is_mapping(value):
            unknown = next((name for name in value if name not in names), None)
            if unknown is not None:
                raise PlanError(
                    f"placements of {place} name the axis {unknown!r}{alternatives(str(unknown), names)}"
                )
            listed = [value.get(name, Replicate()) for name in names]
        elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) == len(names):
            listed = list(value)
        else:
            raise PlanError(
                f"placements of {place} are {str(value)[:80]}; give one for each axis of {self._mesh}, or a "
                "dict by axis, such as {'tp': Shard(0)}"
            )
        axes = zip(names, listed, strict=True)
        return tuple(self._placement(each, tensor, f"{place} on axis {name!r}") for name, each in axes)

    def _placement(self, value: Any, tensor: Tensor, place: str) -> Placement:
        if isinstance(value, str) and value in STYLES:
            of_weight, of_bias = STYLES[value]
            dim = of_bias if tensor.name.endswith("bias") else of_weight
            value = Replicate() if dim is None else Shard(dim)
        found = as_placement(value)
        if isinstance(found, Replicate):
            return found
        if not isinstance(found, Shard):
            raise PlanError(
                f"the placement of {place} is {str(value)[:60]}; a parameter or an input has Shard(dim), "
                "Replicate(), 'column' or 'row'"
            )
        rank = len(tensor.shape)
        if not -rank <= found.dim < rank:
            raise PlanError(
                f"the placement of {place} cuts dimension {found.dim} of {tensor.name!r}, whose shape is "
                f"{tensor.shape}; choose one of 0 to {rank - 1}"
            )
        return Shard(found.dim % rank)

    def _form(self, tensor: Tensor, placements: Placements) -> Dimensions:
        """Return the form of a tensor; a step for which too few elements are left replicates."""
        left = list(tensor.shape)
        entries: list[int | None] = []
        for axis, factor in zip(self._axes, self._factors, strict=True):
            placement = placements[axis]
            if not isinstance(placement, Shard) or left[placement.dim] < factor:
                entries.append(None)
                continue
            left[placement.dim] //= factor
            entries.append(placement.dim)
        form = tuple(entries)
        if not self._same_parts(tensor.shape, form, placements):
            text = f"{placements} cut {tensor.shape} unevenly; scored as even parts along {form}"
            self._changed.append(Unsaid(f"tensor {tensor.name!r}", Obstacle("uneven", text)))
        return form

    def _same_parts(self, shape: Shape, form: Dimensions, placements: Placements) -> bool:
        """Tell whether the parts are those of DTensor, whatever their workers."""
        ours, theirs = Layout(shape, form, self._factors).regions, chunks(shape, placements, self._mesh)
        ordered = (np.unique(each, axis=0, return_counts=True) for each in (ours, theirs))
        (a, m), (b, n) = ordered
        return np.array_equal(a, b) and np.array_equal(m, n)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)

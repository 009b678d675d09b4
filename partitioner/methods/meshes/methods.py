"""Data parallelism, ZeRO and Megatron: training on a mesh as its authors describe it, whatever the operators.

    data-parallel   parameters whole on every worker, samples split over all of them; gradients are reduced in
                    parts, each worker updates its part with the state that belongs to it, and all fetch the
                    new parameters: 2 (n - 1) times the parameters
    zero-3          parameters are split as well; each is fetched before its readers of a phase, and dropped
                    after them: 3 (n - 1) times the parameters
    megatron        samples are split over groups; within a group, contracted parameters are split along their
                    rows or columns, tables along either over the group or over all workers
    megatron-sp     so, and nothing with samples is repeated within a group

No method has a rule for an operator: `axes` finds the purpose of dimensions, `forms` the forms that are
allowed, and `search` those that move the fewest bytes. Guarantees: the least bytes of all plans that the
style allows on the mesh, unless the graph is too wide.
"""

from __future__ import annotations

from dataclasses import replace

from ....dataflow.graph import Graph, Role
from ....errors import PlanError
from ....support.wording import counted
from ...costs.plan_bytes import PartCounts
from ...layouts.step_split import prime_factors
from ...plans.compose import compose
from ...plans.plan import Plan
from ...plans.space import Space
from ...problem.classes import build_problem
from ...problem.problem import Problem
from .axes import Axes, find_axes
from .forms import Allowed, Style
from .mesh import Mesh, meshes, parse_mesh
from .search import Forms, least_forms

DATA_PARALLEL = Style("data-parallel")
ZERO_3 = Style("zero-3", split_parameters=True)
MEGATRON = Style("megatron", splits_features=True, refetches=False)
MEGATRON_SP = Style("megatron-sp", splits_features=True, sequence=True)


def data_parallel(graph: Graph, workers: int, space: Space) -> Plan:
    """Return the plan of data parallelism with two-hop reductions and split optimizer state."""
    return _planned(graph, workers, space, DATA_PARALLEL, [Mesh(workers, 1)])


def zero_3(graph: Graph, workers: int, space: Space) -> Plan:
    """Return the plan in which parameters, gradients and state are split, and parameters fetched."""
    return _planned(graph, workers, space, ZERO_3, [Mesh(workers, 1)])


def megatron(graph: Graph, workers: int, space: Space, mesh: str | None = None) -> Plan:
    """Return the plan of Megatron on a mesh, or on the mesh on which it moves the fewest bytes."""
    return _on_mesh(graph, workers, space, MEGATRON, mesh)


def megatron_sp(graph: Graph, workers: int, space: Space, mesh: str | None = None) -> Plan:
    """Return the plan of Megatron with sequence parallelism on a mesh, or on the best one."""
    return _on_mesh(graph, workers, space, MEGATRON_SP, mesh)


def _on_mesh(graph: Graph, workers: int, space: Space, style: Style, mesh: str | None) -> Plan:
    tried = meshes(workers) if mesh is None else [parse_mesh(mesh, workers)]
    return _planned(graph, workers, space, style, tried)


def _planned(graph: Graph, workers: int, space: Space, style: Style, tried: list[Mesh]) -> Plan:
    """Return the plan that moves the fewest bytes on one of several meshes.

    Raises PlanError if the model has too few samples, or no layers, for any of them.
    """
    factors = prime_factors(workers)
    problem = build_problem(graph, None, space)
    axes = find_axes(problem)
    if any(operation.tie is not None for operation in graph.operations):
        problem = build_problem(_without_ties(problem, axes), None, space)
        axes = find_axes(problem)

    def on(mesh: Mesh) -> Allowed:
        return Allowed(problem, _for_mesh(axes, problem, mesh), mesh, style, factors)

    def fitting(some: list[Mesh]) -> list[Mesh]:
        return [mesh for mesh in some if _refusal(on(mesh)) is None]

    if not fitting(tried):
        raise _refused(on(tried[0]), fitting(meshes(workers)))
    found: list[tuple[Mesh, Forms]] = []
    counts = PartCounts(factors)
    refused: PlanError | None = None
    for mesh in fitting(tried):
        try:
            found.append((mesh, least_forms(on(mesh), counts)))
        except PlanError as error:
            refused = refused or error
    if refused is not None and not found:
        raise refused
    mesh, forms = min(found, key=lambda each: each[1].moved_bytes)
    plan = compose(graph, workers, forms.operations, forms.tensors, copies=forms.copies)
    return replace(plan, method=f"{style.name}:{mesh}" if style.splits_features else style.name)


def _for_mesh(axes: Axes, problem: Problem, mesh: Mesh) -> Axes:
    """Return the axes, without terms of sums over the batch if one of these sums has too few samples."""
    terms, variable = axes.samples.terms, axes.samples.variable
    makers = {link.operator for link in problem.links if isinstance(link.use, int) and link.tensor in terms}
    extents = (problem.operators[n].extents[v] for n, v in variable.items() if n in makers)
    if all(extent >= mesh.data for extent in extents):
        return axes
    return replace(axes, samples=replace(axes.samples, terms=frozenset()), term_readers=frozenset())


def _without_ties(problem: Problem, axes: Axes) -> Graph:
    """Return the graph in which operations without samples decide alone.

    The gradients of a cell's parameters are added over its steps. All sums but the last may stay terms.
    """
    operations = [
        operation if number in axes.samples.variable else replace(operation, tie=None)
        for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True)
    ]
    return replace(problem.graph, operations=tuple(operations))


def _refusal(allowed: Allowed) -> str | None:
    """Return why a graph has too few samples, or no or too narrow layers, for a mesh; None if it fits."""
    graph, mesh, style = allowed.problem.graph, allowed.mesh, allowed.style
    if style.splits_features and not allowed.widest:
        return (
            f"{style.name} splits parameters that are multiplied or looked up, but {graph.name!r} has none "
            "of several rows and columns; choose another method"
        )
    samples = max((t.shape[0] for t in graph.tensors if t.role is Role.DATA and t.shape), default=0)
    if mesh.data > max(samples, 1):
        return (
            f"{style.name} splits a batch over {mesh.data} workers or groups of workers, but {graph.name!r} "
            f"has {counted(samples, 'sample')}; choose a larger batch or fewer workers"
        )
    if style.splits_features and mesh.tensor > allowed.widest:
        return (
            f"{style.name} splits parameters that are multiplied or looked up over {mesh.tensor} workers, "
            f"but those of {graph.name!r} have at most {allowed.widest} rows or columns; choose another "
            "method"
        )
    return None


def _refused(allowed: Allowed, fitting: list[Mesh]) -> PlanError:
    """Return the error for a mesh that a graph does not fit, which names meshes that it does."""
    others = ", ".join(map(str, fitting)) if allowed.style.splits_features else ""
    return PlanError(f"{_refusal(allowed)}{others and f', or one of the meshes {others}'}")

"""Expand a symbol to forward operations: every operator becomes its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..analyzer.indices.region import Shape
from ..operators.gradients import Gradient
from ..operators.operator import Operator
from ..operators.stages.stage import Stage, output_names
from .builder import GraphBuilder
from .graph import Role
from .nested_concatenations import nested_concatenations, replaced
from .node import Entry, Node, auxiliary_variables
from .states import StateUpdate, StateUpdates
from .symbol import Symbol
from .symbol.shapes import Table
from .ties import find_ties


@dataclass(frozen=True, slots=True)
class PlacedStage:
    """One stage as placed in the graph: `inputs` and `outputs` are tensor numbers."""

    stage: Stage
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """One operator of the symbol as expanded. Tensors are numbers in the graph."""

    name: str
    """The name of the symbol's node."""

    operator: Operator
    """The operator."""

    gradient: Gradient | None
    """How head gradients become gradients of the arguments; None if the graph is not for training."""

    is_loss: bool
    """Whether the backward pass starts here, without head gradients."""

    steps: tuple[PlacedStage, ...]
    """The operator's stages, in execution order."""

    tensors: Mapping[str, int]
    """The tensor of every name that stages and gradients may read: arguments, auxiliary states, the results
    of stages, and the outputs `output_0`, `output_1`, ..."""

    outputs: tuple[int, ...]
    """The tensor of each output."""

    tie: str | None
    """The name that its stages share with those of other applications that take the same strategies; None if
    they decide alone."""


@dataclass(frozen=True, slots=True)
class ExpandedSymbol:
    """A symbol's forward graph: applications in execution order, and the tensor of every entry."""

    applications: tuple[Application, ...]
    outputs: tuple[int, ...]
    variables: Mapping[str, int]


def expand(
    builder: GraphBuilder, symbol: Symbol, table: Table, data: Collection[str], training: bool
) -> ExpandedSymbol:
    """Add the symbol's forward operations to the builder; variables named in `data` are fed, others kept.

    In training, auxiliary states get their updates.
    """
    return _Expander(builder, symbol, table, data, training).run()


class _Expander:
    def __init__(
        self, builder: GraphBuilder, symbol: Symbol, table: Table, data: Collection[str], training: bool
    ) -> None:
        made = nested_concatenations(symbol.nodes)
        self.builder = builder
        self.nodes = tuple(made.values())
        self.heads = [replaced(head, made) for head in symbol.heads]
        self.table = {made[node]: shapes for node, shapes in table.items()}
        self.data = data
        self.training = training
        self.entries: dict[Entry, int] = {}
        self.variables: dict[str, int] = {}
        self.recipes: dict[tuple[object, ...], _Recipe] = {}
        self.ties = find_ties(self.nodes, data)

    def run(self) -> ExpandedSymbol:
        auxiliary = auxiliary_variables(self.nodes)
        for node in self.nodes:
            if node.is_variable:
                role = Role.AUXILIARY if node in auxiliary else Role.PARAMETER
                role = Role.DATA if node.name in self.data else role
                index = self.builder.tensor(node.name, self.shape(Entry(node, 0)), role)
                self.entries[Entry(node, 0)] = self.variables[node.name] = index
        updates = StateUpdates(self.builder, self.update_counts())
        applications = [self.apply(node, updates) for node in self.nodes if not node.is_variable]
        outputs = tuple(self.entries[head] for head in self.heads)
        return ExpandedSymbol(tuple(applications), outputs, self.variables)

    def shape(self, entry: Entry) -> Shape:
        shape = self.table[entry.node][entry.output]
        assert shape is not None
        return tuple([extent or 0 for extent in shape])

    def update_counts(self) -> Counter[int]:
        """Count the updates of each auxiliary state that is a variable."""
        found: Counter[int] = Counter()
        for node in self.nodes:
            if node.operator is None or not node.operator.auxiliary:
                continue
            updated = self.recipe(node, node.operator, self.shapes_of(node, node.operator)).updates
            states = zip(reversed(node.operator.auxiliary), reversed(node.inputs), strict=False)
            found.update(self.entries[entry] for state, entry in states if state in updated)
        return found

    def shapes_of(self, node: Node, operator: Operator) -> dict[str, Shape]:
        """Return the shapes of what the node's operator takes and returns."""
        slots = (*operator.arguments(node.attributes), *operator.auxiliary)
        shapes = {slot: self.shape(entry) for slot, entry in zip(slots, node.inputs, strict=True)}
        shapes |= {f"output_{index}": self.shape(Entry(node, index)) for index in range(len(node.outputs))}
        return shapes | dict.fromkeys(operator.seeds, (1,))

    def recipe(self, node: Node, operator: Operator, shapes: Mapping[str, Shape]) -> _Recipe:
        key = (id(operator), node.attributes, tuple(shapes.values()))
        recipe = self.recipes.get(key)
        if recipe is None:
            recipe = _Recipe(
                operator.stages(node.attributes, shapes, self.training),
                operator.gradient(node.attributes, shapes, self.training) if self.training else None,
                operator.updates(node.attributes, shapes) if self.training and operator.auxiliary else {},
            )
            self.recipes[key] = recipe
        return recipe

    def apply(self, node: Node, updates: StateUpdates) -> Application:
        operator = node.operator
        assert operator is not None
        slots = (*operator.arguments(node.attributes), *operator.auxiliary)
        tensors = {slot: self.entries[entry] for slot, entry in zip(slots, node.inputs, strict=True)}
        recipe = self.recipe(node, operator, self.shapes_of(node, operator))
        seeds = self.seeds(node, recipe)
        tensors |= seeds
        tie = self.ties.get(node)
        results = dict(
            zip(output_names(len(node.outputs)), map(node.output_name, range(len(node.outputs))), strict=True)
        )
        steps = []
        for stage in recipe.stages:
            last = stage is recipe.stages[-1]
            names = [
                results[product]
                if product in results
                else self.builder.unique_tensor_name(f"{node.name}.{product}")
                for product in stage.produces
            ]
            inputs = tuple([tensors[name] for name in stage.inputs])
            outputs = self.builder.apply(
                node.name if last else f"{node.name}.{stage.produces[0]}",
                stage,
                inputs,
                names,
                tie=tie and (tie if last else f"{tie}.{stage.produces[0]}"),
            )
            steps.append(PlacedStage(stage, inputs, outputs))
            tensors.update(zip(stage.produces, outputs, strict=True))
        outputs = tuple([tensors[product] for product in results])
        for index, output in enumerate(outputs):
            self.entries[Entry(node, index)] = output
        for state, stage in recipe.updates.items():
            updates.add(StateUpdate(node, state, stage, tensors))
        for seed in seeds:
            updates.add(StateUpdate(node, seed, operator.seed_update(seed), tensors))
        is_loss = operator.starts_backward(node.attributes)
        return Application(node.name, operator, recipe.gradient, is_loss, tuple(steps), tensors, outputs, tie)

    def seeds(self, node: Node, recipe: _Recipe) -> dict[str, int]:
        """Make a state of one element for each seed that the stages read."""
        assert node.operator is not None
        read = {name for stage in recipe.stages for name in stage.inputs}
        return {
            seed: self.builder.tensor(f"{node.name}.{seed}", (1,), Role.AUXILIARY)
            for seed in node.operator.seeds
            if seed in read
        }


@dataclass(frozen=True, slots=True)
class _Recipe:
    """An operator for given attributes and shapes."""

    stages: Sequence[Stage]
    gradient: Gradient | None
    updates: Mapping[str, Stage]

"""Operators: what `tofu.op`, `tofu.parse` and `tofu.operators.get` return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import tdl
from ..analyzer.bind.shapes import shapes_by_name
from ..analyzer.indices.region import Shape
from ..errors import OperatorError
from ..tdl import ast
from .gradients import (
    DerivedTerm,
    Gradient,
    Produced,
    computed,
    custom_gradients,
    derived_gradients,
    derived_terms,
)
from .inference import Hints, ShapeRules, infer
from .shapes.shape_solver import PartialShape
from .stages.attributes import Attributes, AttributeSpec, check_attributes
from .stages.bound_operator import BoundOperator
from .stages.build_stages import describe, produced_shapes, stages_of
from .stages.definition import Definition, Variant
from .stages.stage import Stage, derived, output_names
from .stages.staged_bound_operator import StagedBoundOperator, bind_variant

Array = npt.NDArray[Any]

NEXT_SEED = "def next_{seed}({seed}):\n    return lambda one=1: ({seed}[one] + 1) % 8388608"
"""Whole numbers below 2**23 are exact in every floating-point type."""


@dataclass(frozen=True, slots=True)
class Example:
    """Attributes and small shapes to show, audit and test an operator with."""

    shapes: Mapping[str, Shape]
    """A small shape for each tensor."""

    attributes: Mapping[str, object] = field(default_factory=dict)
    """Values of the attributes."""

    whole: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For tensors of positions, labels or lengths: the interval that their whole numbers lie in."""

    domain: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)
    """For other tensors: functions from numbers between 0 and 1 to numbers that the operator accepts."""

    def tensors(self, generator: np.random.Generator) -> dict[str, Array]:
        """Return random values for the tensors."""
        found = {}
        for name, shape in self.shapes.items():
            if name in self.whole:
                found[name] = generator.integers(*self.whole[name], shape).astype(np.float64)
            else:
                values = generator.uniform(0.1, 0.9, shape)
                found[name] = self.domain[name](values) if name in self.domain else values
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator, given by its description. Two operators are equal if their fields are."""

    name: str
    """The operator's name, by which `tofu.operators.get` and `tofu.sym` know those of the library."""

    definition: Definition
    """Makes the description for training."""

    argument_names: Callable[[Attributes], tuple[str, ...]]
    """Names of the tensors that a user gives."""

    specs: tuple[AttributeSpec, ...] = ()
    """The attributes."""

    output_count: Callable[[Attributes], int] | None = None
    """The number of outputs that users see; None for those of the description."""

    auxiliary: tuple[str, ...] = ()
    """Names of the states that a training iteration overwrites."""

    inference_definition: Definition | None = None
    """Makes the description for inference; None if it is the one for training. BatchNorm has another."""

    update_definitions: Callable[[Attributes], Mapping[str, Definition]] | None = None
    """Descriptions of the new values of auxiliary states, by state."""

    gradient_definition: Callable[[Attributes, Mapping[str, Shape]], Variant | None] | None = None
    """Replaces the derived adjoint, unless it returns None. It takes the attributes, and the shapes of
    everything that the forward stages read and produce."""

    hints: Hints | None = None
    """Adds shapes that the description cannot be solved for."""

    is_loss: bool = False
    """Whether the backward pass starts here, without head gradients."""

    head_attribute: str | None = None
    """A flag among the attributes. If it is set, a loss takes head gradients after all."""

    visible_names: tuple[str, ...] = ()
    """The outputs' names for users; empty for `output0`, `output1`, ..."""

    differentiable: bool = True
    """Whether there are gradients; if not, they are zero."""

    overwrites: tuple[str, ...] = ()
    """For optimizer updates: the argument that each output replaces."""

    seeds: tuple[str, ...] = ()
    """Names of states that users do not see, one whole number each. Every application of the operator has its
    own, and every training iteration increments them."""

    starts: Mapping[str, float] = field(default_factory=dict, hash=False)
    """By input, the number from which the variable that is made for it starts, if its name says another."""

    count_attribute: str | None = None
    """The attribute that holds the number of inputs, if the operator takes any number of them."""

    aliases: tuple[str, ...] = ()
    """Other names of the operator."""

    example: Example | None = None
    """Small shapes and attributes; None for users' operators."""

    written: ast.Description | None = None
    """The description, if it does not depend on attributes or shapes."""

    documentation: str = field(default="", compare=False)
    """The docstring of the operator's description."""

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __str__(self) -> str:
        """Return the description in canonical TDL."""
        return tdl.format(self.written or self.description())

    def __call__(self, *inputs: object, **arguments: object) -> NoReturn:
        """Raise OperatorError: `tofu.sym.apply` applies an operator to symbols, `bind` makes it
        computable.
        """
        raise OperatorError(
            f"{self.name} is a description and cannot be called; in a network it is "
            f"tofu.sym.apply({self.name}, ...), on arrays {self.name}.bind(shapes).compute(arrays)"
        )

    def attributes(self, values: Mapping[str, object] = MappingProxyType({})) -> Attributes:
        """Return attribute values, possibly as text, checked and completed with defaults.

        Raises OperatorError for an unknown or missing name (with a suggestion) or a bad value.
        """
        return check_attributes(self.name, self.specs, values)

    def arguments(self, attributes: Mapping[str, object]) -> tuple[str, ...]:
        """Return names of the input tensors, auxiliary states excluded, in order."""
        return self.argument_names(self.attributes(attributes))

    def outputs(self, attributes: Mapping[str, object]) -> tuple[str, ...]:
        """Return names of the outputs as stages and gradients know them: `output_0`, `output_1`, ..."""
        return output_names(self.output_count(self.attributes(attributes)) if self.output_count else 1)

    def description(
        self, shapes: Mapping[str, Shape] | None = None, /, training: bool = True, **attributes: object
    ) -> ast.Description:
        """Return the description as written, for these attributes and shapes.

        If neither is given, those of the example are taken. Raises OperatorError or ShapeError if more is
        needed.
        """
        if self.example is not None and not shapes and not attributes:
            return self.description(self.example.shapes, training, **self.example.attributes)
        return self._variant(self.attributes(attributes), shapes or {}, training).description

    def starts_backward(self, attributes: Mapping[str, object]) -> bool:
        """Return whether gradients of the arguments need no gradient of the output: a loss."""
        heads = self.head_attribute is not None and self.attributes(attributes).flag(self.head_attribute)
        return self.is_loss and not heads

    def stages(
        self, attributes: Mapping[str, object], shapes: Mapping[str, Shape], training: bool = True
    ) -> tuple[Stage, ...]:
        """Return the stages in execution order; the last one produces the outputs.

        `shapes` holds the shape of every argument and auxiliary state, and of the outputs if nothing else
        says it (`_zeros` with an unknown extent). Equal descriptions give the same stage objects. Raises
        OperatorError, ShapeError.
        """
        return stages_of(self._variant(self.attributes(attributes), shapes, training), shapes)

    def gradient(
        self, attributes: Mapping[str, object], shapes: Mapping[str, Shape], training: bool = True
    ) -> Gradient | None:
        """Return the custom gradient, or None if stages are differentiated through `Stage.adjoint`."""
        if not self.differentiable:
            return Gradient((), {})
        if self.gradient_definition is None:
            return None
        checked = self.attributes(attributes)
        known = produced_shapes(self.stages(checked, shapes, training), shapes)
        outputs = [name for name in known if name.startswith("output_")]
        known |= {name.replace("output_", "grad_"): known[name] for name in outputs}
        variant = self.gradient_definition(checked, known)
        if variant is None:
            return None
        stages = stages_of(variant, known)
        places = {
            name: Produced(index, output)
            for index, stage in enumerate(stages)
            for output, name in enumerate(stage.produces)
        }
        return Gradient(stages, {argument: places[name] for argument, name in variant.targets.items()})

    def gradient_terms(self, shapes: Mapping[str, Shape], /, **attributes: object) -> tuple[DerivedTerm, ...]:
        """Return the stages that make the gradients of all tensors, in the order in which they can run.

        They are derived from the description, also if the operator brings a gradient of its own. Raises
        OperatorError if a stage has no derived gradient, ShapeError.
        """
        return tuple(derived_terms(self.stages(self.attributes(attributes), shapes)))

    def gradients(
        self, tensors: Mapping[str, Array], heads: Sequence[Array], /, **attributes: object
    ) -> dict[str, Array]:
        """Return the gradients that training uses, by tensor, for a gradient of each output.

        A tensor without an entry has a gradient of zero. Everything is computed whole, in NumPy. Raises
        OperatorError, ShapeError.
        """
        checked = self.attributes(attributes)
        shapes = {name: array.shape for name, array in tensors.items()}
        stages, values = self.stages(checked, shapes), dict(tensors)
        for stage in stages:
            values.update(zip(stage.produces, computed(stage, values), strict=True))
        custom = self.gradient(checked, shapes)
        if custom is not None:
            return custom_gradients(custom, values, heads)
        found = derived_gradients(stages, values, heads)
        return {name: found[name] for name in tensors if name in found}

    def seed_update(self, seed: str) -> Stage:
        """Return the stage whose output overwrites a seed after a training iteration."""
        return derived(tdl.parse(NEXT_SEED.format(seed=seed)))

    def updates(self, attributes: Mapping[str, object], shapes: Mapping[str, Shape]) -> Mapping[str, Stage]:
        """Return for each auxiliary state the stage whose output overwrites it after a training iteration.

        Such a stage reads auxiliary states, arguments and what the forward stages produce, by name.
        """
        if self.update_definitions is None:
            return {}
        checked = self.attributes(attributes)
        known = produced_shapes(self.stages(checked, shapes), shapes)
        return {
            state: stages_of(describe(definition, checked, known, self.name), known)[-1]
            for state, definition in self.update_definitions(checked).items()
        }

    def infer(
        self, attributes: Mapping[str, object], shapes: Mapping[str, PartialShape]
    ) -> dict[str, PartialShape]:
        """Return every shape that follows from the given ones, forward and backward.

        Keys are arguments, auxiliary states and outputs (`output_0`, ...). A shape is None if not even
        the rank is known, a dimension is None if its extent is not. Raises ShapeError if two known
        values disagree.
        """
        return infer(self._shape_rules(self.attributes(attributes)), shapes)

    def bind(
        self, shapes: Mapping[str, Shape], /, training: bool = True, **attributes: object
    ) -> BoundOperator | StagedBoundOperator:
        """Return the operator for concrete shapes: output shapes, strategies, regions, `interpret`,
        `compute`.
        """
        checked = self.attributes(attributes)
        allowed = (*self.arguments(checked), *self.auxiliary, *self.seeds, *self.outputs(checked))
        shapes = shapes_by_name(self.name, shapes)
        variant = self._variant(checked, shapes, training)
        infer(self._shape_rules(checked), shapes)
        return bind_variant(variant, shapes, allowed)

    def _shape_rules(self, attributes: Attributes) -> ShapeRules:
        """Shapes are the same in training and inference. The description of inference is the simpler one."""
        return ShapeRules(
            self.name,
            self.inference_definition or self.definition,
            attributes,
            (*self.arguments(attributes), *self.auxiliary),
            self.outputs(attributes),
            self.hints,
            self.seeds,
        )

    def _variant(self, attributes: Attributes, shapes: Mapping[str, Shape], training: bool) -> Variant:
        definition = self.definition
        if not training and self.inference_definition is not None:
            definition = self.inference_definition
        return describe(definition, attributes, shapes, self.name)

"""Operators: what `tofu.op`, `tofu.parse` and `tofu.operators.get` return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from .. import tdl
from ..analyzer.bind.shapes import shapes_by_name
from ..analyzer.indices.region import Shape
from ..errors import OperatorError
from ..tdl import ast
from .inference import infer
from .shapes.shape_solver import PartialShape
from .stages.attributes import Attributes, AttributeSpec, check_attributes
from .stages.binding import Binding, bind_variant
from .stages.bound_operator import BoundOperator
from .stages.build_stages import describe, produced_shapes, stages_of
from .stages.definition import Definition, Variant
from .stages.stage import Stage, derived, output_names

Array = npt.NDArray[Any]

NEXT_SEED = "def next_{seed}({seed}):\n    return lambda one=1: ({seed}[one] + 1) % 8388608"
"""Whole numbers below 2**23 are exact in every floating-point type."""


class Produced(NamedTuple):
    """Which stage, and which of its outputs, holds a value."""

    stage: int
    output: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """A custom gradient: stages in execution order, and where each argument's gradient appears.

    The stages read, by name: head gradients `grad_0`, `grad_1`, ..., forward outputs `output_0`, ...,
    arguments, auxiliary states, what stages of the forward operator produce, and what earlier stages of
    the gradient produce. An argument without a target has a gradient of zero.
    """

    stages: tuple[Stage, ...]
    targets: Mapping[str, Produced]


@dataclass(frozen=True, slots=True)
class Example:
    """Attributes and small shapes to show, audit and test an operator with.

    `whole` gives, for tensors of positions, labels or lengths, the interval that their whole numbers lie in.
    `domain` takes, for other tensors, numbers between 0 and 1 to such that the operator is defined for.
    """

    shapes: Mapping[str, Shape]
    attributes: Mapping[str, object] = field(default_factory=dict)
    whole: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    domain: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)

    def tensors(self, generator: np.random.Generator) -> dict[str, Array]:
        """Random values for the tensors."""
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
    """An operator by its description; two operators are equal if they are described alike.

    `definition` gives the description for training, `inference_definition` the one for inference where
    that differs (BatchNorm). `argument_names` are the tensors a user gives, `auxiliary` the states that an
    iteration overwrites as `update_definitions` say. `gradient_definition` replaces the derived adjoint
    (unless it gives None); it is handed the shapes of everything that the forward stages read and produce.
    `hints` adds shapes that the description cannot be solved for. A loss starts the backward pass without
    head gradients, unless the flag `head_attribute` is set. `visible_names` says what users call several
    outputs, where that is not `output0`, `output1`, ... `overwrites` names, for optimizer
    updates, the argument that each output replaces. An operator that is not `differentiable` has gradients
    of zero. `seeds` are states of one whole number each that no user sees: every application has its own, and
    a training iteration counts them up. `count_attribute` is the attribute that holds the
    number of inputs of an operator that takes any number of them. `written` is the description of an
    operator that is one text whatever its attributes.
    """

    name: str
    definition: Definition
    argument_names: Callable[[Attributes], tuple[str, ...]]
    specs: tuple[AttributeSpec, ...] = ()
    output_count: Callable[[Attributes], int] | None = None
    auxiliary: tuple[str, ...] = ()
    inference_definition: Definition | None = None
    update_definitions: Callable[[Attributes], Mapping[str, Definition]] | None = None
    gradient_definition: Callable[[Attributes, Mapping[str, Shape]], Variant | None] | None = None
    hints: Callable[[Attributes, Mapping[str, PartialShape]], Mapping[str, PartialShape]] | None = None
    is_loss: bool = False
    head_attribute: str | None = None
    visible_names: tuple[str, ...] = ()
    differentiable: bool = True
    overwrites: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    count_attribute: str | None = None
    aliases: tuple[str, ...] = ()
    example: Example | None = None
    written: ast.Description | None = None
    documentation: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __str__(self) -> str:
        """The description in canonical TDL."""
        return tdl.format(self.written or self.description())

    def __call__(self, *inputs: object, **arguments: object) -> NoReturn:
        """Refused: operators are applied to symbols by `tofu.sym.apply`, and computed once they are bound."""
        raise OperatorError(
            f"{self.name} is a description and cannot be called; in a network it is "
            f"tofu.sym.apply({self.name}, ...), on arrays {self.name}.bind(shapes).compute(arrays)"
        )

    def attributes(self, values: Mapping[str, object] = MappingProxyType({})) -> Attributes:
        """Attribute values, possibly as text, checked and completed with defaults.

        Raises OperatorError for an unknown or missing name (with a suggestion) or a bad value.
        """
        return check_attributes(self.name, self.specs, values)

    def arguments(self, attributes: Mapping[str, object]) -> tuple[str, ...]:
        """Names of the input tensors, auxiliary states excluded, in order."""
        return self.argument_names(self.attributes(attributes))

    def outputs(self, attributes: Mapping[str, object]) -> tuple[str, ...]:
        """Names of the outputs as stages and gradients know them: `output_0`, `output_1`, ..."""
        return output_names(self.output_count(self.attributes(attributes)) if self.output_count else 1)

    def description(
        self, shapes: Mapping[str, Shape] | None = None, training: bool = True, **attributes: object
    ) -> ast.Description:
        """The description as written, for these attributes and shapes.

        Where neither is given that of the example. Raises OperatorError, ShapeError where more is needed.
        """
        if self.example is not None and not shapes and not attributes:
            return self.description(self.example.shapes, training, **self.example.attributes)
        return self._variant(self.attributes(attributes), shapes or {}, training).description

    def starts_backward(self, attributes: Mapping[str, object]) -> bool:
        """Whether gradients of the arguments need no gradient of the output: a loss."""
        heads = self.head_attribute is not None and self.attributes(attributes).flag(self.head_attribute)
        return self.is_loss and not heads

    def stages(
        self, attributes: Mapping[str, object], shapes: Mapping[str, Shape], training: bool = True
    ) -> tuple[Stage, ...]:
        """The stages in execution order; the last one produces the outputs.

        `shapes` holds the shape of every argument and auxiliary state, and of the outputs where nothing else
        says it (`_zeros` with an unknown extent). Equal descriptions give the same stage objects. Raises
        OperatorError, ShapeError.
        """
        return stages_of(self._variant(self.attributes(attributes), shapes, training), shapes)

    def gradient(
        self, attributes: Mapping[str, object], shapes: Mapping[str, Shape], training: bool = True
    ) -> Gradient | None:
        """The custom gradient, or None where stages are differentiated through `Stage.adjoint`."""
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

    def seed_update(self, seed: str) -> Stage:
        """The stage whose output overwrites a seed after a training iteration."""
        return derived(tdl.parse(NEXT_SEED.format(seed=seed)))

    def updates(self, attributes: Mapping[str, object], shapes: Mapping[str, Shape]) -> Mapping[str, Stage]:
        """For each auxiliary state the stage whose output overwrites it after a training iteration.

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
        """Every shape that follows from the given ones, forward and backward.

        Keys are arguments, auxiliary states and outputs (`output_0`, ...). A shape is None where not even
        the rank is known, a dimension is None where its extent is not. Raises ShapeError where two known
        values disagree.
        """
        return infer(self, self.attributes(attributes), shapes)

    def bind(
        self, shapes: Mapping[str, Shape], training: bool = True, **attributes: object
    ) -> BoundOperator | Binding:
        """The operator for concrete shapes: output shapes, strategies, regions, `interpret`, `compute`."""
        checked = self.attributes(attributes)
        allowed = (*self.arguments(checked), *self.auxiliary, *self.seeds, *self.outputs(checked))
        shapes = shapes_by_name(self.name, shapes)
        variant = self._variant(checked, shapes, training)
        infer(self, checked, shapes)
        return bind_variant(variant, shapes, allowed)

    def _variant(self, attributes: Attributes, shapes: Mapping[str, Shape], training: bool) -> Variant:
        definition = self.definition
        if not training and self.inference_definition is not None:
            definition = self.inference_definition
        return describe(definition, attributes, shapes, self.name)

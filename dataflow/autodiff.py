"""Differentiate the stages of a forward graph in reverse mode (Tofu, section 2).

An operation's gradient is derived from its description: one or more adjoint stages for each tensor that it
reads. Operators with a custom gradient, among them the losses that start the backward pass, are
differentiated as a whole. Gradients that are zero everywhere are never made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from ..operators.library import registry
from ..operators.stages.stage import Stage
from ..tdl import ast
from .builder import GraphBuilder
from .expand import Application, ExpandedSymbol, PlacedStage
from .graph import Phase, Role
from .loss_scale import scaled_gradient


def differentiate(
    builder: GraphBuilder,
    expansion: ExpandedSymbol,
    targets: Iterable[int],
    heads: Mapping[int, int],
    loss_scale: float = 1.0,
) -> dict[int, int]:
    """Add the backward operations; return the gradient of each tensor in `targets` that has one.

    `heads` maps outputs to the tensors that hold their gradients; losses need none. All gradients are those
    of the losses times `loss_scale`, and so must `heads` be. Raises OperatorError if an operator on the way
    has no gradient.
    """
    targets = tuple(targets)
    gradients = _Backward(builder, expansion, targets, heads, loss_scale).run()
    return {tensor: gradients[tensor] for tensor in targets if tensor in gradients}


class _Backward:
    def __init__(
        self,
        builder: GraphBuilder,
        expansion: ExpandedSymbol,
        targets: Iterable[int],
        heads: Mapping[int, int],
        loss_scale: float,
    ) -> None:
        self.builder = builder
        self.loss_scale = loss_scale
        self.expansion = expansion
        self.targets = frozenset(targets)
        self.gradients: dict[int, int] = dict(heads)
        self.terms: dict[int, int] = dict.fromkeys(heads, 1)
        self.ties = _ties(expansion)
        self.wanted = self._wanted()

    def run(self) -> dict[int, int]:
        for application in reversed(self.expansion.applications):
            if application.gradient is None:
                self.derive(application)
            else:
                self.apply_custom(application)
        return self.gradients

    def _wanted(self) -> set[int]:
        """Find the tensors through which a gradient reaches a target; only their gradients are made."""
        wanted = set(self.targets)
        for application in self.expansion.applications:
            gradient = application.gradient
            if gradient is not None and not any(
                application.tensors[name] in wanted for name in gradient.targets
            ):
                continue
            for step in application.steps:
                if any(index in wanted for index in step.inputs):
                    wanted.update(step.outputs)
        return wanted

    def derive(self, application: Application) -> None:
        """Differentiate stage by stage, the last one first."""
        for step in reversed(application.steps):
            if not any(output in self.gradients for output in step.outputs):
                continue
            # Weights come after the data; their gradients go first, so that an activation is freed before
            # its own gradient is made.
            for name, tensor in reversed(tuple(zip(step.stage.inputs, step.inputs, strict=True))):
                if tensor not in self.wanted:
                    continue
                stages = step.stage.adjoint(name)
                if tensor not in self.targets and len(stages) == 1 and _is_identity(stages[0]):
                    self.add(tensor, self.head(step.outputs[0]), tied=application.tie is not None)
                    continue
                for number, stage in enumerate(stages, 1):
                    role = f"{step.stage.name}.{name}" + (f".{number}" if len(stages) > 1 else "")
                    self.contribute(application, role, stage, tensor, self.adjoint_inputs(step, stage))

    def adjoint_inputs(self, step: PlacedStage, stage: Stage) -> tuple[int, ...]:
        """List what an adjoint reads: gradients of the outputs, outputs, and the stage's inputs."""
        own = dict(zip(step.stage.inputs, step.inputs, strict=True))
        outputs = {f"output_{k}": output for k, output in enumerate(step.outputs)}
        heads = {f"grad_{k}": k for k in range(len(step.outputs))}
        read = []
        for name in stage.inputs:
            if name in heads:
                read.append(self.head(step.outputs[heads[name]]))
            elif name in outputs and name not in own:
                read.append(outputs[name])
            else:
                read.append(own[name])
        return tuple(read)

    def apply_custom(self, application: Application) -> None:
        """Differentiate an operator as a whole, through the gradient that it brings."""
        assert application.gradient is not None
        gradient = scaled_gradient(application.gradient, self.loss_scale)
        reached = any(output in self.gradients for output in application.outputs)
        if not reached and not application.is_loss:
            return
        produced: dict[tuple[int, int], list[str]] = {}
        for argument, place in gradient.targets.items():
            if application.tensors[argument] in self.wanted:
                produced.setdefault((place.stage, place.output), []).append(argument)
        if not produced:
            return
        tensors = dict(application.tensors)
        for k, output in enumerate(application.outputs):
            if any(f"grad_{k}" in stage.inputs for stage in gradient.stages):
                tensors[f"grad_{k}"] = self.head(output)
        for position, stage in enumerate(gradient.stages):
            role = stage.produces[0] if position < len(gradient.stages) - 1 else stage.name
            inputs = tuple(tensors[name] for name in stage.inputs)
            made = self.emit(
                application, role, stage, inputs, self.names(application, position, stage, produced)
            )
            tensors.update(zip(stage.produces, made, strict=True))
            for output, tensor in enumerate(made):
                for argument in produced.get((position, output), ()):
                    self.add(application.tensors[argument], tensor, tied=application.tie is not None)

    def names(
        self,
        application: Application,
        position: int,
        stage: Stage,
        produced: Mapping[tuple[int, int], Sequence[str]],
    ) -> list[str]:
        """Name the products of a stage of a custom gradient."""
        names = []
        for output, product in enumerate(stage.produces):
            arguments = produced.get((position, output))
            if arguments:
                names.append(self.gradient_name(application.tensors[arguments[0]]))
            else:
                names.append(self.builder.unique_tensor_name(f"{application.name}.grad.{product}"))
        return names

    def contribute(
        self, application: Application, role: str, stage: Stage, target: int, inputs: Sequence[int]
    ) -> None:
        """Add an operation whose result is a term of the gradient of `target`."""
        (term,) = self.emit(application, role, stage, inputs, [self.gradient_name(target)])
        self.add(target, term, tied=application.tie is not None)

    def emit(
        self,
        application: Application,
        role: str,
        stage: Stage,
        inputs: Sequence[int],
        names: Sequence[str],
    ) -> tuple[int, ...]:
        return self.builder.apply(
            f"{application.name}.grad.{role}",
            stage,
            inputs,
            names,
            phase=Phase.BACKWARD,
            role=Role.GRADIENT,
            tie=application.tie and f"{application.tie}.grad.{role}",
        )

    def gradient_name(self, target: int) -> str:
        """Return `grad(x)` for the first term and a number for later ones; `add` renumbers the first."""
        name = self.builder.tensors[target].name
        if target not in self.gradients:
            return self.builder.unique_tensor_name(f"grad({name})")
        return self.builder.unique_tensor_name(f"grad({name})#{self.terms[target] + 1}")

    def add(self, target: int, term: int, *, tied: bool) -> None:
        """Sum up terms as they come, so that no more than two are ever held."""
        before = self.gradients.get(target)
        if before is None:
            self.gradients[target] = term
            self.terms[target] = 1
            return
        name = self.builder.tensors[target].name
        count = self.terms[target]
        if self.builder.tensors[before].name == f"grad({name})":
            label = "#1" if count == 1 else f"#1..{count}"
            self.builder.rename_tensor(before, self.builder.unique_tensor_name(f"grad({name}){label}"))
        (stage,) = _sum_stages(len(self.builder.tensors[target].shape))
        tie = self.ties.get(target) or (name if tied else None)
        (total,) = self.builder.apply(
            f"grad({name}).sum",
            stage,
            (before, term),
            [self.builder.unique_tensor_name(f"grad({name})")],
            phase=Phase.BACKWARD,
            role=Role.GRADIENT,
            tie=tie and f"{tie}.grad.sum",
        )
        self.gradients[target] = total
        self.terms[target] = count + 1

    def head(self, output: int) -> int:
        """Return the gradient of a stage's output; zeros if only its siblings have one."""
        gradient = self.gradients.get(output)
        if gradient is None:
            tensor = self.builder.tensors[output]
            stages = registry.get("zeros_like").stages({}, {"data": tensor.shape})
            name = self.builder.unique_tensor_name(f"grad({tensor.name})")
            (gradient,) = self.builder.apply(
                f"{tensor.name}.zeros", stages[0], (output,), [name], phase=Phase.BACKWARD, role=Role.GRADIENT
            )
            self.gradients[output] = gradient
            self.terms[output] = 1
        return gradient


def _ties(expansion: ExpandedSymbol) -> dict[int, str]:
    """Return the tie that corresponding tensors of tied operators share."""
    return {
        index: f"{application.tie}.{step.stage.produces[0]}"
        for application in expansion.applications
        if application.tie is not None
        for step in application.steps
        for index in step.outputs
    }


@cache
def _is_identity(stage: Stage) -> bool:
    """Tell whether an adjoint passes the gradient of its one output unchanged, like that of an addition."""
    (output,) = stage.description.outputs
    indices = tuple(ast.Variable(binder.name) for binder in output.variables)
    return output.body == ast.Element("grad_0", indices)


@cache
def _sum_stages(rank: int) -> tuple[Stage, ...]:
    shape = (1,) * rank
    return registry.get("elemwise_add").stages({}, {"lhs": shape, "rhs": shape})

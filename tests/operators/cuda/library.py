"""Every description of the operator library that a kernel can be generated for, with values to run it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from tofu import tdl
from tofu.operators.cuda import CudaKernel, generate
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import Stage

from ..example_stages import Array, derived_adjoints, training_stages


@dataclass(frozen=True, eq=False)
class Case:
    """One stage of an operator, its gradients included, bound to the shapes of the library's example."""

    operator: str
    stage: Stage
    tensors: Mapping[str, Array]

    @property
    def name(self) -> str:
        return f"{self.operator}: {self.stage.name}"

    @property
    def bound(self) -> BoundOperator:
        return self.stage.bind({name: self.tensors[name].shape for name in self.stage.inputs})

    def types(self, dtype: str) -> dict[str, str]:
        return dict.fromkeys(self.stage.inputs, dtype)

    def outputs(self, dtype: str) -> list[str]:
        return [dtype] * len(self.stage.produces)

    def kernel(self, dtype: str) -> CudaKernel:
        return generate(self.stage.description, self.types(dtype), self.outputs(dtype))


def library_cases(names: Iterable[str]) -> list[Case]:
    """Each description once; those that use opaque functions have no kernel."""
    return [case for case in _cases(names) if not case.stage.description.opaques]


def opaque_stages(names: Iterable[str]) -> set[str]:
    """The stages that have no kernel: nothing is known about the inside of an opaque function."""
    return {case.stage.name for case in _cases(names) if case.stage.description.opaques}


def _cases(names: Iterable[str]) -> list[Case]:
    found: dict[str, Case] = {}
    for name in names:
        for stage, tensors in chain(training_stages(name), derived_adjoints(name)):
            found.setdefault(tdl.format(stage.description), Case(name, stage, tensors))
    return list(found.values())

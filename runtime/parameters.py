"""The values that a model learns, as whole tensors, and their transfer to and from executors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..dataflow.graph import Role, Tensor
from ..dataflow.rewrites.pulled import pulled_of
from ..dataflow.settings import start_number
from ..dataflow.symbol import Symbol
from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.wording import alternatives
from .executor import Executor
from .initializer import WeightRule, initial_value


class Parameters:
    """Parameters and moving statistics by name, in the coordinates of whole tensors.

    A value that no executor has held yet is the given one, the number that its variable states, or else the
    initializer's. Raises DataError if a
    value is given for a name that is not a variable of the symbol.
    """

    def __init__(
        self, symbol: Symbol, rule: WeightRule, seed: int, given: Mapping[str, npt.ArrayLike]
    ) -> None:
        self.values: dict[str, Array] = {}
        self._variables = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
        self._starts = {node.name: start_number(node.text) for node in symbol.nodes if node.is_variable}
        self._rule = rule
        self._seed = seed
        self.assign(given)

    def assign(self, given: Mapping[str, npt.ArrayLike]) -> None:
        """Assign new values. Raises DataError for a name that is not a variable of the symbol."""
        for name, value in given.items():
            if name not in self._variables:
                raise DataError(
                    f"a value was given for '{name}', which is not a variable of the symbol"
                    f"{alternatives(name, self._variables)}"
                )
            self.values[name] = np.array(value)

    def store(self, executor: Executor) -> None:
        """Write the value of every learned tensor of the executor's graph, and let replicas pull it."""
        tensors = {tensor.name: tensor for tensor in executor.partitioned.graph.tensors}
        for tensor in _learned(executor):
            if tensor.name not in self.values:
                self.values[tensor.name] = self._start(tensor)
            executor.write(tensor.name, self.values[tensor.name])
            if (pulled := pulled_of(tensors, tensor)) is not None:
                executor.write(pulled.name, np.broadcast_to(self.values[tensor.name], pulled.shape))

    def load(self, executor: Executor) -> None:
        """Read the value of every learned tensor of the executor's graph."""
        for tensor in _learned(executor):
            self.values[tensor.name] = executor.read(tensor.name)

    def _start(self, tensor: Tensor) -> Array:
        """Return the value from which a tensor starts: what its variable says, or else its name."""
        number = self._starts.get(tensor.name)
        if number is not None:
            return np.full(tensor.shape, number, np.float32)
        return initial_value(tensor.name, tensor.shape, self._rule, self._seed)


def optimizer_state(executor: Executor) -> dict[str, Array]:
    """Read the optimizer's state of each parameter, whole tensors by name."""
    return {tensor.name: executor.read(tensor.name) for tensor in tensors_of(executor, Role.STATE)}


def tensors_of(executor: Executor, *roles: Role) -> list[Tensor]:
    """List the tensors of these roles that are not aliases, in the order of the graph."""
    return [t for t in executor.partitioned.graph.tensors if t.alias is None and t.role in roles]


def _learned(executor: Executor) -> list[Tensor]:
    return tensors_of(executor, Role.PARAMETER, Role.AUXILIARY)

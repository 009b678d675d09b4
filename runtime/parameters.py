"""The values that a model learns, as whole tensors, and their transfer to and from executors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..dataflow.graph import Graph, Phase, Role, Tensor
from ..dataflow.rewrites.pulled import pulled_of
from ..dataflow.settings import start_number
from ..dataflow.symbol import Symbol
from ..errors import DataError, ExecutionError
from ..operators.kernels.kernel import Array
from ..support.checked_argument import array_of, require
from ..support.wording import alternatives
from .executor import Executor
from .initializer import WeightRule, initial_value

SAMPLED = 256
"""The elements of a value that processes compare."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """Learned values that are undefined."""

    reason: str
    """The event that made them so, in words."""

    names: frozenset[str]
    """Those that have not been given since."""

    def without(self, given: Collection[str]) -> Undefined | None:
        """Return what is still undefined if values of these names are given."""
        names = self.names.difference(given)
        return Undefined(self.reason, names) if names else None

    def error(self) -> ExecutionError:
        """Return the error for a call that needs the values."""
        others = " and others" if len(self.names) > 1 else ""
        return ExecutionError(
            f"{self.reason}, so the values of '{min(self.names)}'{others} are undefined; "
            "resume from a checkpoint, or give all values with set_parameters"
        )


class Parameters:
    """Parameters and moving statistics by name, in the coordinates of whole tensors.

    A value that no executor has held yet is the given one, the number that its variable states, or else the
    initializer's. The latter two are made when they are needed and not kept, since executors hold them.
    Raises DataError if a value is given for a name that is not a variable of the symbol.
    """

    def __init__(
        self, symbol: Symbol, rule: WeightRule, seed: int, given: Mapping[str, npt.ArrayLike]
    ) -> None:
        self._values: dict[str, Array] = {}
        self._started: dict[str, Tensor] = {}
        """The tensors that executors were given and that started from values that are not kept."""
        self._variables = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
        self._starts = {node.name: start_number(node.text) for node in symbol.nodes if node.is_variable}
        self._rule = rule
        self._seed = seed
        self.assign(given)

    def assign(self, given: Mapping[str, npt.ArrayLike]) -> None:
        """Assign new values by name.

        Raises DataError for a name that is not a variable of the symbol, and a value that is not an array.
        """
        require(isinstance(given, Mapping), given, "parameters", "arrays by name", DataError)
        for name, value in given.items():
            if name not in self._variables:
                raise DataError(
                    f"a value was given for '{name}', which is not a variable of the symbol"
                    f"{alternatives(str(name), self._variables)}"
                )
            self._values[name] = np.array(array_of(value, name, DataError))

    def all(self) -> dict[str, Array]:
        """Return copies of the values that were given, read from an executor, or written to one."""
        started = {name: self._start(tensor) for name, tensor in self._started.items()}
        return started | {name: value.copy() for name, value in self._values.items()}

    def store(self, executor: Executor, newest: Executor | None = None) -> str:
        """Write the value of every learned tensor of the executor's graph, and let replicas pull it.

        Those that `newest` has are copied from there, one at a time. Returns a digest of some elements of the
        others. Raises DataError for a label that has no value.
        """
        total = hashlib.sha256()
        graph = executor.partitioned.graph
        tensors = {tensor.name: tensor for tensor in graph.tensors}
        self._require_labels(graph)
        there = set() if newest is None else {tensor.name for tensor in learned(newest)}
        for tensor in learned(executor):
            if newest is not None and tensor.name in there:
                executor.copy(tensor.name, newest)
                continue
            value = self._value(tensor)
            total.update(_sample(value))
            executor.write(tensor.name, value)
            if (pulled := pulled_of(tensors, tensor)) is not None:
                executor.write(pulled.name, np.broadcast_to(value, pulled.shape))
        return total.hexdigest()

    def load(self, executor: Executor) -> None:
        """Read the value of every learned tensor of the executor's graph."""
        for tensor in learned(executor):
            self._values[tensor.name] = executor.read(tensor.name)

    def _require_labels(self, graph: Graph) -> None:
        """Raise DataError if a label has no value: a parameter that nothing but the backward pass reads.

        No loss depends on it, so training does not change it.
        """
        phases: dict[int, set[Phase]] = {}
        for operation in graph.operations:
            for read in operation.inputs:
                phases.setdefault(graph.roots[read], set()).add(operation.phase)
        for index in sorted(phases):
            tensor = graph.tensors[index]
            known = tensor.name in self._values or self._starts.get(tensor.name) is not None
            if tensor.role is Role.PARAMETER and phases[index] == {Phase.BACKWARD} and not known:
                raise DataError(
                    f"'{tensor.name}' of shape {tensor.shape} is read by the backward pass alone, as labels "
                    "are, and the data have no array of this name; give labels, or its value in `parameters`"
                )

    def _value(self, tensor: Tensor) -> Array:
        """Return the value of a tensor that no executor holds."""
        if tensor.name in self._values:
            return self._values[tensor.name]
        return self._start(self._started.setdefault(tensor.name, tensor))

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


def _sample(value: Array) -> bytes:
    """Return some elements of a value, evenly spread."""
    places = np.linspace(0, value.size - 1, min(value.size, SAMPLED)).astype(int)
    sampled: Array = value.reshape(-1)[places]
    return sampled.tobytes()


def learned(executor: Executor) -> list[Tensor]:
    """List the parameters and moving statistics of the executor's graph."""
    return tensors_of(executor, Role.PARAMETER, Role.AUXILIARY)

"""One batch in a module: forward, backward and update, as single calls or at once.

They are one partitioned iteration, which runs at `update`. Outputs asked for before it, and gradients of the
data, are computed by a separate pass, with the parameters as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dataflow.graph import Role
from ...errors import DataError, ExecutionError
from ...operators.kernels.kernel import Array
from ...runtime.data import Batch
from ...runtime.executor import Executor
from ...runtime.feeding import feed, outputs
from ...runtime.module import TrainableModule
from ..ndarray.array import as_array
from .inputs import Inputs


class Iteration:
    """A batch of `inputs` under way through `module`."""

    def __init__(self, module: TrainableModule, inputs: Inputs, batch: Batch, train: bool) -> None:
        self.batch = batch
        self._module = module
        self._inputs = inputs
        self._train = train
        self._shapes = inputs.shapes_of(batch)
        self._outputs: list[Array] | None = None
        self._heads: Mapping[str, Array] | None = None
        self._updated_by: Executor | None = None
        if not train:
            executor = module.evaluator(self._shapes)
            feed(executor, batch)
            executor.run()
            self._outputs = outputs(executor)

    def backward(self, out_grads: Any) -> None:
        """Take the gradients of outputs that are not losses. Raises ExecutionError if nothing is trained."""
        if not self._train:
            raise ExecutionError("backward needs forward(batch, is_train=True) before it")
        listed = out_grads if isinstance(out_grads, list | tuple) else [out_grads]
        self._heads = {
            f"head({name})": as_array(gradient)
            for name, gradient in zip(self._module.symbol.list_outputs(), listed, strict=False)
            if gradient is not None
        }

    def update(self, executor: Executor, rate: float) -> None:
        """Run the whole iteration; `rate` is what the learning rate is fed."""
        if self._heads is None or self._updated_by is not None:
            raise ExecutionError("update needs forward(batch, is_train=True) and backward() before it")
        if self._shapes != self._inputs.shapes:
            raise DataError(
                f"the batch has shapes {self._shapes}, but the module is bound to {self._inputs.shapes}; "
                "bind again with force_rebind=True, or use a BucketingModule"
            )
        self._feed_heads(executor)
        self._module.step(executor, self.batch, rate)
        self._updated_by = executor
        self._outputs = None

    def outputs(self) -> list[Array]:
        """Return the outputs of the batch, whole."""
        if self._outputs is None:
            executor = self._updated_by or self._looked_at(())
            self._outputs = outputs(executor)[: len(self._module.symbol)]
        return self._outputs

    def gradients(self, names: Sequence[str]) -> list[Array]:
        """Return the gradients of data. Raises ExecutionError before `backward` and after `update`."""
        if self._heads is None or self._updated_by is not None:
            raise ExecutionError(
                "gradients of the data are there after backward() and before update(); ask between the two"
            )
        executor = self._looked_at(names)
        return [executor.read(f"grad({name})") for name in names]

    def _looked_at(self, gradients: Sequence[str]) -> Executor:
        """Return the batch computed as in training, without an update."""
        executor = self._module.evaluator(self._shapes, gradients)
        feed(executor, self.batch)
        self._feed_heads(executor)
        executor.run()
        return executor

    def _feed_heads(self, executor: Executor) -> None:
        given = self._heads or {}
        fed = [tensor.name for tensor in executor.partitioned.graph.tensors if tensor.role is Role.DATA]
        missing = [name for name in fed if name not in given and name not in self._shapes]
        if missing:
            raise ExecutionError(
                f"backward needs out_grads for {', '.join(missing)}, which are not losses; pass their "
                "gradients"
            )
        for name, gradient in given.items():
            if executor.has(name):
                executor.write(name, gradient)

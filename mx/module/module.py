"""A symbol, its parameters and its optimizer over the devices of a context."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import api as tofu
from ...dataflow.symbol import Symbol
from ...errors import DataError, ExecutionError
from ...operators.kernels.kernel import Array
from ...runtime.context import devices_of
from ...runtime.executor import Executor
from ...runtime.learning_rate import fed_rate
from ...runtime.parameters import optimizer_state
from ...support.wording import alternatives
from .. import metric as mx_metric
from .. import model
from ..initializer import InitDesc, Uniform
from ..io import DataBatch, DataDesc
from ..kvstore import create as create_store
from ..ndarray.array import NDArray, as_array
from ..ndarray.files import load, save
from ..optimizer import Optimizer, create
from ..seed import current_seed
from .base_module import BaseModule, Params
from .inputs import Inputs, described, without_padding
from .iteration import Iteration
from .values import leave, merged, start_values, write_states

UPDATES = "num_update"


class Module(BaseModule):
    """Trains `symbol` over the devices of `context`: every operator and tensor is partitioned over them.

    Forward, backward and update of a batch are one partitioned iteration, which runs at `update`. Outputs
    asked for before are computed by a separate forward pass.
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        if state_names or compression_params:
            raise ExecutionError("state_names and compression_params of a Module are not supported")
        arguments = symbol.list_arguments()
        for name in (*(data_names or ()), *(fixed_param_names or ())):
            if name not in arguments:
                raise DataError(f"the symbol has no argument '{name}'{alternatives(name, arguments)}")
        missing = [name for name in label_names or () if name not in arguments]
        if missing:
            labels = [name for name in arguments if name.endswith("_label")]
            logger.warning("the symbol has no label %s; it has %s", ", ".join(missing), labels or "none")
        self.symbol = symbol
        self.logger = logger
        self._context = devices_of(context)
        self.data_names = list(data_names or ())
        self.label_names = [name for name in label_names or () if name in arguments]
        inputs = {*self.data_names, *self.label_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._fixed = frozenset(fixed_param_names or ())
        self._preloaded: tuple[Params, Params] | None = None
        self._preloaded_states: str | None = None
        self._optimizer: Optimizer | None = None

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Return a module of a saved symbol, which takes the saved parameters as soon as it is bound."""
        symbol, arg_params, aux_params = model.load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._preloaded = (arg_params, aux_params)
        if load_optimizer_states:
            module._preloaded_states = f"{prefix}-{epoch:04d}.states"
        return module

    @property
    def output_names(self) -> list[str]:
        return self.symbol.list_outputs()

    @property
    def data_shapes(self) -> list[DataDesc]:
        return list(self._bound("data_shapes")._inputs.data)

    @property
    def label_shapes(self) -> list[DataDesc]:
        return list(self._bound("label_shapes")._inputs.label)

    @property
    def _data_shapes(self) -> list[DataDesc] | None:
        """As `data_shapes`, None before `bind`; scripts read it."""
        return list(self._inputs.data) if self.binded else None

    @property
    def _label_shapes(self) -> list[DataDesc] | None:
        """As `label_shapes`, None before `bind` and without labels; scripts read it."""
        return (list(self._inputs.label) or None) if self.binded else None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes = self.symbol.infer_shape(**self._bound("output_shapes")._inputs.shapes)[1]
        return list(zip(self.output_names, shapes, strict=True))

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Take the shapes of a batch, `(name, shape)` each. Raises ShapeError if others do not follow.

        With `force_rebind`, parameters and what the optimizer keeps stay.
        """
        if self.binded and not force_rebind:
            return
        if grad_req not in ("write", "null"):
            raise ExecutionError("a Module does not add up gradients; symbol.bind(grad_req='add') does")
        given = [each for each in label_shapes or () if each[0] in self.label_names]
        self._inputs = Inputs(
            described(data_shapes, self.data_names, "data_shapes"),
            described(given, self.label_names if given else [], "label_shapes"),
        )
        arguments, _, states = self.symbol.infer_shape(**self._inputs.shapes)
        self._param_shapes = dict(zip(self.symbol.list_arguments(), arguments, strict=True))
        self._aux_shapes = dict(zip(self._aux_names, states, strict=True))
        kept = self.get_params() if self.binded and self.params_initialized else None
        updated = self.optimizer_states() if self.binded and self._executor is not None else None
        if self.binded:
            self.close()
        self._module = tofu.Module(self.symbol, self._context, seed=current_seed())
        self._executor: Executor | None = None
        self._iteration: Iteration | None = None
        self.binded = True
        self.for_training = for_training and grad_req == "write"
        self.inputs_need_grad = inputs_need_grad
        if kept is not None:
            self.set_params(*kept)
        elif self._preloaded is not None:
            self.init_params()
        if self.optimizer_initialized:
            self._bind_training()
            if updated is not None and self._executor is not None:
                self.set_optimizer_states(updated)
        if shared_module is not None and shared_module.params_initialized:
            self.set_params(*shared_module.get_params())

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Bind to batches of other shapes; everything else stays as it is."""
        self._bound("reshape")
        self.bind(data_shapes, label_shapes, self.for_training, self.inputs_need_grad, force_rebind=True)

    def init_params(
        self,
        initializer: Any = None,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Take the given values, and start values from the initializer for what is not given.

        Raises DataError if values are given, but not for a parameter, unless they may be missing.
        """
        if self.params_initialized and not force_init:
            return
        self._bound("init_params")
        if self._preloaded is not None and arg_params is None and aux_params is None:
            arg_params, aux_params = self._preloaded
        texts = self.symbol.attr_dict()
        values: dict[str, Array] = {}
        for names, shapes, given in (
            (self._param_names, self._param_shapes, arg_params),
            (self._aux_names, self._aux_shapes, aux_params),
        ):
            wanted = {InitDesc(name, texts.get(name)): shapes[name] for name in names}
            values |= start_values(wanted, given, initializer or Uniform(0.01), allow_missing, allow_extra)
        self._module.set_parameters(values)
        self.params_initialized = True
        self._iteration = None

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Overwrite parameters and auxiliary states.

        Those not given stay, if they may be missing; before `init_params` they are zeros.
        """
        if allow_missing and self.params_initialized:
            arg_params, aux_params = (
                {**own, **(given or {})}
                for own, given in zip(self.get_params(), (arg_params, aux_params), strict=True)
            )
        self.init_params(leave, arg_params, aux_params or {}, allow_missing, force_init, allow_extra)

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return copies of parameters and auxiliary states, whole tensors."""
        self._ready("get_params")
        values = self._module.parameters()
        return (
            {name: NDArray(np.array(values[name])) for name in self._param_names},
            {name: NDArray(np.array(values[name])) for name in self._aux_names},
        )

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Plan the training iteration. By name, an optimizer divides gradients by the batch's size."""
        if self.optimizer_initialized and not force_init:
            return
        self._ready("init_optimizer")
        if isinstance(kvstore, str):
            create_store(kvstore)
        settings = dict(optimizer_params)
        if not isinstance(optimizer, Optimizer):
            settings.setdefault("rescale_grad", 1.0 / self._inputs.data[0].shape[0])
            optimizer = create(optimizer, **settings)
        self._optimizer = optimizer
        self._bind_training()
        self.optimizer_initialized = True
        if self._preloaded_states is not None:
            self.load_optimizer_states(self._preloaded_states)
            self._preloaded_states = None

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Take a batch; outputs of one that is not trained on are computed at once."""
        self._ready("forward")
        train = self.for_training if is_train is None else is_train
        batch = self._inputs.by_name(data_batch)
        self._iteration = Iteration(self._module, self._inputs, batch, train)

    def backward(self, out_grads: Any = None) -> None:
        """Run the backward pass of the batch, with the gradients of outputs that are not losses."""
        self._under_way("backward").backward(out_grads)

    def update(self) -> None:
        """Run the iteration of the batch: forward, backward, and the update of every parameter."""
        executor, optimizer = self._trained("update")
        rate = fed_rate(self._settings, optimizer.rate(optimizer.num_update + 1), optimizer.num_update)
        self._under_way("update").update(executor, rate)
        optimizer.num_update += 1

    def get_outputs(self, merge_multi_context: bool = True) -> Any:
        """Return the outputs of the batch, see `merged`."""
        return merged(self._under_way("get_outputs").outputs(), merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> Any:
        """Return the gradients of the data of the batch, see `merged`; the module must be bound with
        inputs_need_grad=True.
        """
        iteration = self._under_way("get_input_grads")
        if not self.inputs_need_grad:
            raise ExecutionError("get_input_grads needs bind(inputs_need_grad=True)")
        return merged(iteration.gradients(self.data_names), merge_multi_context)

    def update_metric(self, eval_metric: mx_metric.EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Count the batch in a metric; rows that fill the batch do not count."""
        iteration = self._under_way("update_metric")
        batch, arrays = iteration.batch, [as_array(label) for label in labels or ()]
        names = self.label_names or [f"label{index}" for index in range(len(arrays))]
        eval_metric.update_dict(
            {
                name: NDArray(without_padding(array, batch.size, batch.valid))
                for name, array in zip(names, arrays, strict=False)
            },
            {
                name: NDArray(without_padding(output, batch.size, batch.valid))
                for name, output in zip(self.output_names, iteration.outputs(), strict=True)
            },
        )

    def save_optimizer_states(self, fname: str) -> None:
        """Write what the optimizer keeps for each parameter, and how many updates there were."""
        save(fname, {name: NDArray(array) for name, array in self.optimizer_states().items()})

    def load_optimizer_states(self, fname: str) -> None:
        """Take what `save_optimizer_states` wrote. Raises DataError if it is of another optimizer."""
        found: Any = load(fname)
        self.set_optimizer_states({name: as_array(array) for name, array in found.items()})

    def optimizer_states(self) -> dict[str, Array]:
        """Return what the optimizer keeps, whole tensors by name."""
        executor, optimizer = self._trained("optimizer_states")
        return {**optimizer_state(executor), UPDATES: np.array([optimizer.num_update], np.int64)}

    def set_optimizer_states(self, values: Mapping[str, Array]) -> None:
        """Overwrite what the optimizer keeps. Raises DataError if it is of another optimizer."""
        executor, optimizer = self._trained("set_optimizer_states")
        kept = {name: array for name, array in values.items() if name != UPDATES}
        write_states(executor, kept)
        optimizer.num_update = int(values[UPDATES][0])

    def close(self) -> None:
        """End all threads and give the workers' memory back; parameters stay."""
        self._module.close()
        self._executor = None

    def _bind_training(self) -> None:
        assert self._optimizer is not None
        if self.for_training:
            self._settings = self._optimizer.graph_settings()
            self._executor = self._module.bind(self._inputs.shapes, self._settings, self._fixed, heads=True)

    def _trained(self, call: str) -> tuple[Executor, Optimizer]:
        if self._executor is None or self._optimizer is None:
            raise ExecutionError(f"{call} needs bind(for_training=True) and init_optimizer before it")
        return self._executor, self._optimizer

    def _under_way(self, call: str) -> Iteration:
        if self._iteration is None:
            raise ExecutionError(f"{call} needs forward before it")
        return self._iteration

    def _bound(self, call: str) -> Module:
        if not self.binded:
            raise ExecutionError(f"{call} needs bind before it")
        return self

    def _ready(self, call: str) -> None:
        self._bound(call)
        if not self.params_initialized:
            raise ExecutionError(f"{call} needs init_params before it")

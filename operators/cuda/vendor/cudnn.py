"""Plans of cuDNN for convolutions: chosen once for a card, with the scratch they ask for.

Nothing here needs a card but `execute`: plans can be chosen for a card that is only described. Every plan
is deterministic, sums in float32, and rounds float32 inputs to TF32 only if asked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

from ....analyzer.indices.region import Shape
from ....errors import ExecutionError
from ...kernels.convolution.library_form import Pass, WindowGeometry
from ..launch.commands import Convolution
from ..launch.view import DeviceView
from .libraries import EXTRAS, library

ALIGNMENT_BYTES = 16
"""The best alignment that the choice of a plan considers, in bytes: the widest load."""

_DATA, _WEIGHT, _OUTPUT = 1, 2, 3
"""The numbers of a plan's tensors when it runs."""

_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}


@dataclass(frozen=True, slots=True)
class TensorDescriptor:
    """A view whose address is unknown but for its alignment."""

    shape: Shape
    """The number of elements along each axis."""

    strides: tuple[int, ...]
    """The distance of neighbours along each axis, in elements."""

    type: str
    """The element type, one of those in `_TYPES`."""

    alignment_bytes: int
    """A power of two that divides the address, at most `ALIGNMENT_BYTES`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that a plan depends on, in two or three spatial dimensions."""

    computes: Pass
    """Which of the three tensors is written, from the other two."""

    data: TensorDescriptor
    """The images, `[image, channel, *row]`."""

    weight: TensorDescriptor
    """The filters, `[filter, channel, *tap]`."""

    output: TensorDescriptor
    """The results, `[image, filter, *place]`."""

    geometry: WindowGeometry
    """Which row a place and a tap meet."""


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionPlan:
    """An engine of the library with its settings, for every command of one signature."""

    graph: Any
    """The library's graph of the operation, which the plan belongs to."""

    index: int
    """The number of the plan in the graph."""

    name: str
    """The library's name for engine and settings."""

    workspace_bytes: int
    """The scratch that a command has to provide."""

    def execute(self, command: Convolution, handle: int) -> None:
        """Enqueue the command on the handle's stream. Raises ExecutionError."""
        addresses = {
            _DATA: command.data.address,
            _WEIGHT: command.weight.address,
            _OUTPUT: command.output.address,
        }
        try:
            self.graph.execute_plan_at_index(addresses, command.workspace, self.index, handle)
        except RuntimeError as error:
            raise ExecutionError(f"cuDNN: {_title(signature(command))} failed: {_reason(error)}") from error


class Plans:
    """The plans for one kind of card, each chosen when it is first asked for.

    The card is that of `handle`, of the library, or the one that `described` describes: the JSON text that
    the library writes of a card. `most_workspace_bytes` leaves out plans that ask for more.
    """

    def __init__(
        self,
        handle: int | None = None,
        described: str | None = None,
        tf32: bool = False,
        most_workspace_bytes: int | None = None,
    ) -> None:
        self._handle = handle
        self._described = described
        self._tf32 = tf32
        self._most_workspace_bytes = most_workspace_bytes
        self._plans: dict[Signature, ExecutionPlan] = {}

    def plan(self, command: Convolution) -> ExecutionPlan:
        """Return the plan for a command, the first that the library's heuristics propose and that may be
        used.

        Raises ExecutionError if the library is missing or has no plan.
        """
        key = signature(command)
        if key not in self._plans:
            self._plans[key] = self._chosen(key)
        return self._plans[key]

    def workspace_bytes(self, command: Convolution) -> int:
        """Return the scratch that the command has to be given."""
        return self.plan(command).workspace_bytes

    def _chosen(self, wanted: Signature) -> ExecutionPlan:
        try:
            graph = self._graph(wanted)
            for index in range(graph.get_execution_plan_count()):
                if (plan := self._built(graph, index)) is not None:
                    return plan
            reason = f"none of {graph.get_execution_plan_count()} proposed plans may be used"
        except self._refusals as error:
            reason = _reason(error)
        raise ExecutionError(f"cuDNN has no plan for {_title(wanted)}: {reason}")

    def _built(self, graph: Any, index: int) -> ExecutionPlan | None:
        """Return the plan of this rank, unless it has a property that is not wanted or cannot be built."""
        try:
            graph.build_plan_at_index(index)
        except self._refusals:
            return None
        nbytes = int(graph.get_workspace_size_plan_at_index(index))
        if self._most_workspace_bytes is not None and nbytes > self._most_workspace_bytes:
            return None
        return ExecutionPlan(graph, index, graph.get_plan_name_at_index(index), nbytes)

    def _graph(self, wanted: Signature) -> Any:
        """Return the library's graph of this one operation, with its proposed plans."""
        cudnn = self._library
        graph = cudnn.pygraph(
            handle=self._handle,
            device_property=self._properties,
            io_data_type=_type(cudnn, wanted.data),
            intermediate_data_type=cudnn.data_type.FLOAT,
            compute_data_type=cudnn.data_type.FLOAT,
        )
        computed, uid, form = _operation(cudnn, graph, wanted)
        computed.set_output(True).set_uid(uid).set_data_type(_type(cudnn, form))
        computed.set_dim(list(form.shape)).set_stride(list(form.strides))
        computed.set_alignment(form.alignment_bytes)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.deselect_numeric_notes(self._unwanted(wanted.data.type))
        return graph

    def _unwanted(self, type: str) -> list[Any]:
        notes = self._library.numerical_note
        unwanted = [notes.NONDETERMINISTIC, notes.REDUCED_PRECISION_REDUCTION]
        if type == "float32" and not self._tf32:
            unwanted += [notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS]
        return unwanted

    @property
    def _refusals(self) -> tuple[type[Exception], ...]:
        """The exceptions that the library raises."""
        return RuntimeError, ValueError, self._library.cudnnGraphNotSupportedError

    @cached_property
    def _library(self) -> Any:
        return _loaded()

    @cached_property
    def _properties(self) -> Any:
        """The described card; None if there is a handle, which knows its card."""
        return None if self._described is None else self._library.create_device_properties(self._described)


def open_handle(stream: int) -> int:
    """Return a handle on the current device that plans run with, on this stream. Raises ExecutionError."""
    cudnn = _loaded()
    try:
        handle = int(cudnn.create_handle())
        cudnn.set_stream(handle, stream)
    except RuntimeError as error:
        raise ExecutionError(
            f"cuDNN cannot be used on this device: {_reason(error)}; `tofu doctor` shows what works on this "
            "machine"
        ) from error
    return handle


def close_handle(handle: int) -> None:
    """Give a handle back; no plan may run with it afterwards."""
    _loaded().destroy_handle(handle)


def _loaded() -> Any:
    """Return the front end, with the library behind it. Raises ExecutionError if either is missing."""
    cudnn = library("cudnn", "convolution on a GPU")
    try:
        cudnn.backend_version()
    except RuntimeError as error:
        raise ExecutionError(
            f"cuDNN is not found or cannot be loaded ({_reason(error)}): {EXTRAS}"
        ) from error
    return cudnn


def signature(command: Convolution) -> Signature:
    """Return what the command's plan depends on.

    Before a single spatial dimension comes another, of length one.
    """
    data, weight, output = map(_tensor, (command.data, command.weight, command.output))
    geometry = command.geometry
    if len(geometry.stride) > 1:
        return Signature(command.computes, data, weight, output, geometry)
    flat = WindowGeometry(
        (1, *geometry.stride), (1, *geometry.dilate), (0, *geometry.before), (0, *geometry.after)
    )
    return Signature(command.computes, _flat(data), _flat(weight), _flat(output), flat)


def _tensor(view: DeviceView) -> TensorDescriptor:
    strides = tuple(stride // view.itemsize for stride in view.strides)
    return TensorDescriptor(view.shape, strides, view.type, gcd(view.address, ALIGNMENT_BYTES))


def _flat(tensor: TensorDescriptor) -> TensorDescriptor:
    (batch, channels, length), (image, channel, step) = tensor.shape, tensor.strides
    shape, strides = (batch, channels, 1, length), (image, channel, length * step, step)
    return TensorDescriptor(shape, strides, tensor.type, tensor.alignment_bytes)


def _operation(cudnn: Any, graph: Any, wanted: Signature) -> tuple[Any, int, TensorDescriptor]:
    """Return the node of the graph, and what it computes with its identity."""

    def given(uid: int, tensor: TensorDescriptor) -> Any:
        form = list(tensor.shape), list(tensor.strides), _type(cudnn, tensor)
        return graph.tensor(*form, uid=uid).set_alignment(tensor.alignment_bytes)

    geometry = wanted.geometry
    windows = {
        "pre_padding": list(geometry.before),
        "post_padding": [max(0, rows) for rows in geometry.after],
        "stride": list(geometry.stride),
        "dilation": list(geometry.dilate),
    }
    match wanted.computes:
        case Pass.FORWARD:
            pair = given(_DATA, wanted.data), given(_WEIGHT, wanted.weight)
            return graph.conv_fprop(*pair, **windows), _OUTPUT, wanted.output
        case Pass.DATA_GRADIENT:
            pair = given(_OUTPUT, wanted.output), given(_WEIGHT, wanted.weight)
            return graph.conv_dgrad(*pair, **windows), _DATA, wanted.data
        case Pass.WEIGHT_GRADIENT:
            pair = given(_DATA, wanted.data), given(_OUTPUT, wanted.output)
            return graph.conv_wgrad(*pair, **windows), _WEIGHT, wanted.weight


def _type(cudnn: Any, tensor: TensorDescriptor) -> Any:
    return getattr(cudnn.data_type, _TYPES[tensor.type])


def _title(wanted: Signature) -> str:
    shapes = f"data {wanted.data.shape}, weight {wanted.weight.shape}, output {wanted.output.shape}"
    return f"the {wanted.computes} convolution of {wanted.data.type} with {shapes}, {wanted.geometry}"


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

"""`mx.init`: start values of parameters. Random ones follow from `mx.random.seed` and the name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from ..errors import DataError
from ..runtime import initializer as runtime
from ..runtime.initializer import WeightRule, generator
from ..support.wording import alternatives
from .fused_weights import FusedWeights
from .ndarray.array import NDArray, as_array
from .seed import current_seed

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "create",
    "register",
]

REGISTRY: dict[str, type[Initializer]] = {}


class InitDesc(str):
    """A parameter's name, with the settings of its variable and the initializer of the model."""

    attrs: Mapping[str, str]
    global_init: Any

    def __new__(cls, name: str, attrs: Mapping[str, str] | None = None, global_init: Any = None) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


class Initializer:
    """Fills an array by the end of its parameter's name; weights as `_init_weight` of a subclass does.

    A variable's `init=` goes before the name. Keywords given here are what `dumps` writes to graph files.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def dumps(self) -> str:
        """Return the initializer as graph files hold it: `["xavier", {"magnitude": 3}]`."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill the array. Raises DataError if a name says nothing."""
        if isinstance(desc, InitDesc) and (stated := desc.attrs.get("__init__")):
            create(stated)._init_weight(InitDesc(desc, desc.attrs, desc.global_init or self), arr)
            return
        for ends, fill in self._by_end():
            if desc.endswith(ends):
                fill(desc, arr)
                return
        self._init_default(desc, arr)

    def _by_end(self) -> Sequence[tuple[tuple[str, ...], Callable[[str, NDArray], None]]]:
        return (
            (("weight",), self._init_weight),
            (("bias",), self._init_bias),
            (("gamma",), self._init_gamma),
            (("beta",), self._init_beta),
            (("moving_mean", "running_mean", "moving_avg", "moving_inv_var"), self._init_zero),
            (("moving_var", "running_var"), self._init_one),
        )

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _init_weight")

    def _init_zero(self, name: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_one(self, name: str, arr: NDArray) -> None:
        arr[:] = 1

    def _init_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        arr[:] = 1

    def _init_beta(self, name: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_default(self, name: str, arr: NDArray) -> None:
        ends = ", ".join(end for group, _ in self._by_end() for end in group)
        raise DataError(
            f"there is no initial value for '{name}' of shape {arr.shape}: its name does not end in {ends}; "
            "give its variable init=, such as mx.sym.Variable(..., init=mx.init.Zero())"
        )

    def _draw(self, name: str, arr: NDArray, rule: WeightRule) -> None:
        """Fill by a rule of the runtime, from the generator of this name."""
        arr[:] = rule(arr.shape, generator(str(name), current_seed()))


def register(klass: type[Initializer]) -> type[Initializer]:
    """Make an initializer known by its lower-case name, for `create` and graph files."""
    REGISTRY[klass.__name__.lower()] = klass
    return klass


def create(init: str | Initializer, **kwargs: Any) -> Initializer:
    """Return an initializer from a name, or from the text of a graph file.

    Raises DataError for an unknown one, and for settings that it does not have.
    """
    if isinstance(init, Initializer):
        return init
    name = init
    if init.startswith("["):
        try:
            name, kwargs = json.loads(init)
            name, kwargs = str(name), dict(kwargs)
        except (ValueError, TypeError, RecursionError):
            raise DataError(
                f"{init[:80]!r} is not an initializer; expected text such as '[\"zero\", {{}}]'"
            ) from None
    if name.lower() not in REGISTRY:
        raise DataError(f"there is no initializer {name!r}{alternatives(name.lower(), sorted(REGISTRY))}")
    made = REGISTRY[name.lower()]
    try:
        signature(made).bind(**kwargs)
    except TypeError as error:
        raise DataError(f"the initializer {name!r} {error}") from None
    return made(**kwargs)


@register
class Constant(Initializer):
    """The same number, or array, everywhere."""

    def __init__(self, value: Any = 0.0) -> None:
        super().__init__(value=as_array(value).tolist() if np.ndim(value) else value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self.value


@register
class Zero(Initializer):
    """Zeros."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0


@register
class One(Initializer):
    """Ones."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1


REGISTRY |= {"zeros": Zero, "ones": One}


@register
class Uniform(Initializer):
    """Uniform in `[-scale, scale)`."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        self._draw(name, arr, runtime.Uniform(self.scale))


@register
class Normal(Initializer):
    """Gaussian with mean 0 and deviation `sigma`."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        self._draw(name, arr, runtime.Normal(self.sigma))


@register
class Xavier(Initializer):
    """Glorot's rule: see `runtime.initializer.Xavier`; `rnd_type` is "uniform" or "gaussian"."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        if rnd_type not in ("uniform", "gaussian"):
            raise DataError(f"rnd_type is {rnd_type!r}, expected 'uniform' or 'gaussian'")
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rule = runtime.Xavier(float(magnitude), factor_type, rnd_type == "gaussian")

    def _init_weight(self, name: str, arr: NDArray) -> None:
        self._draw(name, arr, self.rule)


@register
class MSRAPrelu(Xavier):
    """He's rule for rectifiers that let `slope` of negative numbers through."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Orthogonal(Initializer):
    """An orthogonal matrix times `scale`, over the first dimension and all others (Saxe et al.)."""

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        if rand_type not in ("uniform", "normal"):
            raise DataError(f"rand_type is {rand_type!r}, expected 'uniform' or 'normal'")
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        drawn = generator(str(name), current_seed())
        shape = (math.prod(arr.shape[:1]), math.prod(arr.shape[1:]))
        matrix = drawn.uniform(-1, 1, shape) if self.rand_type == "uniform" else drawn.normal(0, 1, shape)
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        arr[:] = self.scale * (left if left.shape == shape else right).reshape(arr.shape)


@register
class Bilinear(Initializer):
    """Weights of a Deconvolution that enlarges images by bilinear interpolation."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if len(arr.shape) < 2:
            raise DataError(
                f"'{name}' has shape {arr.shape}, but Bilinear needs weights [..., height, width]; "
                "use Uniform or Normal"
            )
        factors = []
        for extent in arr.shape[-2:]:
            factor = np.ceil(extent / 2)
            middle = (2 * factor - 1 - factor % 2) / (2 * factor)
            factors.append(1 - np.abs(np.arange(extent) / factor - middle))
        arr[:] = np.broadcast_to(np.outer(*factors), arr.shape)


@register
class LSTMBias(Initializer):
    """Biases of an LSTM's gates: `forget_bias` for the forget gate, the second of four, else zeros."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0
        hidden = arr.shape[0] // 4
        arr[hidden : 2 * hidden] = self.forget_bias

    _init_bias = _init_weight


@register
class FusedRNN(Initializer):
    """The weights of a FusedRNNCell: each layer by `init`, or by the model's initializer if that is None.

    Biases of an LSTM's forget gates start as `forget_bias`.
    """

    def __init__(
        self,
        init: str | Initializer | None,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        self.init = None if init is None else create(init)
        super().__init__(
            init=None if self.init is None else self.init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self.fused = FusedWeights(mode, num_hidden, num_layers, ("l", "r") if bidirectional else ("l",), "")
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        fused = replace(self.fused, prefix=name.removesuffix("parameters"))
        layers = fused.unpack({str(name): arr})
        chosen = self.init or (name.global_init if isinstance(name, InitDesc) else None) or Uniform(0.01)
        for layer, weights in layers.items():
            if fused.mode == "lstm" and layer.endswith("_f_bias"):
                weights[:] = self.forget_bias
            else:
                chosen(InitDesc(layer, global_init=chosen), weights)
        arr[:] = fused.pack(layers)[name]


class Mixed:
    """The initializer of the first pattern that a name matches."""

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Initializer]) -> None:
        if len(patterns) != len(initializers):
            raise DataError(
                f"{len(patterns)} patterns are given for {len(initializers)} initializers; give one for each"
            )
        self.map = [(re.compile(pattern), init) for pattern, init in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: NDArray) -> None:
        for pattern, initializer in self.map:
            if pattern.match(name):
                initializer(name, arr)
                return
        raise DataError(f"no pattern matches '{name}'; add \".*\" as the last one")


class Load:
    """Values from a dictionary or a file of arrays; `default_init` for what is not there."""

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        from .ndarray.files import load

        given: Any = load(param) if isinstance(param, str) else param
        self.param = {re.sub("^(arg|aux):", "", name): array for name, array in given.items()}
        self.default_init = default_init

    def __call__(self, name: str, arr: NDArray) -> None:
        if name in self.param:
            value = as_array(self.param[name])
            if value.shape != arr.shape:
                raise DataError(
                    f"'{name}' has shape {arr.shape}, but the loaded array {value.shape}; load the arrays of "
                    "the same model"
                )
            arr[:] = value
        elif self.default_init is None:
            raise DataError(f"'{name}' is not among the loaded arrays{alternatives(name, self.param)}")
        else:
            self.default_init(name, arr)

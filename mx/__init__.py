"""`import tofu.mx as mx`: the names that MXNet scripts use, over Tofu's symbols, search and runtime.

    import tofu.mx as mx                     # or tofu.mx.install(), and the script keeps `import mxnet as mx`

The single difference to MXNet: a context of several devices partitions every operator and tensor over them
instead of copying the model. Everything here is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import alias

__version__ = "1.9.1"
"""The version of MXNet whose names these are; scripts ask for it."""

_MODULES = {
    **{
        name: name
        for name in (
            "attribute",
            "base",
            "callback",
            "context",
            "executor",
            "initializer",
            "io",
            "kvstore",
            "lr_scheduler",
            "metric",
            "model",
            "module",
            "name",
            "ndarray",
            "optimizer",
            "random",
            "rnn",
            "symbol",
            "visualization",
        )
    },
    "init": "initializer",
    "kv": "kvstore",
    "mod": "module",
    "nd": "ndarray",
    "rnd": "random",
    "sym": "symbol",
    "viz": "visualization",
}
_HOMES = {
    "AttrScope": "attribute",
    "Context": "context",
    "cpu": "context",
    "current_context": "context",
    "gpu": "context",
    "num_gpus": "context",
    "MXNetError": "base",
}
_UNSUPPORTED = {
    "autograd": "imperative differentiation; compose a symbol and call bind or Module",
    "contrib": "experimental operators; describe an operator of your own with tofu.op",
    "engine": "MXNet's scheduler; Tofu plans the order of operations before it runs",
    "gluon": "imperative layers; compose the network from mx.sym",
    "image": "reading images; give arrays to mx.io.NDArrayIter",
    "mon": "watching tensors; bind symbol.get_internals() to look at them",
    "monitor": "watching tensors; bind symbol.get_internals() to look at them",
    "np": "MXNet's own NumPy; use NumPy",
    "npx": "MXNet's own NumPy; use NumPy",
    "operator": "operators in Python; describe them with tofu.op",
    "profiler": "MXNet's profiler; `tofu plan` and `tofu train --json` report costs",
    "recordio": "MXNet's record files; give arrays to mx.io.NDArrayIter",
    "rtc": "kernels at run time; describe operators with tofu.op",
}
"""Parts of MXNet that are not here: what they are, and what there is instead."""

__all__ = sorted({*_MODULES, *_HOMES, "install"})

install = alias.install


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(_missing(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _missing(name: str) -> str:
    if name in _UNSUPPORTED:
        return f"mx.{name} is not supported: {_UNSUPPORTED[name]}"
    from ..support.wording import alternatives

    return f"mx has no {name!r}{alternatives(name, __all__)}"

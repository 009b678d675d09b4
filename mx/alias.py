"""Lets scripts that say `import mxnet` run unchanged."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ALIAS = "mxnet"
PACKAGE = __package__


def install() -> None:
    """Make `import mxnet` in this process mean `tofu.mx`, `import mxnet.ndarray as nd` included.

    Raises ImportError if another mxnet has been imported already.
    """
    mine = sys.modules[PACKAGE]
    present = sys.modules.get(ALIAS, mine)
    if present is not mine:
        raise ImportError(
            f"another mxnet is imported already, {getattr(present, '__file__', present)}; "
            "call tofu.mx.install() first"
        )
    sys.modules[ALIAS] = mine


class _AliasFinder(MetaPathFinder):
    """Finds `mxnet.x` as `tofu.mx.x`, once, where `mxnet` stands for `tofu.mx`; nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package == PACKAGE and name in sys.modules[PACKAGE]._UNSUPPORTED:
            raise ModuleNotFoundError(sys.modules[PACKAGE]._missing(name), name=f"{ALIAS}.{name}")
        parent, _, rest = fullname.partition(".")
        if parent != ALIAS or not rest or sys.modules.get(ALIAS) is not sys.modules.get(PACKAGE):
            return None
        if "." in rest:
            importlib.import_module(f"{PACKAGE}.{rest.rpartition('.')[0]}")
        names = sys.modules[PACKAGE]._MODULES
        first, dot, deeper = rest.partition(".")
        if first not in names:
            raise ModuleNotFoundError(sys.modules[PACKAGE]._missing(first), name=fullname)
        return ModuleSpec(fullname, _AliasLoader(f"{PACKAGE}.{names[first]}{dot}{deeper}"))


class _AliasLoader(Loader):
    """Gives the module of another name, as it is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _AliasFinder())

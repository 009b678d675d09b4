"""A name has one meaning: no two public classes share one."""

from __future__ import annotations

import ast
from collections import defaultdict

from .test_imports import modules

OF_MXNET = {
    "Constant",
    "Executor",
    "GRUCell",
    "LSTMCell",
    "Load",
    "Module",
    "Normal",
    "Optimizer",
    "SequentialRNNCell",
    "Symbol",
    "Uniform",
    "Xavier",
}
"""Names of classes in `mx/` that MXNet fixes, and that one class elsewhere has too.

Most of these classes mean the same in both places. `Constant` and `Load` initialize parameters in MXNet, and
are nodes of derived kernels elsewhere.
"""


def homes(files: dict[str, str]) -> dict[str, list[str]]:
    """The modules that define each public class, by the class's name; `files` are texts by module."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, text in files.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return found


def shared(found: dict[str, list[str]]) -> tuple[set[str], set[str]]:
    """The names that MXNet shares with one module, and those that several modules of Tofu have."""
    of_mxnet, others = set(), set()
    for name, places in found.items():
        own = [module for module in places if not module.startswith("mx.")]
        if len(own) > 1 or len(places) - len(own) > 1:
            others.add(name)
        elif len(places) > 1:
            of_mxnet.add(name)
    return of_mxnet, others


def test_shared_names_are_found() -> None:
    files = {
        "tdl.ast": "class Step: ...\nclass Load: ...",
        "tdl.source": "class _Text: ...\nclass Text: ...",
        "runtime.step": "class Step: ...\nclass _Text: ...\nclass Symbol:\n    class Text: ...",
        "mx.symbol": "class Symbol: ...\nclass Uniform: ...",
        "mx.loading": "class Load: ...\nclass Uniform: ...",
    }
    assert shared(homes(files)) == ({"Load", "Symbol"}, {"Step", "Uniform"})


def test_no_two_public_classes_share_a_name() -> None:
    found = homes({name: path.read_text(encoding="utf-8") for name, path in modules().items()})
    assert len(found) > 300
    of_mxnet, others = shared(found)
    new = {name: found[name] for name in (of_mxnet - OF_MXNET) | others}
    assert new == {}, "give each the noun of its docstring"
    assert OF_MXNET - of_mxnet == set(), "take them out of the list"

"""Facts that all processes of a run must share, and the first one that differs.

The same program gives the same bits only on the same versions and the same arithmetic. So processes compare
versions, and the digest of a few products, exponentials and sums: kernels of BLAS differ between kinds of
processors, and their results with them.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np

from ...programs.program import PartitionedGraph
from ..processor_libraries import library_names

PROBE = 192
"""The extents of the matrices of the probe, which BLAS computes in several blocks."""

SHOWN = 60
"""The most characters of a value in an error."""


def machine_facts() -> dict[str, str]:
    """Return the versions and the arithmetic of this process."""
    return {
        "the version of Tofu": _version(),
        "the version of Python": platform.python_version(),
        "the version of NumPy": np.__version__,
        "the libraries of kernels": library_names(),
        "the arithmetic of NumPy": _probe(),
    }


def program_facts(partitioned: PartitionedGraph) -> dict[str, str]:
    """Return digests of a graph and its programs."""
    total = hashlib.sha256()
    for program in partitioned.programs:
        total.update(repr(program).encode())
    total.update(repr(partitioned.homes).encode())
    return {"the graph": partitioned.graph.fingerprint, "the programs": total.hexdigest()}


def first_difference(facts: Sequence[Mapping[str, str]], names: Sequence[str]) -> str | None:
    """Describe the first fact that differs between processes, which `names` names; None if all agree."""
    for fact in dict.fromkeys(name for each in facts for name in each):
        values = [each.get(fact, "not stated") for each in facts]
        for name, value in zip(names, values, strict=True):
            if value != values[0]:
                own, other = _short(values[0], value)
                return (
                    f"{names[0]} and {name} differ in {fact}: {own} and {other}; "
                    "start all processes with the same program, arguments, data and versions, on processors "
                    "of one kind"
                )
    return None


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("tofu")
    except metadata.PackageNotFoundError:
        return "not installed"


def _probe() -> str:
    """Return the digest of a few results."""
    random = np.random.default_rng(0)
    left, right = random.standard_normal((2, PROBE, PROBE)).astype(np.float32)
    results = [
        left @ right,
        left.T @ right,
        np.exp(left),
        np.tanh(left),
        left * right + left,
        left.sum(axis=0),
    ]
    total = hashlib.sha256()
    for result in results:
        total.update(np.ascontiguousarray(result).tobytes())
    return total.hexdigest()


def _short(one: str, other: str) -> tuple[str, str]:
    """Return two texts as far as they are near the first difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    start = 0 if max(len(one), len(other)) <= SHOWN else max(same - SHOWN // 2, 0)

    def shown(text: str) -> str:
        ends = start + SHOWN < len(text)
        return f"{'...' if start else ''}{text[start : start + SHOWN]}{'...' if ends else ''}"

    return shown(one), shown(other)

"""A graph's fingerprint: equal for equal graphs in every process, so plan files know their graph."""

from __future__ import annotations

import hashlib
import json

from ..tdl import format as format_description
from .graph import Graph

FORMAT = "tofu-graph-1"


def fingerprint(graph: Graph) -> str:
    """Hexadecimal sha256 of everything a plan depends on: tensors, operations and descriptions.

    The graph's own name and the kernels take no part.
    """
    digests: dict[int, str] = {}
    lines: list[list[object]] = [[FORMAT, list(graph.outputs)]]
    for tensor in graph.tensors:
        lines.append([tensor.name, list(tensor.shape), str(tensor.role), tensor.dtype, tensor.alias])
    for operation in graph.operations:
        description = operation.bound.description
        digest = digests.get(id(description))
        if digest is None:
            text = format_description(description)
            digest = digests[id(description)] = hashlib.sha256(text.encode()).hexdigest()
        lines.append(
            [
                operation.name,
                digest,
                list(operation.inputs),
                list(operation.outputs),
                str(operation.phase),
                operation.tie,
            ]
        )
    return hashlib.sha256(json.dumps(lines, separators=(",", ":")).encode()).hexdigest()

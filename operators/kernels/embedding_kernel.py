"""The gradient of picking rows by index: rows are sorted by where they go, then summed in runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from ..kernel import KernelCall
from .roles import cut, output_ranges, require_roles, tensor_ranges


@dataclass(frozen=True, slots=True)
class EmbeddingGradient:
    """`output[i, j] = Sum(*k: where(data[*k] == i, grad_0[*k, j], 0))`.

    Rows with one index are added in the order of the data, whatever the other rows are.
    """

    def __call__(self, call: KernelCall) -> Callable[[], None]:
        require_roles(call, "data")
        data = cut(call.inputs["data"], call.regions["data"], tensor_ranges(call, "data"))
        gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], tensor_ranges(call, "grad_0"))
        (first, stop), (left, right) = output_ranges(call)
        out, count = call.outputs[0], prod(data.shape)

        def run() -> None:
            out.fill(0)
            chosen = data.reshape(count)
            rows = gradient.reshape(count, right - left)
            held = np.greater_equal(chosen, first) & np.less(chosen, stop)
            picked = np.flatnonzero(held & np.equal(chosen, np.floor(chosen)))
            if len(picked) == 0:
                return
            order = picked[np.argsort(chosen[picked], kind="stable")]
            targets = chosen[order].astype(np.intp) - first
            starts = np.flatnonzero(np.diff(targets, prepend=-1))
            out[targets[starts]] = np.add.reduceat(rows[order], starts, axis=0)

        return run

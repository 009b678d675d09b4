"""Compute convolution as a sum of matrix products, one per image and tap of the first dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernel import Array, Run
from ..strided import bound
from ..workspace import Workspace
from .matrices import Images, Weights, WeightTotal
from .patches import Patches, Windows


def forward(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """Return the convolution; nothing is empty."""
    patches = Patches(data, windows, workspace)
    weights = Weights.apart(filters, workspace)
    results = Images(out, windows, patches.largest, workspace)
    added = windows.taps[0] > 1
    terms = workspace.array((added * patches.largest.places_in(windows) * len(filters),), out.dtype)
    sums = {block: _Sum.of(results.matrices(block), terms, workspace) for block in patches.blocks}

    def run() -> None:
        weights.refresh()
        for block, (first, *rest) in patches.gathered():
            found = sums[block]
            np.matmul(weights.matrices[0], first, out=found.total)
            for tap, matrices in enumerate(rest, 1):
                np.matmul(weights.matrices[tap], matrices, out=found.term)
                found.add()
            results.store(block, found.total)

    return run


def weight_gradient(data: Array, gradient: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """Return the gradient of the filters; nothing is empty."""
    patches = Patches(data, windows, workspace)
    heads = Images(gradient, windows, patches.largest, workspace)
    total = WeightTotal.apart(out, workspace)

    def run() -> None:
        total.restart()
        for block, taps in patches.gathered():
            for image, head in enumerate(heads.load(block)):
                for tap, matrices in enumerate(taps):
                    np.matmul(head, matrices[image].T, out=total.target[tap])
                total.add()
        total.store()

    return run


@dataclass(frozen=True, slots=True)
class _Sum:
    """A block's results, the product that is added next, and the function that adds it."""

    total: Array
    term: Array
    add: Run

    @classmethod
    def of(cls, total: Array, terms: Array, workspace: Workspace) -> _Sum:
        """Return products as large as `total` at the start of `terms`; without memory there are none."""
        if not terms.size:
            return cls(total, terms, _nothing)
        term = terms[: total.size].reshape(total.shape)
        return cls(total, term, bound(np.add, (total, term), total, workspace))


def _nothing() -> None:
    """Add no product to the first."""

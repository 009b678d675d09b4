"""Convolution as one matrix product for every image and tap of the first dimension, added up."""

from __future__ import annotations

import numpy as np

from ..kernel import Array, Run
from ..workspace import Workspace
from .matrices import Images, Weights, WeightTotal
from .patches import Patches, Windows


def forward(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """The convolution; nothing is empty."""
    patches = Patches(data, windows, workspace)
    weights = Weights.apart(filters, workspace)
    results = Images(out, windows, patches.largest, workspace)
    added = windows.taps[0] > 1
    terms = workspace.array((added * patches.largest.places_in(windows) * len(filters),), out.dtype)

    def run() -> None:
        weights.refresh()
        for block, (first, *rest) in patches.gathered():
            total = np.matmul(weights.matrices[0], first, out=results.matrices(block))
            for tap, matrices in enumerate(rest, 1):
                term = terms[: total.size].reshape(total.shape)
                np.add(total, np.matmul(weights.matrices[tap], matrices, out=term), out=total)
            results.store(block, total)

    return run


def weight_gradient(data: Array, gradient: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """The gradient of the filters; nothing is empty."""
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

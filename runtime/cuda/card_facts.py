"""Facts about a card and its libraries that decide the bits of results."""

from __future__ import annotations

import hashlib

import numpy as np

from ...operators.cuda.launch.commands import Matrix, MatrixProduct
from ...operators.cuda.vendor.libraries import library
from ...operators.kernels_version import kernels_version
from .cupy_machine import CupyMachine
from .inspection import components, cuda_version
from .machine import CudaMachine

PROBE = 192
"""The rows and columns of the matrices of the probe."""


def card_facts(card: int) -> dict[str, str]:
    """Return the kind of a card, the versions of what runs on it, and the digest of a product."""
    runtime = library("cupy", "a GPU").cuda.runtime
    machine = CupyMachine([card])
    try:
        digest = product_digest(machine)
    finally:
        machine.close()
    return {
        "the kind of card": str(runtime.getDeviceProperties(card)["name"].decode()),
        "the driver": cuda_version(int(runtime.driverGetVersion())),
        "the version of CUDA": cuda_version(int(runtime.runtimeGetVersion())),
        **{f"the version of {part.name}": part.version or "missing" for part in components()},
        "the kernels of cards": kernels_version("cuda"),
        "the arithmetic of cards": digest,
    }


def card_address(card: int) -> str:
    """Return a name of a card that it alone has on its machine."""
    return str(library("cupy", "a GPU").cuda.runtime.deviceGetPCIBusId(card))


def product_digest(machine: CudaMachine) -> str:
    """Return the digest of a product that the machine's first worker computes."""
    random = np.random.default_rng(0)
    nbytes = PROBE * PROBE * 4
    block = machine.allocate(0, 3 * nbytes)
    left, right, result = (
        Matrix(block + place * nbytes, PROBE, PROBE, PROBE, 1, 1, PROBE * PROBE, "float32")
        for place in range(3)
    )
    for matrix in (left, right):
        values = random.standard_normal((PROBE, PROBE)).astype(np.float32)
        machine.write(0, matrix.address, values.reshape(-1).view(np.uint8))
    product = MatrixProduct(left, right, result)
    machine.load(0, [product])
    machine.issue(0, product)
    machine.synchronize()
    return hashlib.sha256(machine.read(0, result.address, nbytes).tobytes()).hexdigest()

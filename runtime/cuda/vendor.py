"""The vendor's libraries for workers: a handle for each stream, plans for each card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...operators.cuda.launch.commands import Command, Convolution, MatrixProduct
from ...operators.cuda.vendor import cublas, cudnn


class VendorLibraries:
    """cuBLAS and cuDNN for workers on `cards`, opened when they are needed.

    `streams` are pointers to the workers' streams. `allocate(worker, nbytes)` gives the libraries memory,
    `nbytes[worker]` in total. The worker's card must be current in every call. If `tf32`, factors of float32
    may be rounded to TF32.
    """

    def __init__(
        self,
        cards: Sequence[int],
        streams: Sequence[int],
        allocate: Callable[[int, int], int],
        *,
        tf32: bool,
    ) -> None:
        self.nbytes = [0] * len(cards)
        self._cards = cards
        self._streams = streams
        self._allocate = allocate
        self._tf32 = tf32
        self._blas: dict[int, cublas.Cublas] = {}
        self._cudnn: dict[int, int] = {}
        self._plans: dict[int, cudnn.Plans] = {}

    def open(self, worker: int, commands: Iterable[Command]) -> None:
        """Open what these commands of a worker need."""
        kinds = set(map(type, commands))
        if MatrixProduct in kinds:
            self._blas_of(worker)
        if Convolution in kinds:
            self._cudnn_of(worker)

    def multiply(self, worker: int, product: MatrixProduct) -> None:
        """Enqueue a product on the worker's stream."""
        self._blas_of(worker).multiply(product)

    def convolve(self, worker: int, convolution: Convolution) -> None:
        """Enqueue a convolution on the worker's stream."""
        self._plans_of(worker).plan(convolution).execute(convolution, self._cudnn_of(worker))

    def scratch_bytes(self, worker: int, convolution: Convolution) -> int:
        """Return the scratch that a convolution's plan needs on the worker's card."""
        return self._plans_of(worker).workspace_bytes(convolution)

    def closing(self) -> list[tuple[int, Callable[[], None]]]:
        """Return the calls that release each worker's handles; nothing may run with them afterwards."""
        calls = [(worker, blas.close) for worker, blas in self._blas.items()]
        calls += [(worker, partial(cudnn.close_handle, handle)) for worker, handle in self._cudnn.items()]
        self._blas, self._cudnn, self._plans = {}, {}, {}
        return calls

    def _blas_of(self, worker: int) -> cublas.Cublas:
        if worker not in self._blas:
            nbytes = cublas.WORKSPACE_BYTES
            workspace = self._allocate(worker, nbytes)
            self.nbytes[worker] += nbytes
            self._blas[worker] = cublas.Cublas(self._streams[worker], workspace, nbytes, self._tf32)
        return self._blas[worker]

    def _cudnn_of(self, worker: int) -> int:
        if worker not in self._cudnn:
            self._cudnn[worker] = cudnn.open_handle(self._streams[worker])
        return self._cudnn[worker]

    def _plans_of(self, worker: int) -> cudnn.Plans:
        card = self._cards[worker]
        if card not in self._plans:
            self._plans[card] = cudnn.Plans(handle=self._cudnn_of(worker), tf32=self._tf32)
        return self._plans[card]

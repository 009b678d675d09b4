"""One call of an operator on DTensors, with a thread for each rank, and nothing else that communicates."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import TofuError
from ...importers.torch.installed import VERSION, installed
from ..translation.dtensor import as_placement, to_torch
from ..translation.placements import Placement, Replicate, Shard, Unreduced

SECONDS = 60
"""How long the threads of one call may take."""


@dataclass(frozen=True, slots=True)
class DTensorCall:
    """The outcome of a call."""

    placements: tuple[Placement | None, ...]
    """The placement of each output; None for one that Tofu has no word for. Empty if the call was refused."""

    collectives: int
    """The collectives that a rank took part in, such as for a redistribution of inputs."""

    difference: float
    """The largest difference of an output from plain PyTorch, relative to the largest value.

    It is 0 if the call was refused, and infinite if the parts do not have the shape of the output or are NaN.
    """

    error: str | None
    """The reason if the call was refused."""


def call(torch_op: Any, inputs: Sequence[Any], placements: Sequence[Placement], workers: int) -> DTensorCall:
    """Call an operator on DTensors that lie along one axis, and compare with the call on whole tensors.

    Parts are made and put together here. Raises TofuError if PyTorch has no process groups of threads.
    """
    torch = installed()
    try:
        from torch.distributed import tensor
        from torch.distributed.tensor.debug import CommDebugMode
    except ImportError as error:
        raise TofuError(f"this PyTorch has no DTensor ({error}); the audit is for {VERSION}") from error
    expected = _listed(torch_op(*inputs))
    parts = [_parts(torch, each, p, workers) for each, p in zip(inputs, placements, strict=True)]

    def on_rank(rank: int) -> tuple[list[Any], list[Any], int]:
        mesh = tensor.DeviceMesh("cpu", list(range(workers)))
        given = [
            tensor.DTensor.from_local(
                of_input[rank],
                mesh,
                to_torch((p,)),
                run_check=False,
                shape=whole.shape,
                stride=whole.stride(),
            )
            for of_input, p, whole in zip(parts, placements, inputs, strict=True)
        ]
        with CommDebugMode() as counted, torch.no_grad():
            found = _listed(torch_op(*given))
        made = [each.placements[0] for each in found]
        known = [  # DTensor itself reduces terms of a kind of its own
            each if as_placement(p) is not None else each.redistribute(placements=[tensor.Replicate()])
            for each, p in zip(found, made, strict=True)
        ]
        return [each.to_local() for each in known], made, counted.get_total_counts()

    try:
        ranks = _in_threads(on_rank, workers)
    except _RankError as error:
        return DTensorCall((), 0, 0.0, str(error))
    made = tuple(map(as_placement, ranks[0][1]))
    difference = 0.0
    for number, want in enumerate(expected):
        locals_ = [of_rank[0][number] for of_rank in ranks]
        difference = max(difference, _difference(torch, locals_, made[number], want))
    return DTensorCall(made, max(of_rank[2] for of_rank in ranks), difference, None)


class _RankError(Exception):
    """The error of a rank."""


def _in_threads(on_rank: Callable[[int], Any], workers: int) -> list[Any]:
    """Return what a function returns on every rank. Raises _RankError with the first error of a rank."""
    torch = installed()
    distributed = torch.distributed
    try:
        threads_of = importlib.import_module("torch.testing._internal.distributed.multi_threaded_pg")
    except ImportError as error:
        raise TofuError(
            f"this PyTorch has no process groups of threads ({error}); the audit is for {VERSION}"
        ) from error
    results: list[Any] = [None] * workers
    errors: list[str] = []
    isolate = torch._C._distributed_c10d._set_thread_isolation_mode
    isolate(True)
    threads_of._install_threaded_pg()
    store = distributed.HashStore()

    def run(rank: int) -> None:
        try:
            distributed.init_process_group("threaded", rank=rank, world_size=workers, store=store)
            results[rank] = on_rank(rank)
        except BaseException as error:  # any error of PyTorch is an outcome
            lines = str(error).strip().splitlines()
            errors.append(f"{type(error).__name__}: {lines[0] if lines else ''}"[:200])
            threads_of.ProcessLocalGroup.exception_handle(error)

    try:
        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(workers)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(SECONDS)
        if any(each.is_alive() for each in threads):
            errors.append(f"the ranks wait for each other for more than {SECONDS} seconds")
    finally:
        threads_of.ProcessLocalGroup.reset()
        threads_of._uninstall_threaded_pg()
        isolate(False)
    if errors:
        raise _RankError(errors[0])
    return results


def _parts(torch: Any, whole: Any, placement: Placement, workers: int) -> list[Any]:
    """Return the part of every rank. Terms of a sum are random but for the last."""
    match placement:
        case Shard(dim=dim):
            return [part.contiguous() for part in torch.chunk(whole, workers, dim)]
        case Replicate():
            return [whole.clone() for _ in range(workers)]
        case Unreduced():
            generator = torch.Generator().manual_seed(0)
            terms = [
                torch.randn(whole.shape, generator=generator, dtype=whole.dtype) for _ in range(workers - 1)
            ]
            return [*terms, whole - sum(terms)]


def _difference(torch: Any, parts: Sequence[Any], placement: Placement | None, want: Any) -> float:
    """Return the largest difference of what the ranks hold, put together, from what is wanted."""
    stacked: Any = torch.stack(list(parts)) if isinstance(placement, Unreduced) else None
    match placement:
        case Shard(dim=dim):
            held = [torch.cat(list(parts), dim)]
        case Unreduced(reduction="sum"):
            held = [stacked.sum(0)]
        case Unreduced(reduction="avg"):
            held = [stacked.mean(0)]
        case Unreduced(reduction="max"):
            held = [stacked.amax(0)]
        case Unreduced(reduction="min"):
            held = [stacked.amin(0)]
        case Unreduced(reduction="product"):
            held = [stacked.prod(0)]
        case Unreduced(reduction=other):
            raise TofuError(f"DTensor combines terms by {other!r}, which the audit does not know")
        case _:
            held = list(parts)
    if any(each.shape != want.shape for each in held):
        return float("inf")
    if not want.numel():
        return 0.0
    scale = max(float(want.abs().max()), 1e-30)
    largest = torch.stack([(each - want).abs().max() for each in held]).max() / scale
    return float(torch.nan_to_num(largest, nan=float("inf")))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]

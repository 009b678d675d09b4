"""One call of an operator on DTensors, with a thread for each rank, and nothing else that communicates."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from ...errors import TofuError
from ...importers.torch.installed import VERSION, installed
from ..translation.dtensor import as_placement, to_torch
from ..translation.placements import Placements, Replicate, Unreduced
from .parts import difference, parts_of

CANNOT_SEND = "No backend type associated with device type cpu"
"""The error of PyTorch if one rank sends to another, which process groups of threads cannot do."""

SECONDS = 60
"""How long the threads of one call may take."""


@dataclass(frozen=True, slots=True)
class DTensorCall:
    """The outcome of a call: its outputs, or the gradients of its inputs."""

    placements: tuple[Any, ...]
    """How each output, or each gradient, lies; None for a placement that Tofu has no word for.

    It is a placement if the number of workers was given, and a tuple of one for each axis if a mesh was.
    Empty if the call was refused.
    """

    collectives: int
    """The collectives that a rank took part in, such as for a redistribution of inputs."""

    difference: float
    """The largest difference from plain PyTorch, relative to the largest value.

    It is 0 if the call was refused, and infinite if the parts do not have the shape of the whole or are NaN.
    """

    error: str | None
    """The reason if the call was refused."""

    heads: tuple[Any, ...] = ()
    """How the gradient of each output lay that the backward pass was given; empty if there was none."""

    forward_collectives: int = 0
    """The collectives of the forward pass before a backward pass."""


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward pass of an operator on whole tensors."""

    inputs: Sequence[int]
    """The numbers of the inputs that have a gradient."""

    outputs: Sequence[int]
    """The numbers of the outputs that depend on them."""

    heads: Sequence[Any]
    """The gradient of each of these outputs that is given: ones for a single number, or else random."""

    gradients: Sequence[Any]
    """The gradients of these inputs."""


class Caller:
    """Calls an operator on the same inputs, which lie in any way on a mesh of these sizes."""

    def __init__(self, torch_op: Callable[..., Any], inputs: Sequence[Any], sizes: tuple[int, ...]) -> None:
        """Raise TofuError if PyTorch has no DTensor."""
        try:
            from torch.distributed import tensor
            from torch.distributed.tensor.debug import CommDebugMode
        except ImportError as error:
            raise TofuError(f"this PyTorch has no DTensor ({error}); the audit is for {VERSION}") from error
        self._tensor, self._counting = tensor, CommDebugMode
        self._op, self._inputs, self._sizes = torch_op, inputs, sizes
        self._expected = _listed(torch_op(*inputs))

    def outputs(self, placements: Sequence[Placements]) -> DTensorCall:
        """Call the operator, and compare its outputs with those of whole tensors."""
        parts = self._parts(placements)

        def on_rank(rank: int) -> tuple[list[Any], list[Any], int]:
            mesh = self._mesh()
            given = [
                self._distributed(mesh, part[rank], placed, whole)
                for part, placed, whole in zip(parts, placements, self._inputs, strict=True)
            ]
            with self._counting() as counted, installed().no_grad():
                found = _listed(self._op(*given))
            return *self._known(found), counted.get_total_counts()

        try:
            ranks = _in_threads(on_rank, prod(self._sizes))
        except _RankError as error:
            return DTensorCall((), 0, 0.0, str(error))
        collectives = max(of_rank[2] for of_rank in ranks)
        made = tuple(map(_placed, ranks[0][1]))
        return DTensorCall(made, collectives, self._difference(ranks, self._expected), None)

    def gradients(self, placements: Sequence[Placements]) -> DTensorCall:
        """Call the operator and its backward pass, and compare the gradients of inputs that have one.

        The gradient of an output lies as the output does. If that is terms, the gradient is whole.
        """
        parts, plain = self._parts(placements), self.backward
        reached: dict[int, tuple[list[Placements], int]] = {}

        def on_rank(rank: int) -> tuple[list[Any], list[Any], int]:
            mesh = self._mesh()
            given = [
                self._distributed(mesh, part[rank], placed, whole).requires_grad_(number in plain.inputs)
                for number, (part, placed, whole) in enumerate(
                    zip(parts, placements, self._inputs, strict=True)
                )
            ]
            with self._counting() as forward:
                outputs = _listed(self._op(*given))
            outputs = [outputs[number] for number in plain.outputs]
            lie = [_of_head(each.placements) for each in outputs]
            reached[rank] = lie, forward.get_total_counts()
            heads = [
                self._distributed(mesh, parts_of(head, p, self._sizes)[rank], p, head)
                for head, p in zip(plain.heads, lie, strict=True)
            ]
            with self._counting() as backward:
                found = installed().autograd.grad(outputs, [given[number] for number in plain.inputs], heads)
            return *self._known(found), backward.get_total_counts()

        try:
            ranks = _in_threads(on_rank, prod(self._sizes))
        except _RankError as error:
            heads, moved = reached.get(0, ([], 0))
            return DTensorCall((), 0, 0.0, str(error), tuple(heads), moved)
        return DTensorCall(
            tuple(map(_placed, ranks[0][1])),
            max(of_rank[2] for of_rank in ranks),
            self._difference(ranks, plain.gradients),
            None,
            tuple(reached[0][0]),
            max(moved for _, moved in reached.values()),
        )

    @cached_property
    def backward(self) -> Backward:
        """Return the backward pass of plain PyTorch. Raises TofuError if no input has a gradient."""
        torch = installed()
        given = [each.clone().requires_grad_(each.is_floating_point()) for each in self._inputs]
        outputs = _listed(self._op(*given))
        made = [number for number, each in enumerate(outputs) if each.requires_grad]
        generator = torch.Generator().manual_seed(1)
        heads = [
            torch.randn(each.shape, generator=generator, dtype=each.dtype)
            if each.ndim
            else torch.ones_like(each)
            for each in (outputs[number].detach() for number in made)
        ]
        wanted = [number for number, each in enumerate(given) if each.requires_grad]
        if not made or not wanted:
            raise TofuError("no output depends on an input of floating-point numbers: there are no gradients")
        found = torch.autograd.grad(
            [outputs[number] for number in made], [given[n] for n in wanted], heads, allow_unused=True
        )
        differ = [n for n, each in zip(wanted, found, strict=True) if each is not None]
        return Backward(differ, made, heads, [each for each in found if each is not None])

    def _parts(self, placements: Sequence[Placements]) -> list[list[Any]]:
        return [parts_of(each, p, self._sizes) for each, p in zip(self._inputs, placements, strict=True)]

    def _mesh(self) -> Any:
        ranks = installed().arange(prod(self._sizes)).reshape(self._sizes)
        return self._tensor.DeviceMesh("cpu", ranks)

    def _distributed(self, mesh: Any, part: Any, placements: Placements, whole: Any) -> Any:
        return self._tensor.DTensor.from_local(
            part, mesh, to_torch(placements), run_check=False, shape=whole.shape, stride=whole.stride()
        )

    def _known(self, found: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the parts and the placements of DTensors; DTensor itself reduces terms of its own kinds."""
        made = [each.placements for each in found]
        whole = [self._tensor.Replicate()] * len(self._sizes)
        known = [
            each if _placed(p) is not None else each.redistribute(placements=whole)
            for each, p in zip(found, made, strict=True)
        ]
        return [each.to_local().detach() for each in known], made

    def _difference(self, ranks: Sequence[Any], expected: Sequence[Any]) -> float:
        """Return the largest difference of any tensor, from the parts and placements of all ranks."""
        whole = (Replicate(),) * len(self._sizes)
        return max(
            (
                difference(
                    [of_rank[0][number] for of_rank in ranks],
                    _placed(ranks[0][1][number]) or whole,
                    self._sizes,
                    want,
                )
                for number, want in enumerate(expected)
            ),
            default=0.0,
        )


def _placed(placements: Sequence[Any]) -> Placements | None:
    """Return placements of PyTorch as Tofu's; None if one of them is of a kind that Tofu does not have."""
    found = tuple(map(as_placement, placements))
    return None if None in found else found  # type: ignore[return-value]  # there is no None


def _of_head(placements: Sequence[Any]) -> Placements:
    """Return how the gradient of an output lies: whole where the output is terms of a kind."""
    found = map(as_placement, placements)
    return tuple(Replicate() if each is None or isinstance(each, Unreduced) else each for each in found)


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


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]

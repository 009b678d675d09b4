"""Cut whole tensors of PyTorch into the parts of ranks, and put parts together, along the axes of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import TofuError
from ...importers.torch.installed import installed
from ..translation.placements import Placement, Placements, Replicate, Shard, Unreduced


def parts_of(whole: Any, placements: Placements, sizes: tuple[int, ...]) -> list[Any]:
    """Return the part of every rank, in row-major order. Terms of a sum are random but for the last.

    Raises TofuError for a dimension that the tensor does not have, and for terms that are not of a sum.
    """
    parts = [whole]
    for placement, size in zip(placements, sizes, strict=True):
        parts = [each for part in parts for each in _cut(part, placement, size)]
    return parts


def _cut(part: Any, placement: Placement, size: int) -> list[Any]:
    """Return what the ranks along one axis hold of a part. Equal parts are cut into equal terms."""
    torch = installed()
    match placement:
        case Shard(dim=dim) if not -part.ndim <= dim < part.ndim:
            raise TofuError(f"Shard({dim}) of a tensor of {part.ndim} dimensions; name one that it has")
        case Shard(dim=dim):
            parts = [each.contiguous() for each in torch.chunk(part, size, dim)]
            return parts + [part.narrow(dim, 0, 0)] * (size - len(parts))
        case Replicate():
            return [part.clone() for _ in range(size)]
        case Unreduced(reduction="sum"):
            generator = torch.Generator().manual_seed(0)
            terms = [torch.randn(part.shape, generator=generator, dtype=part.dtype) for _ in range(size - 1)]
            return [*terms, part - sum(terms)]
        case _:
            raise TofuError(f"the audit makes terms of a sum, and not {placement}")


def difference(parts: Sequence[Any], placements: Placements, sizes: tuple[int, ...], want: Any) -> float:
    """Return the largest difference of what the ranks hold, put together, from what is wanted.

    It is relative to the largest value, and infinite if a part has another shape than it should, or is NaN.
    Ranks that should hold the same are all looked at.
    """
    torch = installed()
    without_terms = tuple(Replicate() if isinstance(p, Unreduced) else p for p in placements)
    shapes = [each.shape for each in parts_of(want, without_terms, sizes)]
    if [each.shape for each in parts] != shapes:
        return float("inf")
    if not want.numel():
        return 0.0
    groups = [[part] for part in parts]
    for placement, size in reversed(list(zip(placements, sizes, strict=True))):
        groups = [_joined(groups[first : first + size], placement) for first in range(0, len(groups), size)]
    (held,) = groups
    scale = max(float(want.abs().max()), 1e-30)
    largest = torch.stack([(each - want).abs().max() for each in held]).max() / scale
    return float(torch.nan_to_num(largest, nan=float("inf")))


def _joined(groups: Sequence[Sequence[Any]], placement: Placement) -> list[Any]:
    """Put together what the ranks along one axis hold, of which each group lists the candidates of one."""
    if isinstance(placement, Replicate):
        return [each for group in groups for each in group]
    return [_combined(each, placement) for each in zip(*groups, strict=True)]


def _combined(parts: Sequence[Any], placement: Shard | Unreduced) -> Any:
    torch = installed()
    if isinstance(placement, Shard):
        return torch.cat(list(parts), placement.dim)
    stacked = torch.stack(list(parts))
    match placement.reduction:
        case "sum":
            return stacked.sum(0)
        case "avg":
            return stacked.mean(0)
        case "max":
            return stacked.amax(0)
        case "min":
            return stacked.amin(0)
        case "product":
            return stacked.prod(0)
        case other:
            raise TofuError(f"DTensor combines terms by {other!r}, which the audit does not know")

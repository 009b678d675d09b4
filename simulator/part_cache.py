"""Parts of tensors, one object for equal ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..analyzer.indices.region import Boxes
from ..support.compiled import numbers
from .part_sets import PartSet, Pieces, check_tiles, pieces


class PartCache:
    """Regions, the parts of workers, and which of them tile what they are parts of."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[object, ...], Pieces] = {}
        self._parts: dict[tuple[tuple[int, ...], Pieces], PartSet] = {}
        self._tiling: set[tuple[Pieces, tuple[int, ...]]] = set()
        self.size = 0
        """The integers in all parts."""

    def pieces(self, boxes: Boxes, term: Sequence[int], terms: int) -> Pieces:
        """Return regions with these terms and number of terms."""
        key = boxes.tobytes(), boxes.shape, tuple(term), terms
        found = self._pieces.get(key)
        if found is None:
            found = self._pieces[key] = pieces(boxes, term, terms)
            self.size += boxes.size
        return found

    def parts(self, workers: Sequence[int], of: Pieces) -> PartSet:
        """Return the parts of workers."""
        key = tuple(workers), of
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = PartSet(key[0], numbers(workers), of)
            self.size += len(workers)
        return found

    def check_tiles(self, found: Pieces, extents: Sequence[int]) -> None:
        """Raise PlanError unless the distinct regions of every term make up all elements, each once."""
        key = found, tuple(extents)
        if key not in self._tiling:
            check_tiles(found, tuple([(0, extent) for extent in extents]))
            self._tiling.add(key)

    def clear(self) -> None:
        """Forget all parts, so that they need no memory."""
        self._pieces.clear()
        self._parts.clear()
        self._tiling.clear()
        self.size = 0

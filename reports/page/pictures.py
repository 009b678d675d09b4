"""The drawings and region lists of a page, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...analyzer.indices.region import Boxes, Shape, to_region
from ...partitioner.layouts.forms import Workers
from ..drawing.svg import contents
from ..drawing.tensor import HEIGHT, WIDTH, caption, tensor_drawing
from ..drawing.tiles import plane_of_parts
from ..units import format_region
from .unique import Unique


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing and a list of regions, which several tensors of a page may share."""

    drawing: int
    """The number of the drawing."""

    regions: int
    """The number of the list of regions by worker."""

    caption: str
    """The drawing, in words."""

    halo: dict[int, int]
    """By dimension, the most elements that a worker reads beyond its own part."""

    @property
    def as_list(self) -> list[object]:
        return [self.drawing, self.regions, self.caption, *([self.halo] if self.halo else [])]


class Pictures:
    """The drawings and lists of one page; `workers` are those that it draws."""

    def __init__(self, workers: int) -> None:
        self.drawings = Unique()
        self.regions = Unique()
        self._workers = workers

    def of(
        self, shape: Shape, holders: Workers, regions: Boxes, beyond: Mapping[int, int] | None = None
    ) -> Picture:
        """Picture which regions of a tensor belong to which workers: `[parts]` and `[parts, dimensions, 2]`.

        `beyond` is the halo, if there may be one.
        """
        drawn = plane_of_parts(shape, holders, regions, self._workers)
        body = contents(tensor_drawing(drawn, ""))
        lists: list[dict[str, None]] = [{} for _ in range(self._workers)]
        for worker, box in zip(holders.tolist(), regions, strict=True):
            lists[worker][format_region(to_region(box))] = None
        texts = tuple("; ".join(listed) or "no part" for listed in lists)
        number = self.drawings.number(body)
        return Picture(number, self.regions.number(texts), caption(drawn), dict(beyond or {}))

    @property
    def symbols(self) -> dict[str, str]:
        return {
            f"d{number}": f'viewBox="0 0 {WIDTH} {HEIGHT}">{body}'
            for number, body in enumerate(self.drawings.values)
        }

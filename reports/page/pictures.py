"""The drawings and region lists of a page, each once."""

from __future__ import annotations

from dataclasses import dataclass

from ...analyzer.indices.region import Boxes, Shape, to_region
from ..drawing.svg import contents
from ..drawing.tensor import HEIGHT, WIDTH, caption, tensor_drawing
from ..drawing.tiles import halo, plane
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
    def __init__(self) -> None:
        self.drawings = Unique()
        self.regions = Unique()

    def of(self, shape: Shape, regions: Boxes) -> Picture:
        """Which region of a tensor belongs to which worker: `[workers, dimensions, 2]`."""
        drawn = plane(shape, regions)
        body = contents(tensor_drawing(drawn, ""))
        texts = tuple(format_region(to_region(box)) for box in regions)
        return Picture(self.drawings.number(body), self.regions.number(texts), caption(drawn), halo(regions))

    @property
    def symbols(self) -> dict[str, str]:
        return {
            f"d{number}": f'viewBox="0 0 {WIDTH} {HEIGHT}">{body}'
            for number, body in enumerate(self.drawings.values)
        }

"""An operator of several stages for given shapes, as a user looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analyzer.region import Shape
from ..errors import ShapeError
from .bound import BoundOperator, checked_arrays
from .definition import Variant
from .kernel import Array
from .stage import Stage
from .staging import produced_shapes, stages_of

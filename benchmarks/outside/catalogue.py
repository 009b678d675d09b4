"""All operators, by name."""

from __future__ import annotations

from . import (
    activations,
    attention,
    borders,
    cells,
    convolutions,
    distances,
    images,
    losses,
    norms,
    patches,
    routing,
    scans,
    transforms,
)
from .outsider import Outsider

_KINDS = (
    norms,
    activations,
    attention,
    convolutions,
    patches,
    images,
    borders,
    losses,
    cells,
    scans,
    distances,
    routing,
    transforms,
)

OUTSIDERS: dict[str, Outsider] = {
    found.name: found for kind in _KINDS for found in vars(kind).values() if isinstance(found, Outsider)
}

"""All operators, by name."""

from __future__ import annotations

from . import attention, convolutions, images, losses, norms, routing, sequences
from .outsider import Outsider

_KINDS = (norms, attention, convolutions, images, losses, sequences, routing)

OUTSIDERS: dict[str, Outsider] = {outsider.name: outsider for kind in _KINDS for outsider in kind.OUTSIDERS}

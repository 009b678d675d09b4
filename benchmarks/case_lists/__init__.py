"""Single-operator cases for MXNet to compute: operators, attributes and inputs, family by family."""

from . import elementwise, indexing, layers, losses, matrices, moves, reductions, sequences, updates
from .case import Case, Values

FAMILIES = (
    elementwise.cases,
    reductions.cases,
    matrices.cases,
    moves.cases,
    indexing.cases,
    layers.cases,
    losses.cases,
    sequences.cases,
    updates.cases,
)


def all_cases(seed: int = 0) -> list[Case]:
    """Return every case of every family; the same seed gives the same values."""
    return [case for number, family in enumerate(FAMILIES) for case in family(Values(seed + number))]

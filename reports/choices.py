"""Choices of a plan as people write them: one entry per step, `-` if a step does not split."""

from __future__ import annotations

from collections.abc import Sequence


def format_choice(choice: Sequence[str | int | None]) -> str:
    """`('n', None, 'c') -> 'n,-,c'`, as `--pin` takes it."""
    return ",".join("-" if entry is None else str(entry) for entry in choice)

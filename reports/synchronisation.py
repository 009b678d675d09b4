"""How a plan synchronises variables: bytes by kind of synchroniser, and the time of an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds


def show(facts: Mapping[str, Any]) -> None:
    """Print the figures that `tofu sync --json` prints."""
    console = wide_console()
    console.print(
        f"[bold]{facts['model']}[/], over {counted(facts['workers'], 'worker')}: "
        f"{format_bytes(facts['cost_bytes'])} moved in one iteration, {facts['cost_bytes']:,} bytes",
        soft_wrap=True,
    )
    shown = table("synchronised by", "variables", "sparse", "bytes", "gradients move", "readers fetch")
    for share in facts["shares"]:
        sizes = (share[key] for key in ("variable_bytes", "gradient_bytes", "fetched_bytes"))
        shown.add_row(share["kind"], str(share["variables"]), str(share["sparse"]), *map(format_bytes, sizes))
    console.print(shown)
    console.print(f"all other tensors move {format_bytes(facts['other_bytes'])}")
    if facts["step_seconds"] is not None:
        console.print(
            f"an iteration takes {format_seconds(facts['step_seconds'])} on {facts['machine']} by estimate",
            soft_wrap=True,
        )

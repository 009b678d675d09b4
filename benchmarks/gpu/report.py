"""Results in words."""

from __future__ import annotations

from typing import Any

Results = dict[str, Any]


def line(title: str, result: Results) -> str:
    """Return one result in words."""
    parts = [f"{title:52}"]
    if "part_of_copy" in result:
        parts.append(f"{result['bytes_a_second'] / 1e9:8.0f} GB/s, {result['part_of_copy']:5.0%} of a copy")
    elif "seconds" in result:
        parts.append(f"{result['seconds'] * 1e3:9.1f} ms a step")
    if "engine_bytes" in result:
        planned, used = result["planned_bytes"] / 2**30, result["engine_bytes"] / 2**30
        parts.append(f"{used:.2f} GiB used, {planned:.2f} planned")
    elif "planned_bytes" in result:
        parts.append(f"{result['planned_bytes'] / 2**30:.2f} GiB planned")
    if "commands" in result and "seconds" not in result:
        parts.append(f"commands: {result['commands']}")
    return ", ".join(parts)

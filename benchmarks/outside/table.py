"""Results as lines of a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from .apart import Row
from .distance import COARSE, FINE

NAME = 26
DISTANCES = ("interpreter", "forward", "gradient")


def check_head() -> str:
    columns = "".join(f"{title:>13}" for title in DISTANCES)
    return f"{'checks':{NAME}}{columns}{'proven':>8}{'tried':>7}{'refuted':>9}{'seconds':>9}"


def check_line(name: str, row: Row) -> str:
    """Return how far an operator is from interpreter and PyTorch, and what became of the claims about it."""
    distances = "".join(f"{_distance(row.get(title)):>13}" for title in DISTANCES)
    claims = row.get("claims", {})
    counts = f"{claims.get('proven', '-'):>8}{claims.get('tried', '-'):>7}{claims.get('refuted', '-'):>9}"
    return f"{name:{NAME}}{distances}{counts}{row.get('audit_seconds', 0):9.1f}{_trouble(row)}"


def race_head() -> str:
    """Milliseconds and ratio of each pass; the largest temporary in sizes of all arguments and outputs."""
    passes = "".join(
        f"{which:>12}{'torch ms':>10}{'ratio':>8}{'temp':>7}" for which in ("forward ms", "gradient ms")
    )
    return f"{'speed':{NAME}}{passes}"


def race_line(name: str, row: Row) -> str:
    return f"{name:{NAME}}{_pass(row.get('forward'))}{_pass(row.get('gradient'))}{_trouble(row)}"


def summary(results: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    """Return the counts over all operators."""
    checked = {name: row["checks"] for name, row in results.items() if "checks" in row}
    if checked:
        good = [name for name, row in checked.items() if "claims" in row and not _trouble(row)]
        yield f"{len(good)} of {len(checked)} operators pass all checks"
    for which in ("forward", "gradient"):
        ratios = [
            row["speed"][which]["ratio"]
            for row in results.values()
            if "ratio" in row.get("speed", {}).get(which, {})
        ]
        if ratios:
            slow = sum(ratio > 1.5 for ratio in ratios)
            yield (
                f"{which}: median ratio {statistics.median(ratios):.2f} over {len(ratios)} operators, "
                f"{slow} above 1.5, worst {max(ratios):.1f}"
            )


def _distance(value: float | None) -> str:
    if value is None:
        return "-"
    return "equal" if value <= FINE else f"{value:.1e}"


def _pass(row: Row | None) -> str:
    if row is None:
        return f"{'-':>12}{'-':>10}{'-':>8}{'-':>7}"
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "once"
    return f"{row['tofu_ms']:12.2f}{row['torch_ms']:10.2f}{ratio:>8}{row['temporary']:7.2f}"


def _trouble(row: Row) -> str:
    """Everything that is not as it should be."""
    found = [f"stopped: {row['stopped']}, in {row.get('doing', 'preparation')}"] if "stopped" in row else []
    found += [
        f"{title} differs" for title in DISTANCES if isinstance(row.get(title), float) and row[title] > FINE
    ]
    found += [f"refuted {claim}" for claim in row.get("refuted", [])]
    passes = (row.get(which) for which in ("forward", "gradient"))
    found += [
        f"wrong by {one['wrong']:.1e}"
        for one in passes
        if isinstance(one, dict) and one.get("wrong", 0) > COARSE
    ]
    return "".join(f"  {text}" for text in found)

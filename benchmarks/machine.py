"""Where and when a benchmark ran, in words."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version


def described() -> dict[str, str]:
    """Date, processor cores and versions; nothing that tells one machine from another of its kind."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": f"Python {platform.python_version()}, NumPy {version('numpy')}, SymPy {version('sympy')}",
    }

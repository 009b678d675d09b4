"""The progress that an audit shows."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

import tofu
from tofu.analyzer.audit.finding import Check
from tofu.reports.checks import Checks

HALF = tofu.parse("def half(data):\n    return lambda i=data.shape[0] // 2: data[2 * i]")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [StringIO, Terminal])
@pytest.mark.parametrize("quiet", [False, True])
def test_the_check_that_runs_is_shown_on_a_terminal_alone(kind: type[StringIO], quiet: bool) -> None:
    file = kind()
    console = Console(file=file, force_terminal=True, width=100)
    with Checks(console, quiet=quiet) as checks:
        checks("half_grad_data", Check.REPLAY, "i")
        assert checks._status is None or str(checks._status.status) == "half_grad_data: C: replay, along i"
        checks("half", Check.WHOLE, None)
        assert checks._status is None or str(checks._status.status) == "half: A: whole"
    assert bool(file.getvalue()) == (kind is Terminal and not quiet)


def test_an_audit_tells_every_check_before_it_begins() -> None:
    told: list[tuple[str, Check, str | None]] = []
    report = tofu.audit(HALF, shapes={"data": (8,)}, report=lambda *check: told.append(check))
    found = [(f.operator, f.check, f.variable) for f in report.findings if f.check is not Check.OFFSET]
    assert told == found

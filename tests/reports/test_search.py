"""The bounds that a search shows while it runs."""

from __future__ import annotations

import time
from io import StringIO

import pytest
from rich.console import Console

from tofu import models
from tofu.partitioner import partition
from tofu.partitioner.methods.simulated import SearchProgress
from tofu.reports.search import BoundsLine, SearchLine, format_picoseconds


def test_lines_where_the_gap_has_closed_noticeably():
    console = Console(file=StringIO(), width=100)
    with BoundsLine(console) as bounds:
        for cost, bound in ((2000, 1000), (2000, 1001), (1999, 1500), (1800, 1800), (1800, 1800)):
            bounds(cost, bound)
    assert console.file.getvalue().splitlines() == [
        "found 2.00 kB, proven of this space 1.00 kB, gap 50.00%",
        "found 2.00 kB, proven of this space 1.50 kB, gap 24.96%",
        "found 1.80 kB, proven of this space 1.80 kB, gap 0.00%",
    ]


def test_times_are_not_shown_as_bytes():
    console = Console(file=StringIO(), width=100)
    with BoundsLine(console, format_picoseconds) as bounds:
        bounds(45_120_000_000, 45_120_000_000)
    assert console.file.getvalue() == "found 45.12 ms, proven of this space 45.12 ms, gap 0.00%\n"


class _Terminal(StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [StringIO, _Terminal])
def test_one_line_on_a_terminal(kind):
    """Which colours asked for do not make of a pipe."""
    console = Console(file=kind(), force_terminal=True, highlight=False, width=100)
    with BoundsLine(console) as bounds:
        bounds(2000, 1000)
        bounds(2000, 2000)
    said = console.file.getvalue()
    if kind is StringIO:
        assert said.splitlines() == [
            "found 2.00 kB, proven of this space 1.00 kB, gap 50.00%",
            "found 2.00 kB, proven of this space 2.00 kB, gap 0.00%",
        ]
    else:
        assert "gap 0.00%" in said
        assert said.endswith("\x1b[2K"), "the line is taken back"


def test_numbers_of_workers_that_are_tried_have_bounds_of_their_own():
    console = Console(file=StringIO(), width=100)
    with BoundsLine(console, what="searching by exact") as bounds:
        for workers in (1, 2):
            bounds.trying(workers)
            bounds(2000, 2000)
    found = "found 2.00 kB, proven of this space 2.00 kB, gap 0.00%"
    first, second = "searching by exact over 1 worker", "searching by exact over 2 workers"
    assert console.file.getvalue().splitlines() == [first, found, second, found]


def test_without_bounds_a_terminal_shows_what_is_done():
    console = Console(file=_Terminal(), force_terminal=True, width=100)
    with BoundsLine(console, what="searching by refine"):
        pass
    assert "searching by refine" in console.file.getvalue()


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (SearchProgress(0.0125, 0, 0, 0, 0.0), "best plan 12.50 ms, planning starts"),
        (
            SearchProgress(0.0125, 2, 5, 40, 8.0),
            "best plan 12.50 ms, chain 2 of 5, 40 proposals, 8 per second",
        ),
    ],
)
def test_a_random_search_says_whether_it_plans_starts_or_runs_chains(progress, text):
    console = Console(file=_Terminal(), force_terminal=True, width=100)
    with SearchLine(console) as line:
        line(progress)
        time.sleep(0.2)
    assert text in console.file.getvalue()


def test_a_search_reports_bounds_that_close():
    graph = models.get("mlp").training_graph()
    seen = []
    plan = partition(graph, 8, "exact", keep=False, report=lambda cost, bound: seen.append((cost, bound)))
    assert seen[-1] == (plan.cost_bytes, plan.lower_bound_bytes)
    costs, bounds = zip(*seen, strict=True)
    assert list(costs) == sorted(costs, reverse=True)
    assert list(bounds) == sorted(bounds)

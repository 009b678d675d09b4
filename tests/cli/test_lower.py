"""`tofu lower` prints the programs that `tofu.lower` makes."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

import tofu as package

Tofu = Callable[..., Result]


def test_the_programs_are_printed(tofu: Tofu) -> None:
    graph = package.models.get("mlp", batch=8).training_graph()
    programs = package.lower(graph, package.partition(graph, 4, method="refine"))
    options = ("--workers", "4", "--batch", "8", "--method", "refine")
    assert tofu("lower", "mlp", *options).output == f"{programs}\n"
    one = tofu("lower", "mlp", *options, "--worker", "3", "--operation", "fc2.product")
    assert one.output == programs.text(3, "fc2.product") + "\n"


def test_a_worker_that_there_is_not_ends_in_a_message(tofu: Tofu) -> None:
    result = tofu("lower", "mlp", "--workers", "2", "--worker", "2")
    assert result.exit_code == 2
    assert "there is no worker 2; workers are numbered 0 to 1" in result.output

"""Programs in words: golden, complete, and with the bytes that cross."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import tofu
from tofu.errors import ProgramError
from tofu.programs import PartitionedGraph

Golden = Callable[[str, str], None]


@pytest.fixture(scope="module")
def mlp() -> PartitionedGraph:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    return tofu.lower(graph, tofu.partition(graph, 4))


def test_the_text_of_a_program(mlp: PartitionedGraph, golden: Golden) -> None:
    golden("mlp-on-4-workers.txt", str(mlp) + "\n")


def test_one_operation_of_one_worker(mlp: PartitionedGraph) -> None:
    text = mlp.text(worker=3, operation="fc1.product")
    assert "worker 3, " in text
    assert "worker 0, " not in text
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert lines == [
        line
        for line in str(mlp).split("\n\n")[4].splitlines()
        if "compute fc1.product " in line or "for fc1.product:" in line
    ]


def test_every_instruction_has_its_line(mlp: PartitionedGraph) -> None:
    lines = [line for line in str(mlp).splitlines() if line.startswith("  ")]
    assert len(lines) == sum(len(program.instructions) for program in mlp.programs)


def test_the_bytes_printed_are_those_that_cross(mlp: PartitionedGraph) -> None:
    printed = re.findall(r"worker \d+ \[[^]]*\] ([\d,]+) bytes", str(mlp))
    assert sum(int(number.replace(",", "")) for number in printed) == mlp.planned_bytes


def test_what_there_is_not_is_refused(mlp: PartitionedGraph) -> None:
    with pytest.raises(ProgramError, match="no worker 4; workers are numbered 0 to 3"):
        mlp.text(worker=4)
    with pytest.raises(ProgramError, match=r"no operation 'fc1\.produc'; did you mean 'fc1\.product'"):
        mlp.text(operation="fc1.produc")

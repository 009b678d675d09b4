"""Facts are compared process by process, and the first difference is named with both values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tofu
from tofu.runtime.distributed import agreement
from tofu.runtime.distributed.agreement import first_difference, machine_facts, program_facts

NAMES = ("process 0", "process 1", "process 2")


def test_equal_facts_have_no_difference() -> None:
    assert first_difference([machine_facts()] * 3, NAMES) is None
    assert machine_facts() == machine_facts()


def test_the_first_difference_is_named_with_both_values() -> None:
    facts = [{"the seed": "0", "BLAS": "mkl"}, {"the seed": "0", "BLAS": "openblas"}, {"the seed": "1"}]
    said = first_difference(facts, NAMES)
    assert said is not None
    assert said.startswith("process 0 and process 2 differ in the seed: 0 and 1; ")
    said = first_difference([facts[0], facts[1]], NAMES[:2])
    assert said is not None
    assert said.startswith("process 0 and process 1 differ in BLAS: mkl and openblas; ")


def test_long_values_are_shown_where_they_differ() -> None:
    said = first_difference([{"names": "a" * 500 + "x" + "b" * 500}, {"names": "a" * 500 + "y"}], NAMES[:2])
    assert said is not None
    assert re.search(r"names: \.\.\.a+xb+\.\.\. and \.\.\.a+y; ", said)
    assert len(said) < 400


def test_a_fact_that_one_does_not_state_differs() -> None:
    said = first_difference([{}, {"the seed": "1"}], NAMES[:2])
    assert said is not None
    assert "not stated and 1" in said


def test_other_arithmetic_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of one result."""
    before = machine_facts()
    exact = np.exp

    def slightly_off(array: np.ndarray) -> np.ndarray:
        found = exact(array)
        found.view(np.uint32)[3, 5] ^= 1
        return found

    monkeypatch.setattr(agreement.np, "exp", slightly_off)
    after = machine_facts()
    assert {name for name in before if before[name] != after[name]} == {"the arithmetic of NumPy"}


def test_programs_differ_if_one_instruction_does() -> None:
    graph = tofu.models.get("mlp", batch=12).training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, 2))
    first, *others = partitioned.programs
    last = first.instructions[-1]
    changed = replace(first, instructions=(*first.instructions[:-1], replace(last, tick=last.tick + 1)))
    other = replace(partitioned, programs=(changed, *others))
    before, after = program_facts(partitioned), program_facts(other)
    assert before["the graph"] == after["the graph"]
    assert before["the programs"] != after["the programs"]

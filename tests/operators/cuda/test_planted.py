"""A corrupted source is refused: the comparison on the CPU sees every planted bug."""

from __future__ import annotations

from typing import Any

import pytest

from .comparison import compare
from .forked import fails
from .machine import Machine
from .planted import BUGS, SUBJECTS, Bug, Subject, variant


@pytest.fixture(scope="module")
def corrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, dict[str, Any]]:
    """All kernels compiled together; kernels by the bug's name, those without a bug by the subject's."""
    kernels, sources = {}, []
    for number, chosen in enumerate((*SUBJECTS, *BUGS)):
        subject = SUBJECTS[chosen.subject if isinstance(chosen, Bug) else chosen]
        kernel = subject.kernel()
        source = chosen.corrupted(kernel.source) if isinstance(chosen, Bug) else kernel.source
        name = chosen.name if isinstance(chosen, Bug) else chosen
        kernels[name], text = variant(kernel, source, number)
        sources.append(text)
    folder, source = tmp_path_factory.mktemp("planted"), "\n".join(sources)
    machine = Machine(list(kernels.values()), folder, source, "-O0")
    return machine, kernels


def refused(machine: Machine, subject: Subject, kernel: Any) -> bool:
    """Whether the comparison fails, crashes or does not end."""
    return fails(lambda: compare(machine, subject.bound, kernel, subject.types, subject.outputs, boxes=6))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: str(bug.name))
def test_a_corrupted_source_is_refused(corrupted: Any, bug: Bug) -> None:
    machine, kernels = corrupted
    assert refused(machine, SUBJECTS[bug.subject], kernels[bug.name])


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_generated_source_is_not(corrupted: Any, name: str) -> None:
    machine, kernels = corrupted
    assert not refused(machine, SUBJECTS[name], kernels[name])

"""The threads of NumPy's BLAS during commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NAME = "OPENBLAS_NUM_THREADS"

THREADS = f"""
import os, sys
import numpy
from threadpoolctl import threadpool_info
print([pool["num_threads"] for pool in threadpool_info() if pool["internal_api"] == "openblas"])
print(os.environ.get({NAME!r}))
"""

AFTER_COMMAND = "import sys; from tofu.cli import main; main(sys.argv[1:], standalone_mode=False)" + THREADS


def _last_lines(script: str, *arguments: str, given: str | None = None) -> list[str]:
    variables = {name: text for name, text in os.environ.items() if name != NAME}
    if given is not None:
        variables[NAME] = given
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-2:]


def test_commands_that_only_plan_start_no_threads() -> None:
    threads, variable = _last_lines(AFTER_COMMAND, "describe", "Dropout")
    assert threads in ("[1]", "[]")  # NumPy may have another library
    assert variable == "None"


@pytest.mark.parametrize(("arguments", "given"), [(("doctor",), None), (("describe", "Dropout"), "2")])
def test_others_have_the_threads_of_the_library_or_of_the_user(
    arguments: tuple[str, ...], given: str | None
) -> None:
    found = _last_lines(AFTER_COMMAND, *arguments, given=given)
    assert found == _last_lines(THREADS, given=given)

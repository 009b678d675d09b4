"""Run kernels that are calls of functions in C, one after the other, without the interpreter in between.

One function in C goes through a list of calls. Other threads of the interpreter run meanwhile. The number of
the step that runs is kept in memory, where others may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_longlong, c_void_p
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ExecutionError
from ..derive.steps.layout import address_of
from ..kernels.c_run import CCall, CRun
from ..kernels.kernel import Run
from .built_libraries import cache_folder, function_in, loaded
from .compiler import required

Step = Callable[[], None]

MOST_WORDS = 7
CALL = np.dtype([("form", np.int64), ("step", np.int64), ("words", np.uint64, MOST_WORDS)])
LIST = np.dtype([("calls", np.uint64), ("count", np.int64), ("running", np.uint64), ("status", np.int64)])
"""The structs that the function reads."""


def joined(steps: Sequence[tuple[int, Step]], running: int) -> list[tuple[int, Step]]:
    """Return numbered steps, with one step for each run of those that are calls in C.

    Its number is that of its first step. While it runs, the number of the step that it is at is in the memory
    at the address `running`. Raises ExecutionError if there is no compiler.
    """
    found: list[tuple[int, Step]] = []
    for in_c, run in groupby(steps, lambda step: isinstance(step[1], CRun)):
        numbered: list[tuple[int, Any]] = list(run)
        if not in_c:
            found += numbered
            continue
        calls = [(number, call) for number, step in numbered for call in step.calls]
        found.append((numbered[0][0], call_list(calls, running)))
    return found


def call_list(calls: Sequence[tuple[int, CCall]], running: int) -> Run:
    """Return the function that runs calls, each with the number of its step.

    Raises ExecutionError if there is no compiler. The function raises it if one of the calls fails.
    """
    table, given = np.zeros(len(calls), CALL), np.zeros(1, LIST)
    table["form"] = [call.form for _, call in calls]
    table["step"] = [number for number, _ in calls]
    for place, (_, call) in enumerate(calls):
        table["words"][place, : len(call.words)] = call.words
    given[0] = (address_of(table), len(calls), running, 0)
    function, address, count = _function(cache_folder()), c_void_p(address_of(given)), len(calls)

    def run(kept: object = (table, calls)) -> None:
        done = function(address)
        if done != count:
            raise ExecutionError(f"{calls[done][1].name} failed with status {given['status'][0]}")

    return run


@cache
def _function(folder: Path) -> Any:
    """Return the function, built if it is not in the folder of libraries."""
    source = (files(__package__) / "call_list.cpp").read_text(encoding="utf-8")
    function: Any = function_in(loaded(source, required()), "tofu_run_calls")
    function.restype = c_longlong
    return function

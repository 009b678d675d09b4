"""Run kernels that are calls of functions in C, one after the other, without the interpreter in between.

One function in C goes through a list of calls. Other threads of the interpreter run meanwhile. The number of
the step that runs is kept in memory, where others may read it. Others may also end the list early.
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
from ..kernels.c_run import CCall, CRun, Words
from ..kernels.kernel import Run
from .built_libraries import function_in, kernels_folder, loaded
from .compiler import required

Step = Callable[[], None]

LIST = np.dtype([(name, np.int64) for name in ("calls", "count", "running", "stopping", "status")])
"""The struct that the function reads."""


def joined(steps: Sequence[tuple[int, Step]], running: int, stopping: int) -> list[tuple[int, Step]]:
    """Return numbered steps, with one step for each run of those that are calls in C.

    Its number is that of its first step. While it runs, the number of the step that it is at is in the memory
    at the address `running`. It ends early if there is a number other than 0 at the address `stopping`.
    Raises ExecutionError if there is no compiler.
    """
    found: list[tuple[int, Step]] = []
    for in_c, run in groupby(steps, lambda step: isinstance(step[1], CRun)):
        numbered: list[tuple[int, Any]] = list(run)
        if not in_c:
            found += numbered
            continue
        calls = [(number, call) for number, step in numbered for call in step.calls]
        found.append((numbered[0][0], call_list(calls, running, stopping)))
    return found


def call_list(calls: Sequence[tuple[int, CCall]], running: int, stopping: int) -> Run:
    """Return the function that runs calls, each with the number of its step, as `joined` says.

    Raises ExecutionError if there is no compiler. The function raises it if one of the calls fails.
    """
    words, given = _written(calls), np.zeros(1, LIST)
    given[0] = (address_of(words), len(calls), running, stopping, 0)
    function, address = _function(kernels_folder()), c_void_p(address_of(given))

    def run(kept: object = (words, calls)) -> None:
        done = function(address)
        if given["status"][0]:
            raise ExecutionError(f"{calls[done][1].name} failed with status {given['status'][0]}")

    return run


def _written(calls: Sequence[tuple[int, CCall]]) -> Words:
    """Return calls one after the other in memory: form, step and number of words of each, and its words.

    The function reads memory from its start to its end, which costs little even if it is in no cache.
    """
    heads = [(call.form, number, call.words.size) for number, call in calls]
    parts = ((head, call.words) for head, (_, call) in zip(heads, calls, strict=True))
    return np.concatenate([np.asarray(each, np.int64) for part in parts for each in part])


@cache
def _function(folder: Path) -> Any:
    """Return the function, built if it is not in the folder of libraries."""
    source = (files(__package__) / "call_list.cpp").read_text(encoding="utf-8")
    function: Any = function_in(loaded(source, required()), "tofu_run_calls")
    function.restype = c_longlong
    return function

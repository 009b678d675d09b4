"""Lists of calls in C run in their order, say where they are, and name the function that fails."""

from __future__ import annotations

import ctypes
from array import array
from ctypes import CFUNCTYPE, c_int, c_void_p, cast

import numpy as np
import pytest

from tofu.errors import ExecutionError
from tofu.operators.kernels.c_run import CallForm, CCall, CRun
from tofu.operators.kernels.kernel import in_turn
from tofu.operators.native.call_list import Step, call_list, joined

Watched = CFUNCTYPE(None, c_void_p)
Checked = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p)
OpenMp = CFUNCTYPE(c_int)
SetOpenMp = CFUNCTYPE(None, c_int)

pytestmark = pytest.mark.usefixtures("native")


def address(function: object) -> int:
    return cast(function, c_void_p).value or 0  # type: ignore[arg-type]


class Running:
    """The memory in which a list says which step runs, and in which it is told to stop."""

    def __init__(self) -> None:
        self.memory = array("q", [-1, 0])
        self.addresses = (self.memory.buffer_info()[0], self.memory.buffer_info()[0] + self.memory.itemsize)

    @property
    def number(self) -> int:
        return self.memory[0]

    def stop(self) -> None:
        self.memory[1] = 1


def adding(total: array[int], amount: int) -> CRun:
    words = np.array((total.buffer_info()[0], amount))

    def run() -> None:
        total[0] += amount

    return CRun(run, (CCall(CallForm.COUNT, words, total, "the total"),))


def status_of(status: int, threads: list[int]) -> CCall:
    """Return the call of a function that returns a status and wants the arguments 8, 16, 24 and 32."""

    def function(first: int, second: int, third: int, fourth: int) -> int:
        right = (first, second, third, fourth) == (8, 16, 24, 32) and threads[-1] == 1
        return status if right else 99

    kept = (Checked(function), OpenMp(lambda: threads[-1]), SetOpenMp(threads.append))
    words = np.array((address(kept[0]), 8, 16, 24, 32, address(kept[1]), address(kept[2])))
    return CCall(CallForm.ONE_THREAD, words, kept, f"the function of status {status}")


def with_struct(function: object, *members: int) -> CCall:
    """Return the call of a function with a struct of these members."""
    return CCall(CallForm.STRUCT, np.array((address(function), *members)), function, "")


def test_calls_run_in_their_order_and_say_where_they_are() -> None:
    running, seen = Running(), list[tuple[int, int]]()

    def watch(struct: int | None) -> None:
        first, second = ctypes.cast(struct or 0, ctypes.POINTER(ctypes.c_int64))[:2]
        seen.append((first * second, running.number))

    watched = Watched(watch)
    calls = [(number, with_struct(watched, 2, given)) for number, given in ((7, 3), (7, 4), (9, 5))]
    run = call_list(calls, *running.addresses)
    run()
    run()
    assert seen == [(6, 7), (8, 7), (10, 9)] * 2


def test_a_list_that_is_told_to_stop_ends_after_the_call_that_runs() -> None:
    running, total = Running(), array("q", [0])
    stops = Watched(lambda _: running.stop())
    ((_, run),) = joined(
        [
            (0, adding(total, 1)),
            (1, CRun(lambda: None, (with_struct(stops),))),
            (2, adding(total, 2)),
        ],
        *running.addresses,
    )
    run()
    assert (total[0], running.number) == (1, 1)
    run()
    assert total[0] == 1


def test_functions_run_with_one_thread_and_the_number_is_as_before() -> None:
    running, threads = Running(), [6]
    call_list([(0, status_of(0, threads))], *running.addresses)()
    assert threads == [6, 1, 6]


def test_the_first_function_that_fails_is_named_and_ends_the_list() -> None:
    running, total, threads = Running(), array("q", [0]), [1]
    steps: list[tuple[int, Step]] = [
        (10, adding(total, 5)),
        (11, CRun(lambda: None, (status_of(0, threads), status_of(3, threads), status_of(4, threads)))),
        (12, adding(total, 7)),
    ]
    ((first, run),) = joined(steps, *running.addresses)
    with pytest.raises(ExecutionError, match="the function of status 3 failed with status 3"):
        run()
    assert (first, running.number, total[0]) == (10, 11, 5)


def test_steps_of_the_interpreter_stay_between_lists() -> None:
    total, seen = array("q", [0]), list[int]()
    steps: list[tuple[int, Step]] = [
        *((number, adding(total, 1)) for number in (0, 1, 2)),
        (3, lambda: seen.append(total[0])),
        (4, adding(total, 10)),
    ]
    running = Running()
    found = joined(steps, *running.addresses)
    assert [number for number, _ in found] == [0, 3, 4]
    for _, step in found:
        step()
    assert (seen, total[0]) == ([3], 13)


def test_large_numbers_are_counted() -> None:
    total = array("q", [1 << 40])
    running = Running()
    call_list([(0, adding(total, 1 << 33).calls[0])], *running.addresses)()
    assert total[0] == (1 << 40) + (1 << 33)


def test_kernels_in_turn_are_one_list_unless_one_needs_the_interpreter() -> None:
    total = array("q", [0])
    both = in_turn([adding(total, 1), adding(total, 2)])
    assert isinstance(both, CRun)
    assert len(both.calls) == 2
    mixed = in_turn([both, lambda: None])
    assert not isinstance(mixed, CRun)
    both()
    mixed()
    assert total[0] == 6


def test_structs_have_no_gaps() -> None:
    """The source in C has the same members, each of one word."""
    from tofu.operators.native.call_list import LIST

    word = ctypes.sizeof(c_void_p)
    assert LIST.itemsize == 5 * word
    assert np.dtype(np.int64).itemsize == word

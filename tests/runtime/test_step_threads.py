import threading
import time
from ctypes import CFUNCTYPE, c_void_p, cast

import numpy as np
import pytest

from tofu.operators.kernels.c_run import CallForm, CCall, CRun
from tofu.operators.native.call_list import joined
from tofu.runtime.step_threads import StepFailed, StepsHang, Team, ThreadStep, group


def nothing() -> None:
    pass


def test_groups_end_before_waits_and_after_awaited_steps() -> None:
    long = [ThreadStep(nothing) for _ in range(100)]
    long[3] = ThreadStep(nothing, ((1, 2),))
    other = [ThreadStep(nothing), ThreadStep(nothing), ThreadStep(nothing, ((0, 6),))]
    first, second = group([long, other])
    assert [(g.first, g.last) for g in first] == [(0, 3), (3, 6), (6, 100)]
    assert [(g.first, g.last) for g in second] == [(0, 2), (2, 3)]
    assert first[1].waits == ((1, 2),)
    assert [len(g.steps) for g in first] == [3, 3, 94]


def test_waits_are_kept_over_many_iterations() -> None:
    """Two threads append in turns, whatever the interpreter's scheduling."""
    log: list[int] = []

    def put(number: int) -> ThreadStep:
        waits = ((1 - number % 2, (number + 1) // 2),) if number else ()
        return ThreadStep(lambda: log.append(number), waits)

    tasks = [[put(n) for n in range(0, 100, 2)], [put(n) for n in range(1, 100, 2)]]
    team = Team(tasks, watchdog_seconds=10)
    for _ in range(30):
        log.clear()
        team.run()
        assert log == list(range(100))
    team.close()


def test_the_first_failure_in_order_is_reported_when_several_fail() -> None:
    barrier = threading.Barrier(2)

    def fail() -> None:
        barrier.wait()
        raise ValueError

    team = Team([[ThreadStep(nothing), ThreadStep(fail)], [ThreadStep(fail)]], watchdog_seconds=10)
    with pytest.raises(StepFailed) as caught:
        team.run()
    assert (caught.value.thread, caught.value.step) in {(0, 1), (1, 0)}
    assert isinstance(caught.value.__cause__, ValueError)
    team.close()


def test_a_failure_is_reported_while_another_thread_waits_for_ever() -> None:
    entered, release, before = threading.Event(), threading.Event(), set(threading.enumerate())

    def wait() -> None:
        entered.set()
        release.wait()

    def fail() -> None:
        entered.wait()
        raise ValueError

    team = Team([[ThreadStep(wait)], [ThreadStep(nothing), ThreadStep(fail)]], watchdog_seconds=100)
    started = time.monotonic()
    with pytest.raises(StepFailed) as caught:
        team.run()
    assert time.monotonic() - started < 50
    assert (caught.value.thread, caught.value.step) == (1, 1)
    release.set()
    team.close()
    assert set(threading.enumerate()) <= before


def test_a_long_step_is_no_hang_while_others_progress() -> None:
    quick = [ThreadStep(lambda: time.sleep(0.03)) for _ in range(30)]
    team = Team([[ThreadStep(lambda: time.sleep(0.8))], quick], watchdog_seconds=0.3)
    team.run()
    team.close()


def test_only_unfinished_threads_hang() -> None:
    release, before = threading.Event(), set(threading.enumerate())
    team = Team(
        [[ThreadStep(nothing)], [ThreadStep(nothing), ThreadStep(release.wait)]], watchdog_seconds=1.5
    )
    with pytest.raises(StepsHang) as caught:
        team.run()
    assert caught.value.current == ((1, 1),)
    release.set()
    team.close()
    assert set(threading.enumerate()) <= before


def test_an_empty_thread_is_done_at_once() -> None:
    team = Team([[], [ThreadStep(nothing)]], watchdog_seconds=10)
    team.run()
    team.close()


@pytest.mark.usefixtures("native")
def test_a_step_in_a_list_of_calls_is_named_when_it_hangs() -> None:
    """The list writes the number of its step to memory that the team watches."""
    entered, release = threading.Event(), threading.Event()

    def wait(_: int | None) -> None:
        entered.set()
        release.wait()

    waits = CFUNCTYPE(None, c_void_p)(wait)
    passes = CFUNCTYPE(None, c_void_p)(lambda _: None)

    def step(function: object) -> ThreadStep:
        words = np.array([cast(function, c_void_p).value or 0])  # type: ignore[arg-type]
        return ThreadStep(CRun(nothing, (CCall(CallForm.STRUCT, words, function, "a function"),)))

    team = Team([[ThreadStep(nothing), step(passes), step(passes), step(waits), step(passes)]], 0.3, joined)
    with pytest.raises(StepsHang) as caught:
        team.run()
    assert entered.is_set()
    assert caught.value.current == ((0, 3),)
    release.set()
    team.close()

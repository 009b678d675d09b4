"""The garbage collector pauses inside, and works as before afterwards."""

from __future__ import annotations

import gc

import pytest

from tofu.support.gc_pause import MANY, gc_paused


@pytest.fixture(autouse=True)
def searching():
    gc.enable()
    yield
    gc.enable()


def test_it_is_left_out_meanwhile():
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    with pytest.raises(ValueError, match="wrong"), gc_paused():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_within_another_and_where_it_was_off_it_stays_off():
    with gc_paused():
        with gc_paused():
            pass
        assert not gc.isenabled()
    gc.disable()
    with gc_paused():
        pass
    assert not gc.isenabled()


def test_what_was_made_meanwhile_counts_as_old():
    with gc_paused():
        made = [[] for _ in range(MANY)]
    assert any(each is made for each in gc.get_objects(generation=2))


@pytest.mark.parametrize("count", [0, MANY])
def test_frozen_objects_stay_frozen(count):
    gc.freeze()
    try:
        with gc_paused():
            made = [[] for _ in range(count)]
        assert gc.get_freeze_count()
        assert len(made) == count
    finally:
        gc.unfreeze()

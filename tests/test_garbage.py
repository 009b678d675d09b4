"""The search for cyclic garbage is left out meanwhile, and goes on as before afterwards."""

from __future__ import annotations

import gc

import pytest

from tofu.garbage import garbage_left


@pytest.fixture(autouse=True)
def searching():
    gc.enable()
    yield
    gc.enable()


def test_it_is_left_out_meanwhile():
    with garbage_left():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    with pytest.raises(ValueError, match="wrong"), garbage_left():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_within_another_and_where_it_was_off_it_stays_off():
    with garbage_left():
        with garbage_left():
            pass
        assert not gc.isenabled()
    gc.disable()
    with garbage_left():
        pass
    assert not gc.isenabled()

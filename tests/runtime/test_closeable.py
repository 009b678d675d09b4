"""Objects that hold memory are closed on exit, including after an exception."""

from __future__ import annotations

import pytest

from tofu.runtime.closeable import Closeable


class Counted(Closeable):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_it_is_closed_at_the_end() -> None:
    with Counted() as held:
        assert held.closed == 0
    assert held.closed == 1


def test_it_is_closed_by_an_error_which_goes_on() -> None:
    held = Counted()
    with pytest.raises(KeyboardInterrupt), held:
        raise KeyboardInterrupt
    assert held.closed == 1

"""Checks in a separate process, which the kernels that they run may harm."""

from __future__ import annotations

import faulthandler
import os
import signal
import traceback
from collections.abc import Callable

SECONDS = 20
"""A planted bug may loop for ever."""


def fails(check: Callable[[], None]) -> bool:
    """Whether the check raises AssertionError, crashes or does not end; any other exception is an error."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.alarm(SECONDS)
        status = 2
        try:
            check()
            status = 0
        except AssertionError:
            status = 1
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code != 2, "the check failed by itself"
    return code != 0

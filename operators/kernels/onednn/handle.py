"""Objects of the library that are destroyed when nobody refers to them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from ctypes import c_void_p
from typing import Any


class Handle:
    """The address of an object, which ctypes passes as it is.

    At the end of the process nothing is destroyed, because threads may still run.
    """

    __slots__ = ("__weakref__", "_as_parameter_")

    def __init__(self, address: int | None, destroy: Callable[[int | None], Any]) -> None:
        self._as_parameter_ = c_void_p(address)
        weakref.finalize(self, destroy, address).atexit = False

    @property
    def address(self) -> int | None:
        """Return the address."""
        return self._as_parameter_.value

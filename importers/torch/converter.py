"""The type of the entries of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .call import AtenCall, TensorValue

Converter = Callable[[AtenCall], TensorValue | Sequence[TensorValue | None]]
"""Applies descriptions to a call's arguments and returns its outputs; None for one that has no
description, which nothing may read.
"""

"""Why a test of MXNet does not pass on Tofu, in classes that can be counted."""

from __future__ import annotations

import re
import traceback
from enum import StrEnum
from unittest import SkipTest

from tofu.errors import TofuError

from .absent import AbsentName


class Reason(StrEnum):
    """The outcome of a test."""

    PASSES = "passes"
    SKIPPED = "MXNet skips it"
    PART = "needs a part of MXNet that Tofu leaves out"
    OPERATOR = "needs an operator that Tofu does not have"
    NAME = "needs another name, method or argument that Tofu does not have"
    REFUSED = "Tofu refuses what the test asks for"
    ERROR = "the test expects an error that Tofu does not raise, or another one"
    DIFFERENT = "a number, shape or text differs"
    UNFINISHED = "not finished within the time or memory"
    OUTDATED = "fails with any package, because NumPy or Python has changed since"
    OTHER = "another error"


PARTS = re.compile(
    r"mx\.(\w+) is not supported|mxnet\.(gluon|autograd|numpy\w*|np|npx|operator|contrib)\b|"
    r"'(attach_grad|contrib|sparse|tostype|image|as_np_ndarray)'|storage type"
)
"""Gluon, automatic differentiation, MXNet's NumPy, operators in Python, sparse arrays, and so on."""
OPERATORS = re.compile(r"mx\.(nd|sym) has no '|there is no operator")
NAMES = re.compile(
    r"has no attribute|has no '|unexpected keyword argument|takes \d+ positional|missing \d+ required|"
    r"cannot import name|positional arguments? but|context manager protocol|there is no metric"
)
EXPECTED = re.compile(r"not raised|did not raise")


def reason_of(error: BaseException) -> Reason:
    """Return the class of an exception that a test ended with."""
    text = str(error)
    match error:
        case SkipTest():
            return Reason.SKIPPED
        case _ if PARTS.search(text):
            return Reason.PART
        case AttributeError() | TofuError() if OPERATORS.search(text):
            return Reason.OPERATOR
        case AbsentName() | NameError():
            return Reason.NAME
        case AssertionError():
            return Reason.ERROR if EXPECTED.search(text) else Reason.DIFFERENT
        case _ if text.startswith("module 'numpy"):
            return Reason.OUTDATED
        case AttributeError() | TypeError() | ImportError() | TofuError() if NAMES.search(text):
            return Reason.NAME
        case TofuError():
            return Reason.REFUSED
        case _ if not _passes_tofu(error):
            return Reason.OUTDATED
        case _:
            return Reason.OTHER


def _passes_tofu(error: BaseException) -> bool:
    """Return whether a function of Tofu was called on the way to the error."""
    return any(
        frame.f_globals.get("__name__", "").startswith("tofu.")
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )

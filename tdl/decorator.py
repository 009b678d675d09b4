"""Find the source text of a decorated Python function. The function itself is never called."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from ..errors import DescriptionError

LAMBDA = "<lambda>"
"""Python's name of functions without a name."""


def op_location(function: Callable[..., Any]) -> tuple[str, str, int]:
    """Return the source of a Python function, dedented, without its decorators; its file.

    The line of its `def`.

    Raises `DescriptionError` if Python does not keep the source (functions made by `exec` or typed at
    a prompt) or if it is not one plain `def`.
    """
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isfunction(function):
        raise DescriptionError(f"'{name}' is not a function; decorate a def or pass text to tofu.parse")
    unavailable = DescriptionError(
        f"the source of '{name}' is not available, as for functions typed at a prompt; "
        "pass the description's text to tofu.parse instead"
    )
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise unavailable from None
    text = textwrap.dedent("".join(lines))
    try:
        [definition] = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        definition = None
    written = inspect.unwrap(function).__code__.co_name
    if written != LAMBDA and getattr(definition, "name", None) != written:
        raise unavailable  # the lines of something else, such as the text of `python -c`
    if not isinstance(definition, ast.FunctionDef):
        raise DescriptionError(f"'{name}' is not a plain function; a description is one def with a return")
    skipped = definition.lineno - 1
    body = "".join(text.splitlines(keepends=True)[skipped:])
    return body, inspect.getsourcefile(function) or "<string>", max(first_line, 1) + skipped

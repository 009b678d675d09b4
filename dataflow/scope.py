"""Scopes, which a `with` puts in force for everything that is made inside it."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, ClassVar, Self


class Scope:
    """A context manager whose innermost instance `innermost` holds; it may be entered inside itself."""

    innermost: ClassVar[ContextVar[Any]]

    def __init__(self) -> None:
        self._tokens: list[Token[Any]] = []

    def __enter__(self) -> Self:
        self._tokens.append(self.innermost.set(self))
        return self

    def __exit__(self, *raised: object) -> None:
        self.innermost.reset(self._tokens.pop())

"""Settings of nodes that change no result, such as `__lr_mult__`, and the scopes that give them."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType

from ..errors import GraphError

UNMARKED = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})
"""Settings that MXNet accepts, and before 0.9 wrote, without the double underscores."""


def _check(settings: Mapping[str, object]) -> None:
    for key, value in settings.items():
        if not isinstance(value, str):
            raise GraphError(f"setting {key} is {value!r}; settings are text, such as {str(value)!r}")


class SettingsScope:
    """Settings, as text, for every node that is made while the scope is in force; inner scopes add to outer.

    with SettingsScope(__lr_mult__="0.1"): ...
    """

    def __init__(self, **settings: str) -> None:
        _check(settings)
        self.settings: Mapping[str, str] = settings
        self._token: Token[SettingsScope | None] | None = None
        self._own = self.settings

    def get(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The scope's settings and, going before them, those given."""
        return {**self.settings, **(given or {})}

    def __enter__(self) -> SettingsScope:
        self.settings = {**current_settings().settings, **self._own}
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _current.reset(self._token)
        self._token = None
        self.settings = self._own


_current: ContextVar[SettingsScope | None] = ContextVar("tofu_settings_scope", default=None)
_none = SettingsScope()


def current_settings() -> SettingsScope:
    """The innermost scope in force, else one without settings."""
    return _current.get() or _none


def marked(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings under the names they have in files, `__lr_mult__`. Raises GraphError for a value not text."""
    _check(settings)
    return {mark(key): value for key, value in settings.items()}


def mark(key: str) -> str:
    return key if key.startswith("__") and key.endswith("__") else f"__{key}__"


def for_slot(settings: Mapping[str, str], slot: str) -> dict[str, str]:
    """What a variable made for an operator's input inherits: `__weight_lr_mult__` is for the weight alone."""
    own = {f"__{slot}_{key}__": f"__{key}__" for key in UNMARKED}
    return {**settings, **{own[key]: value for key, value in settings.items() if key in own}}

"""Settings of nodes that do not change results, such as `__lr_mult__`, and scopes that supply them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import ClassVar, Self

from ..errors import GraphError
from ..support.checked_argument import require
from .scope import Scope

TIE = "__tie__"
"""The setting whose value copies of one node share."""

START = "__init__"
"""The setting that says how a parameter starts, as the text of an initializer."""

CONSTANTS = {"zero": 0.0, "zeros": 0.0, "one": 1.0, "ones": 1.0}
"""Initializers that stand for a number, by name."""

UNMARKED = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})
"""Settings that MXNet accepts, and before 0.9 wrote, without the double underscores."""

_OF_INPUTS = tuple(f"_{key}" for key in UNMARKED)


def _check(settings: Mapping[str, object]) -> None:
    for key, value in settings.items():
        if not isinstance(value, str):
            raise GraphError(f"setting {key} is {value!r}; settings are text, such as {str(value)!r}")


class SettingsScope(Scope):
    """Settings, as text, for every node that is made while the scope is in force; inner scopes add to outer.

    with SettingsScope(__lr_mult__="0.1"): ...
    """

    innermost: ClassVar[ContextVar[SettingsScope]] = ContextVar("tofu_settings_scope")

    def __init__(self, **settings: str) -> None:
        super().__init__()
        _check(settings)
        self.settings: Mapping[str, str] = settings
        self._outside: list[Mapping[str, str]] = []

    def get(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the scope's settings, overridden by those given.

        Raises GraphError if what is given has no names.
        """
        fits = given is None or isinstance(given, Mapping)
        require(fits, given, "attr", "settings by name", GraphError)
        return {**self.settings, **(given or {})}

    def __enter__(self) -> Self:
        self._outside.append(self.settings)
        self.settings = {**current_settings().settings, **self.settings}
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self.settings = self._outside.pop()


_none = SettingsScope()


def current_settings() -> SettingsScope:
    """Return the innermost scope in force, or else one without settings."""
    return SettingsScope.innermost.get(_none)


def marked(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings under the names they have in files, `__lr_mult__`. Raises GraphError for a value not text."""
    _check(settings)
    return {mark(key): value for key, value in settings.items()}


def mark(key: str) -> str:
    return key if key.startswith("__") and key.endswith("__") else f"__{key}__"


def names_setting(key: str) -> bool:
    """Return whether old files mean a setting by this attribute, such as `lr_mult` or `weight_lr_mult`."""
    return key in UNMARKED or key.endswith(_OF_INPUTS)


def for_slot(settings: Mapping[str, str], slot: str) -> dict[str, str]:
    """Return the settings that an input's variable inherits, such as `__weight_lr_mult__` for a weight."""
    return {**settings, **of_slot(settings, slot)}


def of_slot(settings: Mapping[str, str], slot: str) -> dict[str, str]:
    """Return the settings meant for one input: `__lr_mult__` for `__weight_lr_mult__` of a weight."""
    own = {f"__{slot}_{key}__": f"__{key}__" for key in UNMARKED}
    return {own[key]: value for key, value in settings.items() if key in own}


def for_start(starts: Mapping[str, float], slot: str) -> dict[str, str]:
    """Return the setting for the number from which the variable of an input starts."""
    return {START: json.dumps(["Constant", {"value": starts[slot]}])} if slot in starts else {}


def start_number(settings: Mapping[str, str]) -> float | None:
    """Return the number from which a variable starts; None if its settings name no such number."""
    try:
        match json.loads(settings.get(START, "null")):
            case [str(kind), {"value": int() | float() as value}] if kind.lower() == "constant":
                return float(value)
            case [str(kind), {}] if kind.lower() in CONSTANTS:
                return CONSTANTS[kind.lower()]
    except (ValueError, RecursionError):
        pass
    return None

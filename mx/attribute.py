"""`mx.AttrScope`: settings for every symbol made inside."""

from __future__ import annotations

from ..dataflow.settings import SettingsScope, current_settings

__all__ = ["AttrScope"]


class _Current:
    """`AttrScope.current`, the scope in force."""

    def __get__(self, instance: object, owner: type) -> SettingsScope:
        return current_settings()


class AttrScope(SettingsScope):
    """with mx.AttrScope(ctx_group="dev1", __lr_mult__="0.1"): ..."""

    current = _Current()

"""Names that a shell may complete: operators, models, methods and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Candidates = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def operators() -> Iterable[str]:
    """Return library operators by every name."""
    from ..operators.library import registry

    return registry.names()


def models() -> Iterable[str]:
    """Return the zoo, and the models of recipes."""
    from .recipes import RECIPES
    from .target import RECIPE

    return (*_zoo(), *(f"{RECIPE}{name}" for name in RECIPES))


def trainable() -> Iterable[str]:
    """Return what `tofu train` knows by name."""
    from .recipes import RECIPES

    return (*RECIPES, *(name for name in _zoo() if name not in RECIPES))


def _zoo() -> Iterable[str]:
    from .. import models as zoo

    return zoo.names()


def methods() -> Iterable[str]:
    """Return searches, and layouts by hand."""
    from ..partitioner.methods.method import every_method

    return every_method()


def machines() -> Iterable[str]:
    """Return machines that come with Tofu."""
    from ..machines.machine_file import PRESETS

    return PRESETS


def optimizers() -> Iterable[str]:
    """Return what updates parameters."""
    from ..dataflow.optimizer import OPTIMIZERS

    return OPTIMIZERS


def metrics() -> Iterable[str]:
    """Return what can be measured."""
    from ..runtime.metrics import METRICS

    return METRICS


def of(names: Callable[[], Iterable[str]], files: bool = False) -> Candidates:
    """Return a completer of the names, in upper or lower case.

    If no name fits and `files` is True, the shell completes file names.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        start = incomplete.lower()
        found = [CompletionItem(name) for name in names() if name.lower().startswith(start)]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete

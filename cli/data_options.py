"""`--data` and how to read it, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .number_ranges import FiniteRange, IntegerRange


class _Size(click.ParamType[tuple[int, int]]):
    """`32x48`, height and width."""

    name = "HxW"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        parts = str(value).split("x")
        if len(parts) != 2 or not all(p.isascii() and p.isdigit() and 0 < int(p) <= 65536 for p in parts):
            self.fail(f"expected height and width such as 32x48, found {value!r}", param, ctx)
        return int(parts[0]), int(parts[1])


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--data` with the options that say how to read it."""
    for option in (
        click.option("--resize", type=_Size(), metavar="HxW", help="Bring images in folders to one size."),
        click.option(
            "--vocabulary",
            type=IntegerRange(1),
            help="Number of different characters or words.",
        ),
        click.option("--level", type=click.Choice(["character", "word"]), help="Units of a text."),
        click.option("--steps", type=IntegerRange(1), help="Characters or words in one sample of a text."),
        click.option(
            "--hold-out",
            type=FiniteRange(0, 1, max_open=True),
            help="Fraction to hold out of training, a tenth if left out.",
        ),
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            help="Train on this: an .npz file, CIFAR-10 batches, MNIST idx files, image folders or a text.",
        ),
    ):
        command = option(command)
    return command

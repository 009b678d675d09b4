"""Values on the command line: shapes, attributes, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..support.literals import literal
from . import candidates
from .number_ranges import FiniteRange, IntegerRange

Shape = tuple[int, ...]
Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
MOST_WORKERS = 4096
"""The largest number of workers of a plan."""

workers_option = click.option(
    "--workers",
    "-w",
    type=IntegerRange(1, MOST_WORKERS),
    default=8,
    show_default=True,
    help="Number of workers.",
)

model_candidates = candidates.of(candidates.models, files=True)
method_option = click.option(
    "--method",
    default="recursive",
    show_default=True,
    shell_complete=candidates.of(candidates.methods),
    help="Search method: recursive, refine, exact, all-row, spartan, equal-chop, icml18, data-parallel, "
    "zero-3, megatron, megatron-sp, one-weird-trick, wu-2016, ps, ps-load-balancing, partitioned-ps, "
    "uneven-partitioned-ps, all-reduce, partitioned-all-reduce, random-axis-partitioned-all-reduce, "
    "parallax, byteps, poseidon, flexflow, anneal, pardnn, pardnn-heuristic-1, pardnn-heuristic-2, place, "
    "auto or autodist. Megatron takes a mesh, as in megatron:dp4-tp2; the last eight need a machine (tofu "
    "plan --machine).",
)


def sampling_options(command: Command) -> Command:
    """`--seed`, `--proposals`, `--beta`, `--seconds` and `--slower` of methods that draw."""
    for option in reversed(
        (
            click.option(
                "--seed",
                type=IntegerRange(0),
                default=0,
                show_default=True,
                help="Seed of all that is drawn, by the methods that draw: autodist, flexflow and anneal.",
            ),
            click.option(
                "--proposals",
                type=IntegerRange(1),
                help="The most proposals of each chain; 2,000 if --seconds is left out as well. For "
                "autodist, the number of trials; 40 if left out.",
            ),
            click.option(
                "--beta",
                type=FiniteRange(0, min_open=True),
                help="Inverse temperature: a proposal that is slower by 1 / beta is accepted with "
                "probability 1 / e; 2,000 if left out.",
            ),
            click.option(
                "--seconds",
                type=FiniteRange(0, min_open=True),
                help="The most seconds of the search. Another run may then find another plan.",
            ),
            click.option(
                "--slower",
                type=FiniteRange(0),
                default=0.0,
                show_default=True,
                help="How much slower than the fastest plan the plan of anneal may be if it moves fewer "
                "bytes; 0.05 is 5%.",
            ),
        )
    ):
        command = option(command)
    return command


no_replicate_option = click.option(
    "--no-replicate", is_flag=True, help="Split every tensor that can be split, as the paper does."
)
no_keep_option = click.option(
    "--no-keep", is_flag=True, help="Reduce each sum on its own, copy no inputs, repeat no operations."
)


def machine_option(what: str, required: bool = False) -> Callable[[Command], Command]:
    """`--machine`, a preset or a file."""
    return click.option(
        "--machine",
        required=required,
        shell_complete=candidates.of(candidates.machines, files=True),
        help=f"{what}: a file, dgx-1-v100, dgx-a100, dgx-h100, k80-node, p100-node, p2.8xlarge or pcie-8; "
        f"2x-dgx-h100 is two of them.",
    )


def shape_option(what: str) -> Callable[[Command], Command]:
    """`--shape NAME=SHAPE`, repeated, as shapes by name."""
    return click.option("--shape", "shapes", type=ShapeOption(), multiple=True, callback=_by_name, help=what)


def _by_name(
    ctx: click.Context, param: click.Parameter, pairs: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise click.BadParameter(f"{twice!r} is given twice", ctx, param)
    return found


def accumulate_option(default: int | None) -> Callable[[Command], Command]:
    """`--accumulate`; None leaves it to a plan file."""
    return click.option(
        "--accumulate",
        type=IntegerRange(1),
        default=default,
        show_default=True,
        help="Split each batch into this many parts, run one after the other in the memory of one"
        + _or_as_planned(default),
    )


def unroll_option(default: bool | None) -> Callable[[Command], Command]:
    """`--unroll`; None leaves it to a plan file."""
    return click.option(
        "--unroll",
        is_flag=True,
        default=default,
        help="Put the operations of all parts of --accumulate into one graph, so that workers can work on "
        "different parts at a time" + _or_as_planned(default),
    )


def check_unroll(accumulate: int, unroll: bool) -> None:
    """Raise UsageError if there is nothing to unroll."""
    if unroll and accumulate == 1:
        raise click.UsageError(
            "--unroll puts the parts of a batch into one graph, and there is one part; give --accumulate 2 "
            "or more as well, or leave out --unroll"
        )


def recompute_option(default: int | None) -> Callable[[Command], Command]:
    """`--recompute`; None leaves it to a plan file."""
    return click.option(
        "--recompute",
        type=IntegerRange(1),
        default=default,
        show_default=True,
        help="Cut the forward pass into this many segments, keep what passes between them, and compute other "
        "activations again in the backward pass" + _or_as_planned(default),
    )


def merge_option(command: Command) -> Command:
    """`--merge`."""
    return click.option(
        "--merge",
        is_flag=True,
        help="Search a plan as well for the graph in which operations that do the same to several tensors "
        "are one, such as the products of all time steps with a weight; take it unless it costs more or does "
        "not fit.",
    )(command)


def native_option(command: Command) -> Command:
    """`--native`: takes effect at once, until the command ends."""
    return click.option(
        "--native",
        is_flag=True,
        expose_value=False,
        callback=_ask_for_native,
        help="Compute element-wise operators, reductions and updates in C, which this machine's compiler "
        "builds once and keeps in ~/.cache/tofu.",
    )(command)


def _ask_for_native(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from ..operators.native.asked import asking

        context.with_resource(asking())


def dtype_option(default: str | None) -> Callable[[Command], Command]:
    """`--dtype`; None leaves it to a plan file."""
    return click.option(
        "--dtype",
        type=click.Choice(["float32", "float16", "bfloat16"]),
        default=default,
        show_default=True,
        help="The type in which large activations and gradients are stored; bfloat16 without GPUs needs the "
        "extra bfloat16" + _or_as_planned(default),
    )


def _or_as_planned(default: object) -> str:
    return "." if default is not None else "; as planned if left out."


def examples(*lines: str) -> str:
    """Return the end of a command's help: examples, one per line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class WorkersOrAuto(click.ParamType["int | None"]):
    """A number of workers, or `auto`, which is None."""

    name = "N|auto"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Return the number."""
        text = str(value)
        if text == "auto":
            return None
        if not (text.isdecimal() and 1 <= int(text) <= MOST_WORKERS):
            expected = f"expected a number of workers from 1 to {MOST_WORKERS}, or auto"
            self.fail(f"{expected}, found {text!r}", param, ctx)
        return int(text)


class WorkerCounts(click.ParamType[tuple[int, ...]]):
    """Numbers of workers, such as `2,3`."""

    name = "COUNTS"

    def __init__(self, least: int) -> None:
        """Take numbers of at least `least`."""
        self._least = least

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return each number once."""
        if isinstance(value, tuple):
            return value
        texts = str(value).split(",")
        if not all(text.isdecimal() and self._least <= int(text) <= MOST_WORKERS for text in texts):
            expected = f"expected worker counts from {self._least} to {MOST_WORKERS}, such as 2,3"
            self.fail(f"{expected}, found {value!r}", param, ctx)
        return tuple(dict.fromkeys(map(int, texts)))


class ShapeOption(click.ParamType[tuple[str, Shape]]):
    """`name=4,3,12`."""

    name = "NAME=SHAPE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Shape]:
        tensor, equals, text = str(value).partition("=")
        try:
            shape = tuple(map(int, text.strip("()").removesuffix(",").split(",")))
        except ValueError:
            shape = ()
        if not (tensor and equals and shape):
            self.fail(f"expected a tensor and its extents such as data=4,3,12, found {value!r}", param, ctx)
        return tensor, shape


class AttributeOption(click.ParamType[tuple[str, object]]):
    """`name=value`; the value is a number, True or False, a tuple `3,3`, or a word."""

    name = "NAME=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, object]:
        attribute, equals, text = str(value).partition("=")
        if not (attribute and equals and text):
            self.fail(f"expected an attribute and its value such as kernel=3,3, found {value!r}", param, ctx)
        try:
            return attribute, literal(text)
        except ValueError:
            return attribute, text


attribute_option = click.option(
    "--set",
    "attributes",
    type=AttributeOption(),
    multiple=True,
    callback=_by_name,
    help="An attribute's value, such as relu or 3,3 (a tuple of one ends in a comma: 3,); repeat for each.",
)

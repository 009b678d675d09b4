"""`tofu audit`: prove and try every strategy and kernel of operators."""

from __future__ import annotations

import json
import sys

import click

from ..operators.library import registry
from . import candidates
from .describe import given_or_example, named_operator
from .ending import REFUTED
from .options import Shape, WorkerCounts, attribute_option, examples, json_option, native_option, shape_option
from .say import say


@click.command(
    "audit",
    epilog=examples(
        "tofu audit Convolution",
        "tofu audit sum softmax --workers 2,3,5",
        "tofu audit layers.py:conv1d --shape data=4,3,12 --shape filters=3,6,3",
        "tofu audit --all --json",
    ),
)
@click.argument(
    "operators",
    metavar="[OPERATOR ...]",
    nargs=-1,
    shell_complete=candidates.of(candidates.operators, files=True),
)
@click.option("--all", "everything", is_flag=True, help="Audit every operator of the library.")
@shape_option("A tensor's shape; repeat for each.")
@attribute_option
@click.option(
    "--workers", "-w", type=WorkerCounts(2), default=(2, 3), help="Worker counts to try, 2,3 by default."
)
@native_option
@json_option
def command(
    operators: tuple[str, ...],
    everything: bool,
    shapes: dict[str, Shape],
    attributes: dict[str, object],
    workers: tuple[int, ...],
    as_json: bool,
) -> None:
    """Prove, try or refute the regions, strategies and kernels of operators, gradients included.

    OPERATOR is a library operator by its MXNet name, a file `name.tdl`, or `file.py:function` for a function
    under @tofu.op. Without --shape and --set the operator's small example is audited. The exit status is 1 if
    anything is refuted.
    """
    from ..operators.audit import audit
    from ..operators.audit.catalogue import Catalogue
    from ..reports.checks import Checks

    if everything == bool(operators):
        raise click.UsageError("name the operators to audit, or give --all")
    if (shapes or attributes) and len(operators) != 1:
        raise click.UsageError("--shape and --set need exactly one operator")
    named = [named_operator(name) for name in (registry.names() if everything else operators)]
    given = [given_or_example(operator, shapes, attributes) for operator in named]
    audits = []
    for operator, (given_shapes, given_attributes) in zip(named, given, strict=True):
        with Checks(quiet=as_json) as checks:
            report = audit(
                operator, shapes=given_shapes, attributes=given_attributes, workers=workers, report=checks
            )
        audits.append(report)
        if not as_json:
            say(repr(report)[1:-1] if everything and not report.refuted else str(report))
    catalogue = Catalogue.of(audits)
    if as_json:
        click.echo(json.dumps(catalogue.data()))
    elif len(audits) > 1:
        for line in catalogue.summary():
            say(line)
    if catalogue.refuted:
        sys.exit(REFUTED)

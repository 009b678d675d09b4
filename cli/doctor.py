"""`tofu doctor`: show what this machine has for the engines, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .options import examples, json_option
from .say import say


@click.command(
    "doctor", epilog=examples("tofu doctor", "tofu doctor --no-copies --json", "tofu doctor --save here.yaml")
)
@click.option("--no-copies", is_flag=True, help="Do not measure copies between cards.")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    help="Measure the processor, and write it to this machine file with the links between its workers.",
)
@json_option
def command(no_copies: bool, save: Path | None, as_json: bool) -> None:
    """Show which cards, drivers and libraries there are, and how to install what is missing.

    A warning says if NumPy's BLAS library does not use the instructions that the processor has.
    Copies between every pair of cards are measured, which takes 512 MiB of each. A missing part is not an
    error: the exit status is 0.
    """
    from ..machines.write_machine import save_machine
    from ..reports import doctor
    from ..reports.console import wide_console
    from ..reports.files import check_writable
    from ..runtime.cuda.inspection import inspect
    from ..runtime.processor import measure_processor
    from ..runtime.processor_libraries import processor_libraries

    if save is not None:
        check_writable(save)
        save_machine(measure_processor(), save)
    found = inspect(measure=not no_copies)
    libraries = processor_libraries()
    if as_json:
        click.echo(json.dumps(doctor.document(found, libraries)))
    else:
        wide_console().print(doctor.text(found, libraries))
        if save is not None:
            say(f"machine file written to {save}")

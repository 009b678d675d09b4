"""`tofu place`: whole nodes of a graph with costs on the workers of a machine."""

from __future__ import annotations

from pathlib import Path

import click

from .options import examples, json_option, machine_option, workers_option
from .output_files import check_apart, machine_path
from .say import say


@click.command(
    "place",
    epilog=examples(
        "tofu place graph.json --machine dgx-1-v100 --workers 4",
        "tofu place graph.json --machine 2x-dgx-h100 --workers 16 --memory 32GB --json",
    ),
)
@click.argument("graph", type=click.Path(path_type=Path))
@machine_option("The machine", required=True)
@workers_option
@click.option(
    "--memory", help="The most that a worker may hold, such as 12GB, or unlimited; else what its device has."
)
@click.option("--save", type=click.Path(path_type=Path), help="Write what --json prints to a file.")
@json_option
def command(
    graph: Path, machine: str, workers: int, memory: str | None, save: Path | None, as_json: bool
) -> None:
    """Place the nodes of GRAPH on workers, and simulate one iteration.

    GRAPH is a JSON file in networkx's node-link form, whose nodes have `seconds` and `bytes`, see
    docs/placement.md. If no placement is found that fits, a message says what is in the way, and the exit
    status is 2.
    """
    from ..api import place
    from ..partitioner.methods.placement.graph_file import read_graph
    from ..reports.files import check_writable
    from ..reports.placement import show
    from ..support.saved_files import save_whole
    from .json_output import print_json

    check_apart({"GRAPH": graph, "--machine": machine_path(machine)}, save=save)
    if save is not None:
        check_writable(save)
    found = place(read_graph(graph), machine, workers, memory)
    if save is not None:
        save_whole(save, found.text.encode())
    if as_json:
        print_json(found.document)
        return
    show(found)
    if save is not None:
        say(f"placement written to {save}")

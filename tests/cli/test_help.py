"""Every command teaches: its help has examples, all of which can be typed as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import Result

from tofu.cli import COMMANDS, main
from tofu.cli.ending import STATUSES
from tofu.cli.manual import example_lines, page
from tofu.cli.option_groups import GroupedCommand
from tofu.dataflow.optimizer import OPTIMIZERS
from tofu.machines.machine_file import PRESETS
from tofu.partitioner.methods.autodist.builders import BUILDERS
from tofu.partitioner.methods.method import every_method
from tofu.runtime.metrics import METRICS

ROOT = Path(__file__).parents[2]
Tofu = Callable[..., Result]


def _command(name: str) -> click.Command:
    with click.Context(main) as context:
        found = main.get_command(context, name)
    assert found is not None
    return found


def _examples() -> Iterator[str]:
    yield from example_lines(main)
    for name in COMMANDS:
        yield from example_lines(_command(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_explains_every_option(tofu: Tofu, name: str) -> None:
    result = tofu(name, "--help")
    assert result.exit_code == 0
    assert "Examples:\n    " in result.output
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("name", ["plan", "train"])
def test_every_option_stands_in_one_group(tofu: Tofu, name: str) -> None:
    command = _command(name)
    assert isinstance(command, GroupedCommand)
    grouped = [option for options in command.groups.values() for option in options]
    options = [each.name for each in command.params if isinstance(each, click.Option)]
    assert sorted(grouped) == sorted(options)
    output = tofu(name, "--help").output
    titles = re.findall(r"^(\S.*):$", output, re.MULTILINE)
    assert titles == [*command.groups, "Other options"]
    for option in command.params:
        if isinstance(option, click.Option):
            assert len(re.findall(rf"^  .*{option.opts[0]}\b", output, re.MULTILINE)) >= 1


@pytest.mark.parametrize(
    ("name", "option", "known"),
    [
        ("plan", "method", every_method().keys() - {"manual"}),
        ("plan", "machine", set(PRESETS)),
        ("sync", "builder", set(BUILDERS)),
        ("plan", "optimizer", set(OPTIMIZERS)),
        ("train", "optimizer", set(OPTIMIZERS)),
        ("train", "metrics", set(METRICS)),
    ],
)
def test_help_names_what_there_is_to_choose_from(name: str, option: str, known: set[str]) -> None:
    [found] = [parameter for parameter in _command(name).params if parameter.name == option]
    assert isinstance(found, click.Option)
    assert set(re.findall(r"[a-z0-9.-]*[a-z0-9]", found.help or "")) >= known


@pytest.mark.parametrize("line", list(_examples()))
def test_examples_are_understood(line: str, request: pytest.FixtureRequest) -> None:
    line = line.removeprefix('eval "$(').removesuffix(')"').split(')"')[0]
    words = shlex.split(line, comments=True)
    for stop in ("|", ">"):
        words = words[: words.index(stop)] if stop in words else words
    assert words[0] == "tofu"
    if "--native" in words:
        request.getfixturevalue("compiler")
    with main.make_context("tofu", words[1:]) as context:
        name, command, rest = main.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        if "--help" not in rest:
            command.make_context(name, rest, parent=context)


def test_the_page_on_commands_is_up_to_date() -> None:
    stored = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert stored == page(), "write it again with: python -m tofu.cli.manual > docs/commands.md"


def test_the_page_has_every_command_and_exit_status() -> None:
    text = page()
    for name in COMMANDS:
        assert f"\n## tofu {name}\n" in text
    for status in STATUSES:
        assert f"\n| {status} | " in text
    assert "`None`" not in text


@pytest.mark.parametrize("name", ["models", "operators"])
def test_a_page_is_not_json(tofu: Tofu, name: str) -> None:
    result = tofu(name, "--json", "--markdown")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json and --markdown print different things" in result.stderr


def test_the_list_of_commands_says_what_each_does(tofu: Tofu) -> None:
    output = tofu("--help").output
    for name, does in COMMANDS.items():
        assert name in output
        assert does in output


def test_version(tofu: Tofu) -> None:
    try:
        installed = metadata.version("tofu")
    except metadata.PackageNotFoundError:
        installed = "run from a folder"
    result = tofu("--version")
    assert result.exit_code == 0
    assert installed in result.output


def test_a_version_that_nothing_states(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert tofu("--version").output == "tofu, run from a folder without being installed\n"

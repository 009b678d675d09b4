"""Errors of commands escape what a terminal would obey in names that users or their files gave."""

from __future__ import annotations

from click.testing import CliRunner

from tofu.cli import main


def test_a_name_in_an_error_is_escaped() -> None:
    ended = CliRunner().invoke(main, ["plan", "\x1b]0;\u202e.json", "--workers", "2"], color=True)
    assert ended.exit_code == 2
    assert r"\x1b]0;\u202e.json" in ended.output
    assert "\x1b" not in ended.output
    assert "\u202e" not in ended.output

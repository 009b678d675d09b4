"""Running commands in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from tofu.cli import main


@pytest.fixture
def tofu() -> Callable[..., Result]:
    """`tofu("plan", "mlp")` runs the command and gives its exit status and output."""

    def run(*arguments: str) -> Result:
        result = CliRunner(env={"COLUMNS": None}).invoke(main, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run

"""Fixtures of tests: golden files and the option that rewrites them, running commands, cards, patience."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, settings

from tofu.cli import main

from .cards import missing

settings.register_profile("tofu", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tofu")

gc.set_threshold(10_000, 10, 10)  # Rarely: collections search all that thousands of tests and caches hold.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with what the tests produce"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep tests of one module in one process, which shares its fixtures and caches, until one is idle."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and (reason := missing()) is not None:
        pytest.skip(f"needs a card: {reason}")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares text with `golden/name` next to the test file."""
    folder = Path(request.path).parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            folder.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.is_file(), f"{path} is missing; run pytest with --update-golden and review what it writes"
        assert text == path.read_text("utf-8")

    return compare


@pytest.fixture
def only_new_garbage() -> Iterator[None]:
    """Let collections search only what the test makes; to search what other tests have left takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def tofu() -> Callable[..., Result]:
    """`tofu("plan", "mlp")` runs the command in this process and gives its exit status and output."""

    def run(*arguments: str) -> Result:
        result = CliRunner(env={"COLUMNS": None}).invoke(main, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run

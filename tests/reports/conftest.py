"""A headless Chromium for what pages do once they are open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser driven by Playwright; the test is skipped where one of both is not installed."""
    api = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)} is on the PATH")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()

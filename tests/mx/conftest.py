"""Names that start at 0 and the same random numbers for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tofu.mx as mx


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    mx.random.seed(0)
    with mx.name.NameManager():
        yield

"""The machines of these tests: the stand-in on the host, and real cards if there are any."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from ...operators.cuda.library import Case, library_cases
from .bench import Bench
from .card_machine import CardMachine
from .host_machine import Compiled, HostMachine

CARDS = pytest.param("cards", marks=pytest.mark.gpu)


@pytest.fixture(scope="session")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """`benches(name)` is that of `host` or `cards`; all of the host's share compiled kernels."""
    kernels = Compiled(tmp_path_factory.mktemp("kernels"))
    makers: dict[str, Callable[..., Any]] = {
        "host": partial(HostMachine, kernels=kernels),
        "cards": CardMachine,
    }
    return lambda name: Bench(name, makers[name])


@pytest.fixture(scope="session")
def cases() -> Callable[[tuple[str, ...]], list[Case]]:
    """`cases(names)`: what operators of the library run in training, each description once."""
    return cache(library_cases)


@pytest.fixture(params=["host", CARDS])
def bench(request: pytest.FixtureRequest, benches: Callable[[str], Bench]) -> Bench:
    """On either machine."""
    return benches(request.param)


@pytest.fixture
def host(benches: Callable[[str], Bench]) -> Bench:
    return benches("host")


@pytest.fixture
def cards(benches: Callable[[str], Bench]) -> Bench:
    """To be asked for with the marker `gpu`."""
    return benches("cards")

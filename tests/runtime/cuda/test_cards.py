"""Cards and how workers share them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tofu.errors import ExecutionError
from tofu.runtime.context import gpu
from tofu.runtime.cuda import cards


class NoDriverError(Exception):
    pass


def with_cards(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    def get_device_count() -> int:
        if count is None:
            raise NoDriverError
        return count

    runtime = SimpleNamespace(getDeviceCount=get_device_count, CUDARuntimeError=NoDriverError)
    package = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(cards, "library", lambda name, purpose: package)


@pytest.mark.parametrize(
    ("count", "workers", "expected"),
    [
        (8, 8, [0, 1, 2, 3, 4, 5, 6, 7]),
        (1, 3, [0, 0, 0]),
        (2, 4, [0, 0, 1, 1]),
        (8, 2, [0, 1]),
        (2, 3, [0, 0, 1]),
    ],
)
def test_neighbours_share_a_card(
    count: int, workers: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, count)
    assert cards.shared(workers) == [gpu(card) for card in expected]


@pytest.mark.parametrize("count", [0, None])
def test_without_cards_there_is_nothing_to_share(count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, count)
    assert cards.card_count() == 0
    with pytest.raises(ExecutionError, match="tofu doctor"):
        cards.shared(2)

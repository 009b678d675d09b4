"""Forms in words."""

from __future__ import annotations

import pytest

from tofu.partitioner.layouts.form_text import form_text, worker_text
from tofu.partitioner.layouts.forms import At, Cut, Follow, Form, Partial, Parts, Spread


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ((), "-"),
        (("n", None, "c"), "n,-,c"),
        ((0, At(1), Partial()), "0,@1,partial"),
        (Spread((), (3,)), "whole on worker 3"),
        (Spread(((None, 3),), (0, 1, 2)), "whole on workers 0 to 2"),
        (Spread((("n", 2), (None, 2)), (3, 0, 1, 2)), "n/2,-/2 on workers 3, 0 to 2"),
        (Spread(((Partial(), 2),), (0, 1)), "partial/2 on workers 0, 1"),
        (Cut(1, (3, 7), (0, 2, 0)), "1 cut at 3, 7 on workers 0, 2, 0"),
        (Cut("n", tuple(range(1, 10)), tuple(range(10))), "n cut at 9 places on workers 0 to 9"),
        (Parts(((1, ((0, 4), (0, 8))),)), "[0:4, 0:8] on worker 1"),
        (Parts(((2, ((0, 4),), 1),)), "[0:4] on worker 2 (term 1)"),
        (Parts(((5, ((0, 1),)), (0, ((1, 2),)), (5, ((2, 3),)))), "3 parts on workers 0, 5"),
        (Follow(), "as its operation makes it"),
    ],
)  # fmt: skip
def test_every_form_has_words(form: Form, words: str) -> None:
    assert form_text(form) == words


def test_entries_may_stand_apart() -> None:
    assert form_text(("n", None), ", ") == "n, -"
    assert form_text(Spread((("n", 2), ("h", 1)), (0, 1)), ", ") == "n/2, h/1 on workers 0, 1"


def test_workers() -> None:
    assert worker_text([]) == "workers none"
    assert worker_text(range(64)) == "workers 0 to 63"
    assert worker_text([0, 1, 3, 4, 5]) == "workers 0, 1, 3 to 5"
    assert worker_text(range(0, 40, 2)) == "workers 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"

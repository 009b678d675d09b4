"""Whatever the text, the outcome is a description or a `DescriptionError`."""

from __future__ import annotations

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.errors import DescriptionError

from .random_texts import SEEDS, TOKENS, damaged_bytes, damaged_tokens, written


def outcome(text: str) -> None:
    """Parse, print if that works, and parse again; anything but a DescriptionError escapes."""
    try:
        description = tdl.parse(text)
    except DescriptionError:
        return
    assert tdl.parse(tdl.format(description)) == description


@given(st.text(max_size=200))
@settings(max_examples=200)
@example("\ud800")
@example("def f(a): return lambda i: a[i] + '''")
def test_any_text(text: str) -> None:
    outcome(text)


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes(data: bytes) -> None:
    outcome(data.decode("latin-1"))


@given(st.lists(st.sampled_from(TOKENS), max_size=40))
@settings(max_examples=400)
def test_any_tokens(tokens: list[str]) -> None:
    outcome("def f(a, b, *, n=1): return lambda i, j: " + " ".join(tokens))


@given(st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_texts_by_the_grammar(random: Random) -> None:
    outcome(written(random))


@given(st.randoms(use_true_random=False))
@settings(max_examples=400)
def test_texts_damaged_by_tokens(random: Random) -> None:
    outcome(damaged_tokens(random, SEEDS))


@given(st.randoms(use_true_random=False))
@settings(max_examples=400)
def test_texts_damaged_by_bytes(random: Random) -> None:
    outcome(damaged_bytes(random, SEEDS))


def test_most_written_texts_mean_something() -> None:
    random = Random(0)
    accepted = 0
    for _ in range(200):
        try:
            tdl.parse(written(random))
        except DescriptionError:
            continue
        accepted += 1
    assert accepted > 80

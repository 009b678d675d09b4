"""Whatever the text, the outcome is a description or a `DescriptionError`."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.errors import DescriptionError

SEEDS = [
    "def conv1d(data, filters):\n"
    "    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])\n",
    "def f(m, *, k=(1, 2), n=3):\n"
    "    C = Opaque()\n"
    "    s = lambda b: Max(lambda i: pad(m[b, i - 1, 0], -inf))\n"
    "    return lambda b, i, j: C(m[b, :, :])[i, j] + s[b] * k[0], lambda *z: m[*z] if n else exp(1e3)\n",
]
TOKENS = [
    *"( ) [ ] : , * ** / // % + - < <= == != = . ; @ # ' \" \\ ! {",
    *["def", "lambda", "return", "if", "else", "and", "or", "not", "Sum", "Max", "Opaque", "pad", "where"],
    *["exp", "tofu", "shape", "a", "b", "i", "j", "f", "g", "0", "1", "2.5", "1e9", "inf", "pi", "True"],
    *["**", "//", "<=", "==", "!=", "\n", "\0", "\u00e9", "\uff11"],
]


def outcome(text: str) -> None:
    """Parses, and where that works prints and parses again; anything but a DescriptionError escapes."""
    try:
        description = tdl.parse(text)
    except DescriptionError:
        return
    assert tdl.parse(tdl.format(description)) == description


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
@example("\ud800")
@example("def f(a): return lambda i: a[i] + '''")
def test_any_text(text: str) -> None:
    outcome(text)


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes(data: bytes) -> None:
    outcome(data.decode("latin-1"))


@given(st.lists(st.sampled_from(TOKENS), max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_tokens(tokens: list[str]) -> None:
    outcome("def f(a, b, *, n=1): return lambda i, j: " + " ".join(tokens))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_damaged_descriptions(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + data.draw(st.sampled_from(["", *TOKENS])) + text[end:]
    outcome(text)

"""Whether a description is linear in its tensors: by its text, and by numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tofu
from tofu.analyzer.strategies.linear import is_linear

CASES = {
    "-a[i] * 3 + b[i] * 0": {"a", "ab"},
    "a[i] * b[i]": {"a", "b"},
    "a[i] + b[i]": {"ab"},
    "a[i] - a[i] / b[i]": {"a"},
    "a[i] + 1 + b[i] * 0": set(),
    "a[i] * 0 + b[i]": {"b", "ab"},
    "b[i] / a[i]": {"b"},
    "exp(a[i]) * b[i]": {"b"},
    "where(b[i] > 0, a[i], 0)": {"a"},
    "where(b[i] > 0, a[i], 1)": set(),
    "Sum(lambda j: a[j] * b[i])": {"a", "b"},
    "Max(lambda j: a[j]) * b[i]": {"b"},
    "pad(a[i - 1], 0) * b[i]": {"a", "b"},
    "pad(a[i - 1], 1) * b[i]": {"b"},
    "a[i] ** 1 + b[i] * 0": set(),
    "i * a[i] + b[i]": {"ab"},
}


def _description(body: str) -> str:
    return f"def f(a, b):\n    return lambda i: {body}\n"


@pytest.mark.parametrize(("body", "linear"), CASES.items())
def test_what_the_text_shows(body: str, linear: set[str]) -> None:
    description = tofu.tdl.parse(_description(body))
    for names in ("a", "b", "ab"):
        assert is_linear(description, set(names)) == (names in linear), names


@given(st.sampled_from(sorted(CASES)), st.sampled_from(["a", "b", "ab"]), st.integers(0, 1 << 30))
def test_linear_operators_add_up(body: str, names: str, seed: int) -> None:
    """If the text shows it, the result of a sum is the sum of the results."""
    description = tofu.tdl.parse(_description(body))
    if not is_linear(description, set(names)):
        return
    drawn = np.random.default_rng(seed)
    one, other = ({name: drawn.uniform(1, 2, 5) for name in "ab"} for _ in range(2))
    other |= {name: one[name] for name in "ab" if name not in names}
    both = {name: one[name] + (other[name] if name in names else 0) for name in "ab"}
    bound = tofu.analyzer.bind.analysis.analyze(description).bind({"a": (5,), "b": (5,)})
    (found,), *parts = (bound.interpret(values) for values in (both, one, other))
    np.testing.assert_allclose(found, sum(part[0] for part in parts), rtol=1e-9, atol=1e-9)

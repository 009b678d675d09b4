"""The fixture that the analyzer's tests share: binding text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.specialize.specialize import specialize

Shapes = Mapping[str, tuple[int, ...]]


@pytest.fixture(scope="session")
def bind() -> Callable[..., Bound]:
    """`bind(text, shapes, **attributes)`: parse, specialise, analyse and bind a description."""

    def bind_text(text: str, shapes: Shapes, **attributes: Any) -> Bound:
        ranks = {name: len(shape) for name, shape in shapes.items()}
        return analyze(specialize(tdl.parse(text), attributes, ranks)).bind(shapes)

    return bind_text

"""The promises of the package as a whole."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tofu

ROOT = Path(__file__).parents[1]


def test_import_is_light() -> None:
    heavy = ("numpy", "sympy", "lark", "click", "rich", "inspect", "opt_einsum", "threadpoolctl")
    code = f"import sys, tofu; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", tofu.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(tofu, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'partion'"):
        tofu.partion  # noqa: B018


def test_every_package_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "packages"
    ]
    outside = ("tests", "benchmarks", "examples", "build")
    found = {
        ".".join(("tofu", *path.parent.relative_to(ROOT).parts))
        for path in ROOT.rglob("__init__.py")
        if not any(part in outside or part.startswith(".") for part in path.relative_to(ROOT).parts)
    }
    assert set(listed) == found

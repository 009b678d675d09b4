"""Fixtures of tests of commands, and the machine's compiler, see `native_kernels`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ..native_kernels import compiler

__all__ = ["compiler"]


@pytest.fixture
def signs(tmp_path: Path) -> tuple[str, str]:
    """A network of one layer, as `file.py:function`, and a file of data for it."""
    data = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    np.savez(tmp_path / "signs.npz", data=data, label=(data.sum(axis=1) > 0).astype(np.int64))
    (tmp_path / "net.py").write_text(
        "from tofu import sym\n"
        "def build():\n"
        "    body = sym.FullyConnected(sym.Variable('data'), num_hidden=2, name='fc')\n"
        "    return sym.SoftmaxOutput(body, name='softmax')\n"
    )
    return f"{tmp_path / 'net.py'}:build", str(tmp_path / "signs.npz")

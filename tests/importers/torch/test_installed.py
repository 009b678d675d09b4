"""Without PyTorch, Tofu works, and says how to install it if a module is to be read."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tofu


def test_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(tofu.TofuError, match=r"pip install 'tofu\[torch\]'"):
        tofu.from_torch(object(), ())


def test_is_not_imported_with_tofu() -> None:
    code = "import sys, tofu; tofu.from_torch, tofu.Module; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

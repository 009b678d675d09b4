"""The names of the package, and `import mxnet` that means it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import tofu
import tofu.mx as mx


@pytest.mark.parametrize("name", mx.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(mx, name) is not None


def test_short_names_are_the_long_ones() -> None:
    assert (mx.sym, mx.nd, mx.mod, mx.init, mx.viz) == (
        mx.symbol,
        mx.ndarray,
        mx.module,
        mx.initializer,
        mx.visualization,
    )


def test_unknown_names_get_near_ones_and_missing_parts_their_replacement() -> None:
    with pytest.raises(AttributeError, match="mx has no 'optimiser'; did you mean 'optimizer'"):
        mx.optimiser  # noqa: B018
    with pytest.raises(AttributeError, match=r"mx\.gluon is not supported: .* compose the network"):
        mx.gluon.nn  # noqa: B018
    with pytest.raises(AttributeError, match=r"mx\.mon is not supported: .* symbol\.get_internals"):
        mx.mon  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'FullyConnected'"):
        mx.sym.FullyConected  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'zeros'"):
        mx.nd.zeross  # noqa: B018


def test_devices_are_those_of_the_package() -> None:
    assert mx.gpu(2) == tofu.gpu(2)
    assert mx.num_gpus() >= 0
    assert mx.current_context() == mx.cpu(0) == mx.Context("cpu", 0)


def test_names_are_listed() -> None:
    assert {"mod", "sym", "__version__"} <= set(dir(mx))
    assert {"Variable", "FullyConnected"} <= set(dir(mx.sym))
    with pytest.raises(AttributeError, match=r"mx\.sym: .*'linalg_gem2'; did you mean 'linalg_gemm2'"):
        mx.sym.linalg.gem2  # noqa: B018


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (lambda: next(mx.io.DataIter()), r"from next"),
        (lambda: mx.init.Initializer()("a_weight", mx.nd.ones(2)), "Initializer has no _init_weight"),
        (lambda: mx.lr_scheduler.LRScheduler()(1), "in __call__ or after_warmup"),
        (
            lambda: mx.metric.EvalMetric("mine").update([mx.nd.ones(2)], [mx.nd.ones(2)]),
            "EvalMetric has neither update",
        ),
    ],
)
def test_classes_to_derive_from_say_what_is_left_to_write(call: Callable[[], object], missing: str) -> None:
    with pytest.raises(NotImplementedError, match=missing):
        call()


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_package_loads_its_parts_when_they_are_used() -> None:
    assert run("import sys, tofu.mx; print('numpy' in sys.modules)") == "False"


@pytest.mark.parametrize("how", ["tofu.mx.install()", "sys.modules['mxnet'] = tofu.mx"])
def test_import_mxnet(how: str) -> None:
    code = f"""
import sys, tofu.mx
{how}
import mxnet as mx
import mxnet.ndarray as nd
import mxnet.symbol
from mxnet.io import DataBatch
from mxnet import init
from mxnet.rnn.cells import LSTMCell
from mxnet.module import Module
assert mx is tofu.mx and nd is tofu.mx.nd and mxnet.symbol is tofu.mx.sym, nd
assert DataBatch is tofu.mx.io.DataBatch and init is tofu.mx.initializer
assert LSTMCell is tofu.mx.rnn.LSTMCell and Module is tofu.mx.mod.Module
assert tofu.mx.ndarray.__spec__.name == "tofu.mx.ndarray"
print("done")
"""
    assert run(code) == "done"


def test_import_of_what_is_not_there() -> None:
    assert "mx.gluon is not supported" in run("import tofu.mx; tofu.mx.install(); import mxnet.gluon")
    assert "No module named 'mxnet'" in run("import tofu.mx; import mxnet.ndarray")


def test_another_mxnet_is_not_replaced() -> None:
    other = "import sys, types; sys.modules['mxnet'] = types.ModuleType('mxnet')"
    assert run(f"{other}; import tofu.mx; tofu.mx.install()").startswith(
        "ImportError: another mxnet is imported already"
    )


def test_a_missing_part_says_what_to_use_however_it_is_imported() -> None:
    for line in ("from mxnet import gluon", "import mxnet.gluon", "from mxnet.gluon import nn"):
        said = run(f"import tofu.mx; tofu.mx.install(); {line}")
        assert said.startswith("ModuleNotFoundError: mx.gluon is not supported: imperative layers; compose")

"""Files that are not models, that contradict themselves or that reach outside: each is a named error."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")

import tofu  # noqa: E402
from tofu.cli import main  # noqa: E402
from tofu.errors import GraphError, ShapeError, TofuError  # noqa: E402

from .whole_models import MODELS  # noqa: E402

WHOLE = MODELS["mlp"]().SerializeToString()


def _relu(*nodes: tuple[str, list[str], list[str]], dims: Any = ("N", 4), kept: Any = ()) -> Any:
    """Return a model of nodes from `data` to `out`."""
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node(kind, inputs, outputs, name=f"n{i}")
            for i, (kind, inputs, outputs) in enumerate(nodes)
        ],
        "g",
        [onnx.helper.make_tensor_value_info("data", float32, dims)],
        [onnx.helper.make_tensor_value_info("out", float32, None)],
        list(kept),
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def _external(location: str, **entries: str) -> Any:
    """Return a tensor of 4 numbers that lie in another file."""
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def _claimed(*dims: int, raw: bytes = b"1234") -> Any:
    return onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=dims, raw_data=raw)


def _unnamed() -> Any:
    model = _relu(("Relu", ["data"], ["out"]))
    model.graph.output[0].name = ""
    return model


ADD = ("Add", ["data", "w"], ["out"])
FOUR = onnx.numpy_helper.from_array(np.ones(4, np.float32), "w")
HUGE = onnx.numpy_helper.from_array(np.array([1 << 40, 4]), "s")
BAD: dict[str, tuple[Any, str]] = {
    "a cycle": (
        _relu(("Add", ["data", "b"], ["a"]), ("Relu", ["a"], ["b"]), ("Relu", ["b"], ["out"])),
        "a cycle: 'n0'",
    ),
    "two nodes make one name": (
        _relu(("Relu", ["data"], ["out"]), ("Abs", ["data"], ["out"])),
        "exists already",
    ),
    "two initializers of one name": (_relu(ADD, kept=[FOUR, FOUR]), "two initializers are named 'w'"),
    "a missing initializer": (_relu(ADD), "reads 'w', which is neither"),
    "axes that repeat": (
        _relu(
            ("Unsqueeze", ["data", "s"], ["out"]), kept=[onnx.numpy_helper.from_array(np.array([0, 0]), "s")]
        ),
        "Unsqueeze of (2, 4) with axes (0, 0)",
    ),
    "a missing output": (_relu(("Relu", ["data"], ["other"])), "reads 'out', which is neither"),
    "an output without a name": (_unnamed(), "an output of the graph has no name"),
    "a gigabyte in four bytes": (_relu(ADD, kept=[_claimed(1 << 28)]), "takes 1,073,741,824 bytes, but"),
    "more elements than there are": (_relu(ADD, kept=[_claimed(1 << 40, 1 << 40)]), "extents are from 0 on"),
    "a negative extent": (_relu(ADD, kept=[_claimed(-4)]), "extents are from 0 on"),
    "an input that is too large": (
        _relu(("Relu", ["data"], ["out"]), dims=(1 << 40, 1 << 20)),
        "is the most",
    ),
    "an input without elements": (_relu(("Relu", ["data"], ["out"]), dims=(0, 4)), "has an extent of 0"),
    "a constant that grows": (
        _relu(("ConstantOfShape", ["s"], ["a"]), ("Add", ["data", "a"], ["out"]), kept=[HUGE]),
        "is the most",
    ),
    "a list that is too short": (
        _relu(ADD, kept=[onnx.TensorProto(name="w", data_type=1, dims=[9], float_data=[1.0])]),
        "9 elements, but",
    ),
    "text for numbers": (
        _relu(ADD, kept=[onnx.TensorProto(name="w", data_type=8, dims=[1], string_data=[b"x"])]),
        "type 8",
    ),
    "an unknown operator": (
        _relu(("Det", ["data"], ["a"]), ("Unique", ["a"], ["out"])),
        "Det: 'n0'\n  Unique: 'n1'\ndescribe each",
    ),
    "shapes that do not fit": (
        _relu(ADD, kept=[onnx.numpy_helper.from_array(np.ones(3, np.float32), "w")]),
        "do not fit each other",
    ),
    "too few inputs": (_relu(("Add", ["data"], ["out"])), "not as ONNX defines it"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_model_that_contradicts_itself_is_refused(case: str) -> None:
    model, message = BAD[case]
    with pytest.raises(TofuError) as caught:
        tofu.from_onnx(model.SerializeToString(), {"data": (2, 4)} if "N" in str(model.graph.input) else {})
    assert message in str(caught.value)


def test_versions_are_checked() -> None:
    model = MODELS["mlp"]()
    for version, message in ((3, "of version 3"), (9999, "versions up to")):
        model.opset_import[0].version = version
        with pytest.raises(GraphError, match=message):
            tofu.from_onnx(model.SerializeToString(), {"data": (2, 16)})
    del model.opset_import[:]
    with pytest.raises(GraphError, match="not stated"):
        tofu.from_onnx(model.SerializeToString())


def test_an_open_dimension_is_named() -> None:
    with pytest.raises(ShapeError, match=r"dimension 0 \(N\) of 'data' is open: the file has \(N, 16\)"):
        tofu.from_onnx(WHOLE)
    with pytest.raises(ShapeError, match="dimension 1 of 'data' is 16"):
        tofu.from_onnx(WHOLE, {"data": (8, 17)})
    with pytest.raises(ShapeError, match="'date', which is not an input; did you mean 'data'"):
        tofu.from_onnx(WHOLE, {"date": (8, 16)})


def _outside(folder: Path) -> str:
    (folder / "secret").write_bytes(bytes(16))
    return "../secret"


def _absolute(folder: Path) -> str:
    (folder / "secret").write_bytes(bytes(16))
    return str(folder / "secret")


def _link(folder: Path) -> str:
    (folder / "secret").write_bytes(bytes(16))
    (folder / "model" / "data").symlink_to(folder / "secret")
    return "data"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "model" / "data")
    return "data"


def _short(folder: Path) -> str:
    (folder / "model" / "data").write_bytes(bytes(15))
    return "data"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_outside, "outside of the model's folder"),
        (_absolute, "outside of the model's folder"),
        (_link, "outside of the model's folder"),
        (_pipe, "not a regular file"),
        (_short, "ends at byte 16 of 'data', which has 15"),
        (lambda folder: "", "outside of the model's folder"),
        (lambda folder: "none", "No such file"),
    ],
)
def test_external_data_lie_inside_the_folder(
    tmp_path: Path, make: Callable[[Path], str], message: str
) -> None:
    (tmp_path / "model").mkdir()
    model = _relu(ADD, kept=[_external(make(tmp_path))])
    path = tmp_path / "model" / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(GraphError) as caught:
        tofu.from_onnx(path, {"data": (2, 4)})
    assert message in str(caught.value)


def test_external_data_are_read(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(8) + np.arange(4, dtype="<f4").tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(_relu(ADD, kept=[_external("data", offset="8", length="16")]).SerializeToString())
    _, parameters = tofu.from_onnx(path, {"data": (2, 4)})
    assert parameters["w"].tolist() == [0, 1, 2, 3]


def test_a_name_cannot_move_a_terminals_text() -> None:
    model = _relu(("Relu", ["da\x1b[2J\nta"], ["out"]))
    model.graph.input[0].name = "da\x1b[2J\nta"
    symbol, _ = tofu.from_onnx(model.SerializeToString(), {"da\\x1b[2J\\nta": (2, 4)})
    assert symbol.list_arguments() == ["da\\x1b[2J\\nta"]


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_damaged_files_are_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(damaged)), st.integers(0, len(damaged))))
    _survives(bytes(damaged[:cut]))


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(TofuError):
        tofu.from_onnx(data)


def _survives(data: bytes) -> None:
    try:
        symbol, parameters = tofu.from_onnx(data, {"data": (8, 16)})
    except TofuError:
        return
    assert parameters.keys() <= {*symbol.list_arguments(), *symbol.list_auxiliary_states()}


def test_a_claim_takes_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in ("a gigabyte in four bytes", "a constant that grows"):
        with pytest.raises(TofuError):
            tofu.from_onnx(BAD[case][0].SerializeToString(), {"data": (2, 4)})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("content", [b"", b"\x08", WHOLE[:-100], BAD["a cycle"][0].SerializeToString()])
def test_commands_end_with_status_2(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    found = CliRunner().invoke(main, ["plan", str(path), "--batch", "8"])
    assert found.exit_code == 2
    assert found.stderr.startswith("Error: ")

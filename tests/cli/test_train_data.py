"""`tofu train --data` on files of every format, and everything it leaves behind."""

from __future__ import annotations

import gzip
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from PIL import Image

from tofu.runtime.cuda import cards

Tofu = Callable[..., Result]
QUICK = ("--epochs", "1", "--workers", "2", "--batch", "8")


def _images(count: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright row that says the class, of three."""
    generator = np.random.default_rng(0)
    images, classes = generator.integers(0, 60, (count, *shape)), np.arange(count) % 3
    for image, number in zip(images, classes, strict=True):
        image[..., 2 * number, :] += 190
    return images.astype(np.uint8), classes


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    images, classes = _images(48, (8, 8))
    np.savez(tmp_path / "arrays.npz", data=images, label=classes)
    return tmp_path / "arrays.npz"


def _summary(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    facts: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return facts


def test_arrays(tofu: Tofu, arrays: Path) -> None:
    facts = _summary(tofu("train", "mlp", "--data", str(arrays), *QUICK, "--epochs", "12", "--json"))
    assert facts["steps"] == 12 * 6
    assert facts["metric"]["accuracy"] == 1.0  # type: ignore[index]


def test_cifar(tofu: Tofu, tmp_path: Path) -> None:
    images, classes = _images(16, (3, 32, 32))
    batch = {b"data": images.reshape(16, 3072), b"labels": classes.tolist()}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=2))
    facts = _summary(tofu("train", "mlp", "--data", str(tmp_path), *QUICK, "--json"))
    assert facts["steps"] == 2
    assert set(facts["metric"]) == {"cross-entropy", "accuracy"}  # type: ignore[call-overload]


def test_mnist(tofu: Tofu, tmp_path: Path) -> None:
    images, classes = _images(24, (28, 28))
    for name, array in (("images-idx3", images), ("labels-idx1", classes)):
        header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        (tmp_path / f"train-{name}-ubyte.gz").write_bytes(
            gzip.compress(header + array.astype("u1").tobytes())
        )
    assert _summary(tofu("train", "lenet", "--data", str(tmp_path), *QUICK, "--json"))["steps"] == 3


def test_folders_of_images(tofu: Tofu, tmp_path: Path) -> None:
    images, classes = _images(24, (16, 16, 3))
    for number, (pixels, name) in enumerate(zip(images, classes, strict=True)):
        (tmp_path / f"class{name}").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / f"class{name}" / f"{number}.png")
    facts = _summary(tofu("train", "wresnet", "--data", str(tmp_path), "--resize", "8x8", *QUICK, "--json"))
    assert facts["steps"] == 3


@pytest.mark.parametrize("level", ["character", "word"])
def test_text(tofu: Tofu, tmp_path: Path, level: str) -> None:
    (tmp_path / "tale.txt").write_text("the cat saw the dog and the dog saw the eel.\n" * 20)
    arguments = (
        "--data",
        str(tmp_path / "tale.txt"),
        "--level",
        level,
        "--steps",
        "5",
        *QUICK,
        "--epochs",
        "3",
    )
    facts = _summary(tofu("train", "lstm", *arguments, "--json"))
    assert facts["metric"]["perplexity"] < 11  # type: ignore[index]


def test_a_function_in_a_python_file(tofu: Tofu, tmp_path: Path) -> None:
    data = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    np.savez(tmp_path / "line.npz", data=data, label=data.sum(axis=1, keepdims=True))
    (tmp_path / "net.py").write_text(
        "from tofu import sym\n"
        "def build():\n"
        "    body = sym.FullyConnected(sym.Variable('data'), num_hidden=1, name='fc')\n"
        "    return sym.LinearRegressionOutput(sym.Flatten(body), sym.Variable('y_label'), name='lro')\n"
    )
    net, data_file = f"{tmp_path / 'net.py'}:build", str(tmp_path / "line.npz")
    refused = tofu("train", net, "--data", data_file, *QUICK)
    assert refused.exit_code == 2
    facts = _summary(
        tofu("train", net, "--data", data_file, "--metric", "mse", *QUICK, "--epochs", "20", "--json")
    )
    assert facts["final_loss"] < 0.5  # type: ignore[operator]


def test_a_saved_plan_is_followed_and_its_time_is_compared(
    tofu: Tofu, tmp_path: Path, signs: tuple[str, str]
) -> None:
    (net, data), file = signs, str(tmp_path / "plan.json")
    shapes = ("--shape", "data=8,6", "--shape", "softmax_label=8")
    planned = tofu("plan", net, *shapes, "--workers", "2", "--machine", "pcie-8", "--save", file)
    assert planned.exit_code == 0, planned.output
    asked = ("train", net, "--data", data, "--batch", "8", "--epochs", "1")
    trained = (*asked, "--optimizer", "sgd", "--plan", file)
    facts = _summary(tofu(*trained, "--json"))
    assert facts["workers"] == 2
    assert facts["simulated_seconds_per_step"] == json.loads(Path(file).read_text())["step_seconds"] > 0
    page = tofu(*trained).output
    assert "an iteration, simulated" in page
    assert "an iteration, measured" in page
    for option, message in (
        (("--workers", "3"), "the plan is for 2 workers, not for 3"),
        (("--method", "refine"), "--method searches a plan, and --plan names one"),
        (("--merge",), "--merge searches a plan, and --plan names one"),
        (("--batch", "4"), "shapes, attributes or the optimizer's settings differ"),
    ):
        refused = tofu(*trained, *option)
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.split())


def test_nothing_held_out(tofu: Tofu, arrays: Path) -> None:
    assert (
        _summary(tofu("train", "mlp", "--data", str(arrays), "--hold-out", "0", *QUICK, "--json"))["metric"]
        == {}
    )


def test_a_run_leaves_a_log_and_a_plot(tofu: Tofu, arrays: Path, tmp_path: Path) -> None:
    log, plot = tmp_path / "run.jsonl", tmp_path / "curve.svg"
    arguments = ("train", "mlp", "--data", str(arrays), *QUICK, "--log", str(log), "--plot", str(plot))
    result = tofu(*arguments)
    assert result.exit_code == 0
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", *["step"] * 6, "epoch", "summary"]
    assert plot.read_text().startswith("<?xml")
    refused = tofu(*arguments)
    assert refused.exit_code == 2
    assert "holds lines already" in refused.output


def test_a_log_goes_on_where_the_run_does(tofu: Tofu, arrays: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    arguments = ("train", "mlp", "--data", str(arrays), "--workers", "2", "--batch", "8")
    kept = ("--checkpoint", str(tmp_path / "run"), "--log", str(log))
    assert tofu(*arguments, "--epochs", "1", *kept).exit_code == 0
    assert tofu(*arguments, "--epochs", "2", *kept, "--resume").exit_code == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["resumed"] for each in events if each["event"] == "start"] == [False, True]
    assert [each["epoch"] for each in events if each["event"] == "epoch"] == [1, 2]
    assert [each["step"] for each in events if each["event"] == "step"] == list(range(1, 13))


def test_an_interrupt_says_how_to_go_on(
    tofu: Tofu, arrays: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("train", "mlp", "--data", str(arrays), *QUICK)
    folder = tmp_path / "run"
    assert tofu(*arguments, "--checkpoint", str(folder)).exit_code == 0

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tofu.api.Module.fit", interrupted)
    for kept, says in (
        ((), "interrupted; nothing was saved; --checkpoint FOLDER saves the run after every epoch"),
        (("--checkpoint", str(tmp_path / "none")), "interrupted; there is no checkpoint in"),
        (
            ("--checkpoint", str(folder)),
            f"newest checkpoint with --checkpoint {folder} --resume",
        ),
    ):
        result = tofu(*arguments, *kept)
        assert result.exit_code == 130
        assert says in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("lstm", "--data", "arrays.npz"), "expected text for lstm, found samples 1 x 8 x 8 with 3 classes"),
        (("mlp", "--data", "none"), "there is no file or folder none"),
        (("mlp", "--data", "arrays.npz", "--level", "word"), "to which --level does not apply"),
        (("mlp", "--data", "arrays.npz", "--plot", "curve.gif"), "a plot ends in"),
        (("resnet-18",), "resnet-18 comes without data: name a file or folder with --data"),
        (("net.py:build",), "net.py:build comes without data"),
        (("resnet-19", "--data", "arrays.npz"), "did you mean 'resnet-18"),
        (("gpt-12-768", "--data", "tale.txt"), "there is no file or folder tale.txt"),
    ],
)
def test_mistakes_end_before_anything_runs(
    tofu: Tofu, arrays: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(arrays.parent)
    monkeypatch.setattr("tofu.api.Module.bind", None)
    result = tofu("train", *arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_gpus_that_are_not_there_are_one_message(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "card_count", lambda: 0)
    result = tofu("train", "mlp", "--device", "gpu")
    assert result.exit_code == 2
    assert "run `tofu doctor` to see what is missing" in result.output


def test_the_cards_options_need_cards(tofu: Tofu) -> None:
    result = tofu("train", "mlp", "--tf32")
    assert result.exit_code == 2
    assert "--device gpu" in result.output


def test_the_processor_trains_in_16_bits(tofu: Tofu) -> None:
    losses = {
        dtype: _summary(tofu("train", "mlp", "--dtype", dtype, "--epochs", "1", "--json"))["final_loss"]
        for dtype in ("float32", "bfloat16")
    }
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.05)

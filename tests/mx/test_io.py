"""Batches, and what describes them."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import tofu.mx as mx

X = np.arange(20, dtype="f4").reshape(10, 2)
Y = np.arange(10)


def test_batches_are_filled_with_the_first_samples() -> None:
    data = mx.io.NDArrayIter(X, Y, batch_size=4)
    for _ in range(2):
        seen = list(data)
        assert [batch.pad for batch in seen] == [0, 0, 2]
        np.testing.assert_array_equal(seen[2].data[0].asnumpy(), X[[8, 9, 0, 1]])
        assert seen[2].label[0].asnumpy().tolist() == [8, 9, 0, 1]
        assert list(data) == []
        data.reset()
    assert data.provide_data == [("data", (4, 2))]
    assert data.provide_label == [("softmax_label", (4,))]
    assert data.num_data == 10
    assert "data shapes: [(4, 2)] label shapes: [(4,)]" in repr(seen[0])


def test_discarded_and_shuffled() -> None:
    assert len(list(mx.io.NDArrayIter(X, Y, 4, last_batch_handle="discard"))) == 2
    shuffled = mx.io.NDArrayIter(mx.nd.array(X), Y, 5, shuffle=True)
    epochs = []
    for _ in range(2):
        epochs.append(np.concatenate([batch.label[0].asnumpy() for batch in shuffled]))
        shuffled.reset()
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(Y)
    assert (epochs[0] != epochs[1]).any()
    with pytest.raises(
        mx.MXNetError, match="last_batch_handle is 'roll_over'; supported are 'pad' and 'discard'"
    ):
        mx.io.NDArrayIter(X, Y, 4, last_batch_handle="roll_over")


def test_several_arrays() -> None:
    data = mx.io.NDArrayIter({"a": X, "b": Y}, [X, Y], 5, label_name="l")
    assert [each.name for each in data.provide_data] == ["a", "b"]
    assert [each.name for each in data.provide_label] == ["_0_l", "_1_l"]
    assert mx.io.NDArrayIter([X], None, 5).provide_data[0].name == "data"


def test_resized() -> None:
    data = mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 5), 5)
    assert len(list(data)) == 5
    data.reset()
    assert len(list(data)) == 5


def test_descriptions() -> None:
    described = mx.io.DataDesc("data", [4, 3], "float16", "TNC")
    assert described == ("data", (4, 3))
    assert (described.dtype, described.layout) == ("float16", "TNC")
    assert mx.io.DataDesc.get_batch_axis("TNC") == 1
    assert mx.io.DataDesc.get_batch_axis(None) == 0
    with pytest.raises(mx.MXNetError, match="are lists of arrays"):
        mx.io.DataBatch(mx.nd.ones(2))  # type: ignore[arg-type]


def idx(array: np.ndarray) -> bytes:
    return (
        struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype("u1").tobytes()
    )


def test_mnist_files(tmp_path: Path) -> None:
    images = np.arange(6 * 28 * 28).reshape(6, 28, 28) % 256
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(images)))
    (tmp_path / "labels").write_bytes(idx(np.arange(6)))
    files = {"image": str(tmp_path / "images.gz"), "label": str(tmp_path / "labels")}
    (batch, _) = mx.io.MNISTIter(**files, batch_size=3, shuffle=False)
    np.testing.assert_allclose(batch.data[0].asnumpy(), images[:3, None] / 255, rtol=1e-6)
    assert batch.label[0].asnumpy().tolist() == [0, 1, 2]
    assert mx.io.MNISTIter(**files, batch_size=3, flat=True).provide_data[0].shape == (3, 784)

    def shuffled(seed: int) -> list[float]:
        batches = mx.io.MNISTIter(**files, batch_size=6, seed=seed)
        return [label for batch in batches for label in batch.label[0].asnumpy().tolist()]

    assert shuffled(1) == shuffled(1) != shuffled(2)
    with pytest.raises(mx.MXNetError, match="part_index is 2, but there are 2 parts"):
        mx.io.MNISTIter(**files, batch_size=3, num_parts=2, part_index=2)
    with pytest.raises(mx.MXNetError, match=r"has images \(28, 28\), but input_shape is \(3, 28, 28\)"):
        mx.io.MNISTIter(**files, batch_size=3, input_shape=(3, 28, 28))
    (tmp_path / "labels").write_bytes(idx(np.arange(6))[:-1])
    with pytest.raises(mx.MXNetError, match="expected 6 = 6 bytes after the header, found 5 bytes"):
        mx.io.MNISTIter(**files, batch_size=3)
    with pytest.raises(mx.MXNetError, match="cannot be read"):
        mx.io.MNISTIter(image=str(tmp_path / "none"), label=files["label"], batch_size=3)

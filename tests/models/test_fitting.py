"""Models for given data: built for it, or checked against it."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import sym
from tofu.errors import DataError, GraphError
from tofu.models import Model, fitting
from tofu.models.files import Dataset
from tofu.models.split import DataSplit

CLASS_METRICS = ("cross-entropy", "accuracy")


def _data(
    sample: tuple[int, ...], classes: int | None, target: tuple[int, ...] = (), sequence: bool = False
) -> Dataset:
    data, label = np.zeros((4, *sample), np.float32), np.zeros((4, *target), np.float32)
    return Dataset("arrays", DataSplit(data, label, data[:0], label[:0]), classes, sequence=sequence)


@pytest.mark.parametrize(
    ("name", "data", "output"),
    [
        ("mlp", _data((7,), 3), (8, 3)),
        ("mlp", _data((1, 5, 4), 3), (8, 3)),
        ("wresnet-10-1", _data((2, 12, 16), 5), (8, 5)),
        ("lenet", _data((1, 28, 28), 10), (8, 10)),
        ("rnn-1-16", _data((3, 6), 4), (8, 4)),
        ("lstm", _data((5,), 9, (5,), sequence=True), (40, 9)),
        ("gpt-1-64", _data((5,), 9, (5,), sequence=True), (40, 9)),
    ],
)
def test_models_take_the_shapes_and_classes_of_the_data(
    name: str, data: Dataset, output: tuple[int, ...]
) -> None:
    model = fitting.built(name, 8, data, "there")
    assert model.shapes == {"data": (8, *data.sample), "softmax_label": (8, *data.target)}
    assert model.symbol.infer_shape(**model.shapes)[1][0] == output
    assert fitting.require_fit(model, data, "there", CLASS_METRICS) == ("data", "softmax_label")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (
            "lstm",
            _data((3, 8, 8), 10),
            "there: expected text for lstm, found samples 3 x 8 x 8 with 10 classes",
        ),
        ("mlp", _data((5,), 9, (5,), True), "for mlp, found class numbers in sequences of 5"),
        ("rnn-1-16", _data((3, 8, 8), 10), "expected sequences [n, steps, features] with a class for each"),
        (
            "mlp",
            _data((3, 8, 8), None),
            "3 x 8 x 8 with labels that are not class numbers (arrays); give a model",
        ),
        ("mlp", _data((3,), 4, (2,)), "expected images [n, channels, height, width] with a class for each"),
        ("wresnet-10-1", _data((7,), 3), "an image must be (channels, height, width), not (7,)"),
        ("vgg-11", _data((3, 8, 8), 10), "fc6_weight would have no elements"),
        ("transformer-decoder-1-64", _data((5,), 9, (5,), True), "text and a second input"),
    ],
)
def test_models_that_do_not_read_such_data(name: str, data: Dataset, says: str) -> None:
    with pytest.raises(DataError) as caught:
        fitting.built(name, 8, data, "there")
    assert says in str(caught.value)


def test_unknown_models_have_a_suggestion() -> None:
    with pytest.raises(GraphError, match="did you mean"):
        fitting.built("wresnets-10-2", 8, _data((3, 8, 8), 10), "there")


def _regression(label: str = "softmax_label") -> sym.Symbol:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=1, name="fc")
    return sym.LinearRegressionOutput(body, sym.Variable(label), name="lro")


def test_a_graph_takes_its_shapes_from_the_data() -> None:
    data = _data((6,), None, (1,))
    model = fitting.of_symbol("net", _regression("lro_label"), 8, data, "there")
    assert model.data == {"data": (8, 6)}
    assert model.labels == {"lro_label": (8, 1)}
    assert fitting.require_fit(model, data, "there", ("mse",)) == ("data", "lro_label")


def test_a_graph_without_an_input_called_data() -> None:
    net = sym.SoftmaxOutput(
        sym.FullyConnected(sym.Variable("pixels"), num_hidden=2, name="fc"), name="softmax"
    )
    with pytest.raises(DataError, match="expected an input called 'data', found pixels"):
        fitting.of_symbol("net", net, 8, _data((6,), 2), "there")


def test_a_graph_that_does_not_take_the_shapes() -> None:
    net = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    with pytest.raises(DataError, match=r"net does not take samples 6 with 2 classes \(arrays\) in there"):
        fitting.of_symbol("net", net, 8, _data((6,), 2), "there")


def _classifier(classes: int, **changes: tuple[int, ...]) -> Model:
    net = sym.SoftmaxOutput(
        sym.FullyConnected(sym.Variable("data"), num_hidden=classes, name="fc"), name="softmax"
    )
    return Model("net", net, {"data": (8, 6), **changes}, {"softmax_label": (8,)})


def test_batches_of_another_size() -> None:
    model = fitting.rebatched(_classifier(3), 5)
    assert model.shapes == {"data": (5, 6), "softmax_label": (5,)}
    assert fitting.rebatched(model, None) is model


def test_samples_of_another_shape() -> None:
    with pytest.raises(DataError, match=r"there, 'data': expected 6 for each sample, as net reads, found 7"):
        fitting.require_fit(_classifier(3), _data((7,), 3), "there", CLASS_METRICS)


def test_labels_of_another_shape() -> None:
    with pytest.raises(DataError, match=r"'softmax_label': expected of one number for each sample.*found 2"):
        fitting.require_fit(_classifier(3), _data((6,), 3, (2,)), "there", CLASS_METRICS)


def test_more_classes_than_the_model_has() -> None:
    with pytest.raises(DataError, match="expected labels from 0 to 2, the classes of net, found labels"):
        fitting.require_fit(_classifier(3), _data((6,), 4), "there", CLASS_METRICS)


def test_labels_that_are_no_classes() -> None:
    with pytest.raises(DataError, match=r"expected labels 0, 1, .* found others; choose"):
        fitting.require_fit(_classifier(3), _data((6,), None), "there", CLASS_METRICS)


def test_an_output_that_is_no_choice_of_classes() -> None:
    net = sym.LinearRegressionOutput(sym.Variable("data"), sym.Variable("label"), name="lro")
    model = Model("net", net, {"data": (8, 2, 2)}, {"label": (8, 2, 2)})
    with pytest.raises(DataError, match=r"net: expected an output \[32, classes\].*found \(8, 2, 2\)"):
        fitting.require_fit(model, _data((2, 2), 3, (2, 2)), "there", CLASS_METRICS)


def test_more_inputs_than_a_file_has() -> None:
    with pytest.raises(DataError, match="expected arrays for data, mask, softmax_label, which net is fed"):
        fitting.require_fit(_classifier(3, mask=(8, 6)), _data((6,), 3), "there", CLASS_METRICS)

import math
from typing import Any

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.metrics import Metric, Tally, get_metric

OUTPUT = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
LABEL = np.array([0.0, 1.0, 0.0, 0.0])


def value(name: str) -> float:
    tally = Tally(get_metric(name))
    tally.add([(LABEL, OUTPUT)])
    return tally.value


def test_values() -> None:
    assert value("accuracy") == 0.75
    expected = -(math.log(0.5) + math.log(0.8) + math.log(0.25)) / 4
    assert value("cross-entropy") == pytest.approx(expected)
    assert value("perplexity") == pytest.approx(math.exp(expected))
    tally = Tally(get_metric("mse"))
    tally.add([(np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]]))])
    assert tally.value == 2.5


def test_batches_count_by_their_rows() -> None:
    tally = Tally(get_metric("accuracy"))
    assert tally.add([(LABEL[:1], OUTPUT[:1])]) == 1.0
    assert tally.add([(LABEL[1:], OUTPUT[1:])]) == pytest.approx(2 / 3)
    assert tally.value == 0.75


def test_a_label_for_each_of_several_rows_of_a_sample() -> None:
    tally = Tally(get_metric("accuracy"))
    tally.add([(LABEL.reshape(2, 2), OUTPUT)])
    assert tally.value == 0.75


def test_a_class_thought_impossible_costs_a_finite_amount() -> None:
    tally = Tally(get_metric("cross-entropy"))
    tally.add([(np.array([1.0]), OUTPUT[3:])])
    assert math.isfinite(tally.value)


def test_nothing_counted_is_not_a_number() -> None:
    assert math.isnan(Tally(get_metric("accuracy")).value)


def test_a_metric_of_a_number_of_numpy_is_a_number_of_python() -> None:
    """Checkpoints hold metrics as JSON."""
    tally = Tally(
        Metric("half", lambda label, output: np.ones(len(output)), lambda mean: np.float32(mean / 2))
    )
    assert (type(tally.add([(LABEL, OUTPUT)])), type(tally.value)) == (float, float)


@pytest.mark.parametrize("found", [1.0, None, np.array(["a"] * 4), np.zeros(0)], ids=repr)
def test_a_metric_gives_a_number_for_each_row(found: Any) -> None:
    said = r"metric 'own' gave .* for an output of shape \(4, 3\); its `rows` must return an array"
    with pytest.raises(DataError, match=said):
        Tally(Metric("own", lambda label, output: found)).add([(LABEL, OUTPUT)])


def test_a_metric_is_a_number() -> None:
    def nothing(mean: float) -> Any:
        return None

    with pytest.raises(DataError, match=r"metric 'own' is None \(NoneType\); give a number"):
        Tally(Metric("own", lambda label, output: np.ones(4), nothing)).add([(LABEL, OUTPUT)])


def test_bad_labels_and_names_are_refused() -> None:
    with pytest.raises(DataError, match=r"labels run from 0 to 3, but there are 3 classes"):
        Tally(get_metric("accuracy")).add([(np.array([0, 1, 2, 3]), OUTPUT)])
    with pytest.raises(DataError, match=r"shape \(4, 3\) and the label \(3,\)"):
        Tally(get_metric("accuracy")).add([(LABEL[:3], OUTPUT)])
    with pytest.raises(DataError, match=r"a label is 0\.5, but a metric of classes needs .*, 0 to 2; for"):
        Tally(get_metric("accuracy")).add([(np.array([0, 1, 0.5, 2]), OUTPUT)])
    with pytest.raises(DataError, match=r"labels run from nan to nan, but there are 3 classes"):
        Tally(get_metric("accuracy")).add([(np.full(4, np.nan), OUTPUT)])
    with pytest.raises(DataError, match=r"no metric 'acuracy'; did you mean 'accuracy'\?$"):
        get_metric("acuracy")
    with pytest.raises(
        DataError, match=r"no metric 'auc'; there are: accuracy, cross-entropy, perplexity, mse$"
    ):
        get_metric("auc")


@pytest.mark.parametrize("name", ["accuracy", "cross-entropy"])
def test_a_metric_of_classes_needs_classes(name: str) -> None:
    with pytest.raises(
        DataError, match=r"needs outputs \[rows, classes\].*shape \(4,\) and the label \(4,\)"
    ):
        Tally(get_metric(name)).add([(LABEL, OUTPUT[:, 0])])


@pytest.mark.parametrize("label", [LABEL, np.zeros((4, 2)), np.zeros((4, 1))])
def test_differences_need_a_label_for_each_number(label: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"output has shape \(4, 3\) and the label \(4"):
        Tally(get_metric("mse")).add([(label, OUTPUT)])

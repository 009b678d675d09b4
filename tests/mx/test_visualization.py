"""The table of a network."""

from __future__ import annotations

import pytest

import tofu.mx as mx


def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc1")
    net = mx.sym.BatchNorm(mx.sym.Activation(net, act_type="relu", name="relu"), name="bn")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=2, name="fc2"), name="softmax")
    mx.viz.print_summary(net, {"data": (4, 5)})
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split(" ")[0]: line.split() for line in lines}
    assert rows["fc1"] == ["fc1", "(FullyConnected)", "(4,", "3)", "18", "data"]
    assert rows["relu"] == ["relu", "(Activation)", "(4,", "3)", "0", "fc1"]
    assert rows["bn"][4:] == ["6", "relu"]
    assert rows["fc2"][4:] == ["8", "bn"]
    assert rows["softmax"][4:] == ["0", "fc2"]
    assert "Total params: 32" in lines
    mx.viz.print_summary(net)
    assert "fc1 (FullyConnected)" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match="print_summary"):
        mx.viz.plot_network(net)

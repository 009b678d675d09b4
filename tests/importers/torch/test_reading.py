"""Symbols that are read: names, constants, tied tensors, what is refused, and weights back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

import tofu  # noqa: E402
from tests.importers.torch.agreement import by_tofu, fed, require_agreement, require_close  # noqa: E402
from tests.importers.torch.models import (  # noqa: E402
    Function,
    Gpt,
    Llama,
    Residual,
    VisionTransformer,
    normal,
    whole,
)
from tofu.cli.target import load_model  # noqa: E402

pytestmark = pytest.mark.torch
nn = torch.nn


def test_operations_have_the_names_of_modules() -> None:
    symbol, parameters = tofu.from_torch(Gpt(), (whole(24, 2, 8), whole(24, 2, 8)))
    names = {node.name for node in symbol.nodes}
    assert {"blocks.1.qkv", "blocks.1.ln_2", "blocks.0.scaled_dot_product_attention.softmax"} <= names
    assert {"words", "following"} == {*symbol.list_arguments()} - {*parameters}
    assert len(names) == len(symbol.nodes)


def test_tied_tensors_are_one_variable_under_the_first_name() -> None:
    _, parameters = tofu.from_torch(Gpt(), (whole(24, 2, 8), whole(24, 2, 8)))
    assert "tokens.weight" in parameters
    assert "head.weight" not in parameters


class DenseBlock(nn.Module):
    """Layers that each read the results of all earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3 + 2 * number, 2) for number in range(4)])

    def forward(self, x: Any) -> Any:
        results = [x]
        for layer in self.layers:
            results.append(torch.tanh(layer(torch.cat(results, -1))))
        return torch.cat(results, -1)


def test_concatenations_read_those_that_they_begin_with() -> None:
    symbol, _ = require_agreement(DenseBlock(), normal(4, 3), workers=(1, 2))
    names = {
        node.name for node in symbol.nodes if node.operator is not None and node.operator.name == "Concat"
    }
    graph = tofu.inference_graph(symbol, {"x": (4, 3)})
    joined = [operation for operation in graph.operations if operation.name in names]
    assert [len(operation.inputs) for operation in joined] == [2] * 4


class Difference(nn.Module):
    def forward(self, x: Any, pair: Any) -> Any:
        return x - 2 * pair[0] + 3 * pair[1]


def test_a_tensor_that_is_given_several_times_is_several_inputs() -> None:
    one = normal(3)
    symbol, _ = tofu.from_torch(Difference(), (one, [one, one]))
    assert symbol.list_arguments() == ["x", "pair_0", "pair_1"]


def test_constants_are_variables_once_and_are_not_trained() -> None:
    module = Llama()
    symbol, parameters = tofu.from_torch(module, (normal(2, 6, 16),))
    constants = {*parameters} - {*dict(module.named_parameters())}
    assert constants == {"cosines", "sines"}
    graph = tofu.training_graph(tofu.sym.MakeLoss(symbol), {"x": (2, 6, 16)})
    updated = {op.name for op in graph.operations if op.name.startswith("update(")}
    assert updated == {f"update({name})" for name, _ in module.named_parameters()}


def test_buffers_that_training_changes_in_another_way_are_refused() -> None:
    def counted(self: Any, x: Any) -> Any:
        self.seen.add_(x.detach().mean(0))
        return x * self.weight + self.seen

    module = Function(counted, seen=torch.zeros(3))
    with pytest.raises(tofu.GraphError, match=r"buffer 'seen' is changed in training by 'add.*module\.eval"):
        tofu.from_torch(module, (normal(4, 3),))


def test_buffers_that_no_output_depends_on_may_change() -> None:
    def counted(self: Any, x: Any) -> Any:
        self.seen.add_(1)
        return x * self.weight

    _, parameters = tofu.from_torch(Function(counted, seen=torch.zeros(3)), (normal(4, 3),))
    assert parameters.keys() == {"weight"}


def test_a_constant_of_equal_elements_is_a_number() -> None:
    module = Function(
        lambda self, x: x * self.weight * torch.full((4, 3), 2.0) + self.part, part=torch.tensor(0.5)
    )
    _, parameters = require_agreement(module, normal(4, 3))
    assert list(parameters) == ["weight"]


def test_a_frozen_parameter_is_not_trained() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    symbol, _ = tofu.from_torch(module, (normal(2, 3),))
    graph = tofu.training_graph(
        tofu.sym.SoftmaxOutput(symbol, name="softmax"), {"input": (2, 3), "softmax_label": (2,)}
    )
    updated = {op.name for op in graph.operations if op.name.startswith("update(")}
    assert updated == {"update(1.weight)", "update(1.bias)"}


def test_inputs_by_keyword_and_several_outputs() -> None:
    module = Function(lambda self, x, y: {"sum": x * self.weight + y, "product": x * y * self.weight})
    symbol, parameters = tofu.from_torch(module, (normal(2, 3), normal(2, 3)))
    assert len(symbol.list_outputs()) == 2

    class Two(nn.Module):
        def forward(self, first: Any, second: Any) -> Any:
            return first - 2 * second

    symbol, parameters = tofu.from_torch(Two(), {"second": normal(3), "first": normal(3)})
    assert {*symbol.list_arguments()} == {"first", "second"}
    found = by_tofu(symbol, parameters, {"first": np.full(3, 5, "float32"), "second": np.ones(3, "float32")})
    assert found.outputs[0].tolist() == [3, 3, 3]


def test_code_without_gradients_has_none() -> None:
    def scaled(self: Any, x: Any) -> Any:
        with torch.no_grad():
            scale = (self.weight * 2).sum()
        return x * self.weight * scale

    require_agreement(Function(scaled), normal(4, 3))
    require_agreement(nn.Sequential(Function(scaled), nn.BatchNorm1d(3)), normal(4, 3))


def test_running_statistics_that_are_more_than_passed_on_are_refused() -> None:
    def read(self: Any, x: Any) -> Any:
        return self.norm(self.norm(x)), self.norm.running_mean

    def fixed(self: Any, x: Any) -> Any:
        once = self.norm(x)
        return once + nn.functional.batch_norm(x, self.norm.running_mean, self.norm.running_var)

    def lost(self: Any, x: Any) -> Any:
        self.norm(x)
        return self.norm(x + 1)

    for forward, says in ((read, "read after a call"), (fixed, "read after a call"), (lost, "is not used")):
        module = Function(forward)
        module.norm = nn.BatchNorm1d(3)
        with pytest.raises(tofu.GraphError, match=f"running statistics .*{says}.* at norm"):
            tofu.from_torch(module, (normal(4, 3),))


def test_inference_after_training_has_neither_dropout_nor_statistics_of_the_batch() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    module[1].running_mean += 0.3
    x = normal(6, 3)
    symbol, parameters = tofu.from_torch(module.train(), (x,))
    graph = tofu.inference_graph(symbol, {"input": (6, 3)})
    with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers=2))) as executor:
        for name, value in {**parameters, **fed(symbol, parameters, (x,))}.items():
            executor.write(name, value)
        executor.run()
        found = executor.read(graph.tensors[graph.outputs[0]].name)
    require_close(module.eval()(x).detach().numpy(), found, "output")


def test_dropout_drops_and_scales() -> None:
    symbol, parameters = tofu.from_torch(nn.Dropout(0.25).train(), (torch.ones(64, 64),))
    (found,) = by_tofu(symbol, parameters, {"input": np.ones((64, 64), "float32")}).outputs
    values = np.unique(found)
    np.testing.assert_allclose(values, [0, 1 / 0.75], rtol=1e-6)
    assert abs((found == 0).mean() - 0.25) < 0.05


def test_symbols_are_written_and_read_back(tmp_path: Path) -> None:
    symbol, parameters = tofu.from_torch(Residual(), (normal(4, 3, 8, 8),))
    symbol.save(tmp_path / "network.json")
    read = tofu.sym.load(tmp_path / "network.json")
    feeds = {"image": normal(4, 3, 8, 8).numpy()}
    one, other = (by_tofu(each, parameters, feeds) for each in (symbol, read))
    assert np.array_equal(one.outputs[0], other.outputs[0])


def test_calls_without_a_description_are_listed_together() -> None:
    module = Function(lambda self, x: torch.special.bessel_j0(x * self.weight) + torch.special.i1(x))
    with pytest.raises(tofu.GraphError) as caught:
        tofu.from_torch(module, (normal(2, 3),))
    message = str(caught.value)
    assert "aten.special_bessel_j0.default at the module itself" in message
    assert "aten.special_i1.default" in message
    assert "converters" in message


def test_users_describe_operators() -> None:
    described = tofu.parse("def j0(x):\n    return lambda *i: cos(x[*i])")
    module = Function(lambda self, x: torch.special.bessel_j0(x * self.weight))
    name = "aten.special_bessel_j0.default"
    symbol, parameters = tofu.from_torch(module, (normal(2, 3),), converters={name: described})
    found = by_tofu(symbol, parameters, {"inputs_0": np.zeros((2, 3), "float32")})
    assert found.outputs[0].tolist() == [[1] * 3] * 2


@pytest.mark.parametrize(
    ("module", "inputs", "says"),
    [
        (Function(lambda self, x: x[x > 0] * 2), (torch.ones(3),), "depend"),
        (Function(lambda self, x: x[torch.randperm(3)]), (torch.ones(3),), "aten.randperm"),
        (Function(lambda self, x: torch.fft.fft(x).sinh().real), (torch.ones(3),), "complex"),
        (Function(lambda self, x: x * 2 if x.sum() > 0 else x), (torch.ones(3),), "torch.export cannot read"),
        (Function(lambda self, x: torch.ones(2)), (torch.ones(3),), "depends on inputs"),
        ("network", (), "expected a torch.nn.Module, found a value of str"),
    ],
    ids=["mask", "random", "complex", "branch", "constant", "text"],
)
def test_is_refused(module: Any, inputs: Any, says: str) -> None:
    with pytest.raises(tofu.TofuError, match=says):
        tofu.from_torch(module, inputs)


def test_exported_programs_are_refused_with_their_module_which_is_read() -> None:
    inputs = (torch.ones(2, 3),)
    program = torch.export.export(nn.Linear(3, 4), inputs)
    with pytest.raises(tofu.TofuError, match=r"found a value of ExportedProgram; give program\.module\(\)"):
        tofu.from_torch(program, inputs)
    _, parameters = tofu.from_torch(program.module(), inputs)
    assert parameters["weight"].shape == (4, 3)


def test_weights_go_back_after_all_are_checked() -> None:
    module = VisionTransformer()
    symbol, parameters = tofu.from_torch(module, (normal(4, 3, 8, 8),))
    assert parameters["scale"].shape == (1,)
    changed = {name: value + 1 for name, value in parameters.items()}
    before = {name: value.clone() for name, value in module.state_dict().items()}
    assert tofu.to_torch(module, symbol, changed) is module
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name] + 1)
    with pytest.raises(tofu.DataError, match=r"scale has shape \(2,\) in the parameters, but \(\)"):
        tofu.to_torch(module, symbol, {**parameters, "scale": np.zeros(2)})
    assert torch.equal(module.token, before["token"] + 1)
    with pytest.raises(tofu.DataError, match="neither the symbol nor the module"):
        tofu.to_torch(module, symbol, {**parameters, "tokn": np.zeros(2)})
    with pytest.raises(tofu.DataError, match="no value was given for scale"):
        tofu.to_torch(module, symbol, {n: v for n, v in parameters.items() if n != "scale"})


def test_modules_are_models_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(
        "import torch\nfrom torch import nn\n"
        "def scores():\n    return nn.Linear(6, 3), (torch.zeros(8, 6),)\n"
        "def alone():\n    return nn.Linear(6, 3)\n"
        "class Fit(nn.Linear):\n    def forward(self, x, y):\n"
        "        return nn.functional.mse_loss(super().forward(x), y)\n"
        "def loss():\n    return Fit(6, 3), (torch.zeros(8, 6), torch.zeros(8, 3))\n"
    )
    scores = load_model(f"{path}:scores", None, {})
    assert scores.shapes == {"input": (8, 6), "softmax_label": (8,)}
    assert {*scores.start} == {"weight", "bias"}
    loss = load_model(f"{path}:loss", None, {})
    assert (loss.data, loss.labels) == ({"x": (8, 6)}, {"y": (8, 3)})
    assert loss.training_graph().operations
    with pytest.raises(tofu.TofuError, match="return \\(module, example_inputs\\)"):
        load_model(f"{path}:alone", None, {})

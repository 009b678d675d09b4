"""The training step in PyTorch: python -m benchmarks.steps.torch_step FOLDER CORE FORM.

FORM is `plain`, `channels_last` for images with their channels innermost in memory, or `fused` for attention
in one function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.steps.serving import MOMENTUM, RATE, given, pin, serve

EPSILON = 2e-5


def main(folder: str, core: str, form: str) -> None:
    pin(int(core))
    import torch

    torch.set_num_threads(1)
    facts, tensors = given(folder)
    arrays = {name: torch.from_numpy(value) for name, value in tensors.items()}
    data, label = arrays.pop("data"), arrays.pop("softmax_label").long().flatten()
    if facts["family"] == "recurrent":
        network, parameters = recurrent(torch, facts, arrays)
    elif facts["family"] == "transformer":
        data = data.long()
        network, parameters = transformer(torch, facts, arrays, fused=form == "fused")
    else:
        memory = torch.channels_last if form == "channels_last" else torch.contiguous_format
        data = data.contiguous(memory_format=memory)
        network, parameters = residual(torch, arrays, memory)
    count = sum(each.numel() for each in parameters.values())
    serve(
        {
            "version": f"PyTorch {torch.__version__}",
            "code_for": torch.backends.cpu.get_cpu_capability(),
            "parameters": count,
            "threads": torch.get_num_threads(),
        },
        step_of(torch, network, parameters, data, label),
    )


def step_of(
    torch: Any, network: Any, parameters: Mapping[str, Any], data: Any, label: Any
) -> Callable[[], float]:
    """Return a training step on one batch, which gives its loss; on a card that waits for the step."""
    trained = [each for each in parameters.values() if each.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=RATE, momentum=MOMENTUM)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(data), label)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def recurrent(torch: Any, facts: dict[str, Any], arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """LSTM layers, the last output classified."""
    width = arrays["lstm_l0_i2h_weight"].shape[1]
    layers = torch.nn.LSTM(width, facts["hidden"], facts["layers"], batch_first=True)
    head = torch.nn.Linear(facts["hidden"], len(arrays["pred_weight"]))
    with torch.no_grad():
        for number in range(facts["layers"]):
            for source, target in (("i2h", "ih"), ("h2h", "hh")):
                for kind in ("weight", "bias"):
                    parameter = getattr(layers, f"{kind}_{target}_l{number}")
                    parameter.copy_(arrays[f"lstm_l{number}_{source}_{kind}"])
        head.weight.copy_(arrays["pred_weight"])
        head.bias.copy_(arrays["pred_bias"])
    parameters = {**dict(layers.named_parameters()), **dict(head.named_parameters(prefix="pred"))}
    return (lambda data: head(layers(data)[0][:, -1])), parameters


def transformer(
    torch: Any, facts: dict[str, Any], arrays: dict[str, Any], fused: bool
) -> tuple[Any, dict[str, Any]]:
    """Return the zoo's GPT-2 by the names of its parameters, its attention in one function if `fused`."""
    functional, heads = torch.nn.functional, facts["options"]["heads"]
    parameters = {name: array.clone().requires_grad_() for name, array in arrays.items()}
    layers = sorted({name.split("_")[0] for name in parameters if name.startswith("layer")})
    time = facts["options"]["steps"]
    later = torch.full((time, time), -torch.inf).triu(1)

    def product(data: Any, name: str) -> Any:
        return functional.linear(data, parameters[f"{name}_weight"], parameters[f"{name}_bias"])

    def normal(data: Any, name: str) -> Any:
        gamma, beta = parameters[f"{name}_gamma"], parameters[f"{name}_beta"]
        return functional.layer_norm(data, gamma.shape, gamma, beta, eps=1e-5)

    def attention(data: Any, name: str) -> Any:
        query, key, value = (
            product(data, f"{name}_{role}").unflatten(-1, (heads, -1)).transpose(1, 2)
            for role in ("query", "key", "value")
        )
        if fused:
            read = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query * query.shape[-1] ** -0.5 @ key.transpose(-1, -2) + later
            read = functional.softmax(scores, -1) @ value
        return product(read.transpose(1, 2).flatten(2), f"{name}_joint")

    def network(data: Any) -> Any:
        body = functional.embedding(data, parameters["embed_weight"]) + parameters["position_weight"]
        for name in layers:
            body = body + attention(normal(body, f"{name}_attention_norm"), f"{name}_attention")
            hidden = product(normal(body, f"{name}_feed_forward_norm"), f"{name}_hidden")
            body = body + product(functional.gelu(hidden), f"{name}_output")
        body = normal(body, "final_norm")
        return functional.linear(body.flatten(0, 1), parameters["embed_weight"])

    return network, parameters


def residual(torch: Any, arrays: dict[str, Any], memory: Any) -> tuple[Any, dict[str, Any]]:
    """Return the wide residual network of the zoo, by the names of its parameters."""
    functional = torch.nn.functional
    states = {name: arrays.pop(name) for name in list(arrays) if "_moving_" in name}
    parameters = {}
    for name, array in arrays.items():
        copy = array.contiguous(memory_format=memory) if array.ndim == 4 else array
        parameters[name] = copy.clone().requires_grad_(name != "bn_data_gamma")
    units = sorted({name.split("_conv1")[0] for name in parameters if "_conv1" in name})

    def normal(data: Any, name: str) -> Any:
        return functional.batch_norm(
            data,
            states[f"{name}_moving_mean"],
            states[f"{name}_moving_var"],
            parameters[f"{name}_gamma"],
            parameters[f"{name}_beta"],
            training=True,
            momentum=0.1,
            eps=EPSILON,
        )

    def convolution(data: Any, name: str, stride: int = 1) -> Any:
        weight = parameters[f"{name}_weight"]
        return functional.conv2d(data, weight, stride=stride, padding=weight.shape[-1] // 2)

    def unit(data: Any, name: str) -> Any:
        """Two convolutions, or three. Of three, the one in the middle has the stride."""
        layers = 3 if f"{name}_conv3_weight" in parameters else 2
        stride = 2 if name.endswith("unit1") and not name.startswith("stage1") else 1
        first = body = functional.relu(normal(data, f"{name}_bn1"))
        for layer in range(1, layers + 1):
            if layer > 1:
                body = functional.relu(normal(body, f"{name}_bn{layer}"))
            body = convolution(body, f"{name}_conv{layer}", stride if layer == layers - 1 else 1)
        shortcut = convolution(first, f"{name}_sc", stride) if f"{name}_sc_weight" in parameters else data
        return body + shortcut

    def network(data: Any) -> Any:
        if "bn0_gamma" in parameters:  # the stem for large images
            body = convolution(normal(data, "bn_data"), "conv0", 2)
            body = functional.max_pool2d(functional.relu(normal(body, "bn0")), 3, 2, 1)
        else:
            body = convolution(normal(data, "bn_data"), "conv0")
        for name in units:
            body = unit(body, name)
        body = functional.relu(normal(body, "bn1")).mean((2, 3))
        return functional.linear(body, parameters["fc1_weight"], parameters["fc1_bias"])

    return network, parameters


if __name__ == "__main__":
    main(*sys.argv[1:])

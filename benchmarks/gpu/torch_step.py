"""The training step in PyTorch on a card: python -m benchmarks.gpu.torch_step FOLDER FORM PRECISION.

FORM is `eager` or `compile`, PRECISION `float32` or `TF32`.
"""

from __future__ import annotations

import sys

from benchmarks.steps.serving import MOMENTUM, RATE, given, serve
from benchmarks.steps.torch_step import recurrent, residual


def main(folder: str, form: str, precision: str) -> None:
    import torch

    reduced = precision == "TF32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = reduced
    torch.backends.cudnn.benchmark = True
    facts, tensors = given(folder)
    arrays = {name: torch.from_numpy(value).cuda() for name, value in tensors.items()}
    data, label = arrays.pop("data"), arrays.pop("softmax_label").long()
    if facts["family"] == "recurrent":
        with torch.device("cuda"):
            network, parameters = recurrent(torch, facts, arrays)
    else:
        data = data.contiguous(memory_format=torch.channels_last)
        network, parameters = residual(torch, arrays, torch.channels_last)
    if form == "compile":
        network = torch.compile(network)
    trained = [each for each in parameters.values() if each.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=RATE, momentum=MOMENTUM)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(data), label)
        loss.backward()
        optimizer.step()
        return float(loss.item())  # waits for the card

    count = sum(each.numel() for each in parameters.values())
    serve(
        {"version": f"PyTorch {torch.__version__}", "parameters": count},
        step,
        memory=lambda: torch.cuda.max_memory_allocated(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The training step in PyTorch on a card: python -m benchmarks.gpu.torch_step FOLDER FORM PRECISION.

FORM is `eager` or `compile`, PRECISION `float32` or `TF32`.
"""

from __future__ import annotations

import sys

from benchmarks.steps.serving import given, serve
from benchmarks.steps.torch_step import recurrent, residual, step_of


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
    count = sum(each.numel() for each in parameters.values())
    serve(
        {"version": f"PyTorch {torch.__version__}", "parameters": count},
        step_of(torch, network, parameters, data, label),
        memory=lambda: torch.cuda.max_memory_allocated(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

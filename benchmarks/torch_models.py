"""Which models of torchvision and transformers can be read, planned and trained, and with which difference.

Run in an environment that has both, from the root of the checkout:

    python -m benchmarks.torch_models benchmarks/results/torch_models.json SECONDS [NAME ...]

For each model: whether it is read, how long that takes, the plan over 8 workers, and the largest difference
of parameters after one step of SGD of PyTorch, one worker and 8 workers from a step of PyTorch in float64,
relative to the largest step: rounding in float32. Parameters of two dimensions or more that begin with zeros
are drawn at random, since no gradient passes a matrix of zeros. Times are of the processor; that of the plan
includes its training graph. A model has SECONDS of the processor for all of that. PyTorch has one thread:
with more, its convolutions of many groups in float64 take a hundred times as long on a busy machine.
"""

from __future__ import annotations

import copy
import json
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tofu
from tofu.dataflow.optimizer import sgd

MISSING = torch.library.Library("torchvision", "DEF")
"""Operators that torchvision asks for when it is imported, and that PyTorch without CUDA does not have."""

for operator in ("nms", "qnms"):
    MISSING.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

torch.set_num_threads(1)

WORKERS = 8
RATE = 0.01
BATCH = 8


class Squared(torch.nn.Module):
    """A model with the mean square of its outputs for a loss."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Any:
        found = self.model(*inputs)
        if hasattr(found, "to_tuple"):
            found = found.to_tuple()
        if isinstance(found, dict):
            found = tuple(found.values())
        found = found if isinstance(found, tuple | list) else (found,)
        return sum(each.float().square().mean() for each in found if isinstance(each, torch.Tensor))


def vision() -> Iterator[tuple[str, Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]]]:
    """Yield torchvision's models, without weights."""
    import torchvision

    sizes = {"inception_v3": 80, "alexnet": 64}
    names = (
        "alexnet", "vgg11", "resnet18", "resnet50", "wide_resnet50_2", "densenet121", "squeezenet1_1",
        "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x1_0", "mnasnet0_5",
        "googlenet", "inception_v3", "convnext_tiny", "vit_b_16", "swin_t", "regnet_y_400mf",
    )  # fmt: skip
    for name in names:
        yield name, _vision(torchvision.models.get_model, name, sizes.get(name, 32))
    for name in ("fcn_resnet50", "deeplabv3_resnet50"):
        yield name, _vision(torchvision.models.get_model, name, 32, weights_backbone=None)


def _vision(make: Any, name: str, size: int, **options: Any) -> Any:
    def build() -> tuple[torch.nn.Module, tuple[Any, ...]]:
        if name in ("googlenet", "inception_v3"):
            options.update(init_weights=False, aux_logits=False)
        if name == "vit_b_16":
            options.update(image_size=size)
        return make(name, weights=None, num_classes=10, **options), (torch.randn(BATCH, 3, size, size),)

    return build


def language() -> Iterator[tuple[str, Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]]]:
    """Yield small models of transformers, made from configurations."""
    import transformers as t

    grouped = {"vocab_size": 100, "num_key_value_heads": 2, "use_cache": False}
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    words = torch.randint(0, 100, (BATCH, 16))
    text: dict[str, tuple[Any, Any]] = {
        "bert": (t.BertModel, t.BertConfig(vocab_size=100, **small)),
        "gpt2": (t.GPT2Model, t.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, use_cache=False)),
        "llama": (t.LlamaModel, t.LlamaConfig(**grouped, **small)),
        "mistral": (
            t.MistralModel,
            t.MistralConfig(**grouped, **small),
        ),
        "mixtral": (
            t.MixtralModel,
            t.MixtralConfig(
                **grouped, num_local_experts=4, **small
            ),
        ),
        "qwen2": (t.Qwen2Model, t.Qwen2Config(**grouped, **small)),
        "roberta": (t.RobertaModel, t.RobertaConfig(vocab_size=100, **small)),
        "distilbert": (
            t.DistilBertModel,
            t.DistilBertConfig(vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        ),
        "t5 encoder": (
            t.T5EncoderModel,
            t.T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        ),
        "opt": (
            t.OPTModel,
            t.OPTConfig(
                vocab_size=100, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
                word_embed_proj_dim=32, use_cache=False,
            ),
        ),
        "phi": (t.PhiModel, t.PhiConfig(vocab_size=100, use_cache=False, **small)),
        "gemma": (
            t.GemmaModel,
            t.GemmaConfig(vocab_size=100, num_key_value_heads=2, head_dim=8, use_cache=False, **small),
        ),
    }  # fmt: skip
    text["mixtral"][1]._experts_implementation = "batched_mm"
    for name, (kind, configuration) in text.items():
        yield name, _language(kind, configuration, (words,))
    image = t.ViTConfig(image_size=32, patch_size=8, **small)
    yield "vit", _language(t.ViTModel, image, (torch.randn(BATCH, 3, 32, 32),))
    whisper = t.WhisperConfig(
        d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=20,
        max_source_positions=16,
    )  # fmt: skip
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    yield "whisper encoder", _language(WhisperEncoder, whisper, (torch.randn(BATCH, 20, 32),))


WORDS = (
    "electra", "albert", "mpnet", "deberta", "deberta-v2", "mobilebert", "roformer", "convbert",
    "nystromformer", "layoutlm", "gpt_neo", "gpt_neox", "bloom", "mpt", "stablelm", "starcoder2", "olmo2",
    "phi3", "gemma2", "qwen3", "cohere", "granite", "nemotron", "glm", "modernbert", "persimmon", "biogpt",
    "openai-gpt", "mamba", "xlnet", "fnet", "llama4_text",
)  # fmt: skip
"""Further models of transformers that read words, by the types of their configurations."""

IMAGES = ("deit", "beit", "dinov2", "segformer", "vit_mae", "poolformer")
"""Further models of transformers that read images."""


def further() -> Iterator[tuple[str, Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]]]:
    """Yield models of transformers by the types of their configurations, made small where these say how."""
    for name in (*WORDS, *IMAGES):
        yield name, partial(_small, name)


def _small(name: str) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    import transformers

    configuration = transformers.AutoConfig.for_model(name)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 64, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 100}
    sizes |= {"pad_token_id": 0, "use_cache": False, "image_size": 32, "patch_size": 8}
    # a mask that is drawn at random would leave other patches in every step
    sizes |= {"mask_ratio": 0.0}
    for key, value in sizes.items():
        if hasattr(configuration, key) and not isinstance(getattr(configuration, key), list | tuple):
            setattr(configuration, key, value)
    inputs = torch.randint(0, 100, (BATCH, 16)) if name in WORDS else torch.randn(BATCH, 3, 32, 32)
    return transformers.AutoModel.from_config(configuration), (inputs,)


def _language(kind: Any, configuration: Any, inputs: tuple[Any, ...]) -> Any:
    return lambda: (kind(configuration), inputs)


def certain(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model in training mode without dropout, whose random numbers differ."""
    model.train()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and "drop" in name:
                setattr(module, name, 0.0)
        if (
            isinstance(module, torch.nn.modules.dropout._DropoutNd)
            or type(module).__name__ == "StochasticDepth"
        ):
            module.p = 0.0
    return model


def drawn(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model with random numbers where a parameter of several dimensions begins with zeros."""
    for value in model.parameters():
        if value.ndim > 1 and not value.any():
            torch.nn.init.normal_(value, std=0.02)
    return model


def step_of_torch(module: torch.nn.Module, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the parameters after one step."""
    trained = copy.deepcopy(module)
    optimizer = torch.optim.SGD(trained.parameters(), RATE)
    trained(*inputs).backward()
    optimizer.step()
    return {name: value.detach().numpy() for name, value in trained.named_parameters()}


def step_of_tofu(graph: Any, plan: Any, parameters: Any, feeds: Any) -> dict[str, Any]:
    """Return the parameters after one step of a plan."""
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        for name, value in {**parameters, **feeds}.items():
            executor.write(name, value)
        executor.write("learning_rate", [RATE])
        executor.run()
        return {name: executor.read(name) for name in parameters}


def differences(module: torch.nn.Module, after: dict[str, Any], found: dict[str, Any]) -> float:
    """Return the largest difference to an exact step, relative to the largest step of any parameter."""
    before = {name: value.detach().numpy() for name, value in module.named_parameters()}
    moved = max(np.abs(after[name] - before[name]).max() for name in after)
    if not moved:
        raise ValueError("no parameter moves: the outputs are zero")
    return max(
        float(np.abs(after[name] - found[name].reshape(after[name].shape)).max() / moved)
        for name in after
        if name in found
    )


def measure(build: Any, found: dict[str, Any]) -> None:
    """Read, plan and train one model, and note each result."""
    torch.manual_seed(0)
    model, inputs = build()
    module = Squared(certain(drawn(model)))
    start = time.process_time()
    symbol, parameters = tofu.from_torch(module, inputs)
    found |= {"read": True, "read_seconds": round(time.process_time() - start, 2)}
    arrays = {f"inputs_{number}": np.asarray(each.numpy(), "float32") for number, each in enumerate(inputs)}
    feeds = {name: arrays[name] for name in symbol.list_arguments() if name not in parameters}
    shapes = {name: value.shape for name, value in feeds.items()}
    start = time.process_time()
    graph = tofu.training_graph(symbol, shapes, sgd(momentum=0, rescale=1.0))
    plan = tofu.partition(graph, workers=WORKERS)
    found |= {
        "operations": len(graph.operations),
        "plan_seconds": round(time.process_time() - start, 2),
        "plan_bytes": plan.cost_bytes,
    }
    exact = step_of_torch(
        copy.deepcopy(module).double(),
        tuple(each.double() if each.is_floating_point() else each for each in inputs),
    )
    found["difference_pytorch"] = differences(module, exact, step_of_torch(module, inputs))
    one = step_of_tofu(graph, tofu.partition(graph, workers=1), parameters, feeds)
    found["difference_one_worker"] = differences(module, exact, one)
    several = step_of_tofu(graph, plan, parameters, feeds)
    found["difference_eight_workers"] = differences(module, exact, several)


def _out_of_time(*_: object) -> None:
    raise TimeoutError("out of time")


def twelve_layers() -> dict[str, Any]:
    """Return the processor's time to read a GPT-2 of 12 layers, the first time and again."""
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    words = torch.zeros(1, 128, dtype=torch.long)
    seconds = []
    for _ in range(2):
        start = time.process_time()
        symbol, parameters = tofu.from_torch(model, {"input_ids": words, "labels": words})
        seconds.append(round(time.process_time() - start, 2))
    return {
        "seconds": seconds,
        "nodes": len(symbol.nodes),
        "parameters": sum(v.size for v in parameters.values()),
    }


def main(path: str, limit: str, *only: str) -> None:
    signal.signal(signal.SIGPROF, _out_of_time)
    results: dict[str, Any] = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    libraries = {name: version(name) for name in ("torchvision", "transformers")}
    results["versions"] = {"torch": torch.__version__, "python": platform.python_version(), **libraries}
    models = results.setdefault("models", {})
    if not only or "twelve layers" in only:
        results["gpt2_of_12_layers"] = twelve_layers()
    for name, build in (*language(), *vision(), *further()):
        if only and name not in only:
            continue
        start = time.process_time()
        models[name] = {"read": False}
        signal.setitimer(signal.ITIMER_PROF, float(limit))
        try:
            measure(build, models[name])
        except Exception as error:
            lines = str(error).splitlines()
            models[name]["error"] = f"{type(error).__name__}: " + " ".join(lines[:4])[:600]
        signal.setitimer(signal.ITIMER_PROF, 0)
        models[name]["seconds"] = round(time.process_time() - start, 1)
        print(name, models[name], flush=True)
        Path(path).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

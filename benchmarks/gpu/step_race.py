"""Training steps of models, by several settings of Tofu and by PyTorch, each in its turn."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers import AGREEMENT, prepare
from tofu.errors import TofuError

from . import peer, training
from .bench_device import Stand
from .report import Results, line

WRESNET: dict[str, Any] = {"family": "residual", "output": "softmax", "options": {}}
RNN: dict[str, Any] = {"family": "recurrent", "output": "softmax"}
MODELS: dict[str, dict[str, Any]] = {
    "WResNet-50-4": {**WRESNET, "model": "wresnet-50-4", "batch": 32},
    "RNN-4-2K": {
        **RNN,
        "model": "rnn-4-2048",
        "batch": 64,
        "hidden": 2048,
        "layers": 4,
        "steps": 20,
        "options": {"steps": 20},
    },
}
SMALL_MODELS: dict[str, dict[str, Any]] = {
    "WResNet-10-1": {**WRESNET, "model": "wresnet-10-1", "batch": 8},
    "RNN-1-16": {**RNN, "model": "rnn-1-16", "batch": 8, "hidden": 16, "layers": 1, "options": {"steps": 2}},
}
TF32_AGREEMENT = 1e-2
"""How much the first losses may differ, relatively, where factors are rounded to ten bits."""

Turn = tuple[str, Callable[[], Results]]


@dataclass
class Outcome:
    """Results by model and contender, what was left out and what went wrong, each with its reason."""

    results: dict[str, Results] = field(default_factory=dict)
    omitted: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


def trained(stand: Stand, models: Mapping[str, dict[str, Any]], interpreter: str) -> Outcome:
    """Return all contenders of all models. A failure of one is kept, and the others continue."""
    outcome = Outcome()
    reason = "nothing is run" if stand.dry else peer.missing(interpreter)
    if reason is not None:
        outcome.omitted["PyTorch"] = reason
    for model, benchmark in models.items():
        results = outcome.results[model] = {}
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), benchmark)
            turns = [*_tofu(stand, folder), *(() if reason else _pytorch(interpreter, folder))]
            for title, run in turns:
                name = f"{model}, {title}"
                if stand.late:
                    outcome.omitted[name] = "out of time"
                    continue
                try:
                    results[title] = run()
                except (TofuError, SystemExit, OSError) as error:
                    outcome.wrong[name] = str(error)
                else:
                    print(line(name, results[title]), flush=True)
        outcome.wrong.update({f"{model}, {title}": text for title, text in disagreements(results).items()})
    return outcome


def _tofu(stand: Stand, folder: str) -> Iterator[Turn]:
    for setting in training.SETTINGS:
        yield setting.title, partial(training.step, stand, folder, setting)


def _pytorch(interpreter: str, folder: str) -> Iterator[Turn]:
    for tf32 in (False, True):
        for form in peer.FORMS:
            precision = training.precision(tf32)
            yield f"PyTorch, {form}, {precision}", partial(peer.step, interpreter, folder, form, precision)


def disagreements(results: Results) -> dict[str, str]:
    """Contenders whose first loss is not the first contender's: they do not compute the same step."""
    losses = {title: result["losses"][0] for title, result in results.items() if "losses" in result}
    found = {}
    for title, loss in losses.items():
        first, expected = next(iter(losses.items()))
        tolerance = TF32_AGREEMENT if "TF32" in title else AGREEMENT
        if not abs(loss - expected) <= tolerance * abs(expected):
            found[title] = f"a loss of {loss}, but {first} has {expected}"
    return found

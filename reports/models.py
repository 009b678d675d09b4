"""The models of the zoo: parameters, default batches and sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .. import models
from ..analyzer.indices.region import Shape
from ..models.families import FAMILIES

HEAD = """# Models

The model zoo, as `tofu models --markdown` writes it. `tofu.models.get(NAME, batch=, **options)` gives a
model: its symbol, and the shapes that it is fed. `tofu plan NAME` plans its training. Other depths, widths
and sizes are named in the same way.

```python
>>> import tofu
>>> model = tofu.models.get("gpt-12-768", batch=1)
>>> model.shapes, model.weight_count
({'data': (1, 1024), 'softmax_label': (1, 1024)}, 124439808)
>>> tiny = tofu.models.get("gpt-2-512", batch=1, steps=64, vocabulary=100)
>>> plan = tofu.partition(tiny.training_graph("adam"), workers=8)
>>> plan.strategies["layer0_attention_scores"]     # split over heads by all three steps
('b1', 'b1', 'b1')

```
"""

NOTES = """
The table counts the parameters that the optimizer is given. Counts are as published unless a note says
otherwise. Scales of batch normalisation that are fixed at one are counted, as in MXNet. Moving averages are
not.

- `alexnet` has its two halves merged into one: every convolution reads all channels. With the halves apart
  it would have 60,965,224 parameters.
- `resnet` is the second form, with normalisation before each convolution, as in MXNet's example. The
  published counts are those of the first form: 11,689,512, 21,797,672, 25,557,032, 44,549,160 and 60,192,808.
  The second form normalises the data, but not the shortcuts. With 18 and 34 layers its first unit has a
  projection.
- `wresnet` with 50, 101 or 152 layers multiplies the channels of every unit and leaves the stem as it is.
- `inception-v3` has no auxiliary classifier.
- `transformer-encoder` is BERT without segments and pooler. Its 12 layers of 768 have 85,054,464
  parameters. A label of -1 leaves a position out.
- `transformer` and `transformer-decoder` learn their positions. `transformer-decoder` takes `memory`, the
  encoder's output, as an input. A layer of 512 has 3,152,384 parameters in the encoder and 4,204,032 in the
  decoder.
- Transformers use the weights of their embedding to predict words. Their heads have 64 features unless
  `heads` says otherwise. `gpt` and `transformer-encoder` use the exact GELU, the others rectifiers.
- `width` scales the channels of a convolutional network, and `hidden` is the size of its fully connected
  layers.
- `word-rnn`, `char-crn`, `trn` and `e3d`, each in two sizes, `wresnet-610-14` and `wresnet-304-28` are the
  models of ParDNN's table 3. Sizes that the table does not state are chosen so that the number of parameters
  comes near it: the vocabulary of `word-rnn`, the width of `trn`, and the layers and window of `e3d`. `inner`
  is 4,096 in `trn`, for which the table has 4,098, and 8,192 in `trn-2`. The 52 layers of `trn` and the 48 of
  `trn-2` are in two halves, and `layers` counts those of one half.
- `nmt` is the recurrent translation model of FlexFlow's table 4: two layers of LSTM for each language,
  attention by products, a softmax at each of 40 steps. The table leaves the vocabulary open. `layers` counts
  those of one language.
- `char-crn` reads the letters of words, by convolutions of one to seven letters and two highway layers. The
  table has 0.23e9 parameters, but eight layers of 2,048 features alone have 0.26e9.
- `e3d` is the eidetic 3D LSTM: convolutions over frames, rows and columns, a memory that runs through all
  layers, and attention to all past states. Before frames are fed, they are cut into patches that are `patch`
  wide. Normalisation is over channels. Every step is fed a true window of frames and predicts the next frame.

This table has the models of ParDNN's table 3 at their default sizes: the operations of the training graph,
and the processor seconds to build symbol and graph on one core (`python -m benchmarks.deep_models`,
`benchmarks/results/deep_models.json`). *In the table* means the paper's. Its nodes are those of TensorFlow's
graph.

| model | parameters, 1e9 | in the table | operations | nodes in the table | seconds |
|---|---:|---:|---:|---:|---:|
| `word-rnn` | 0.351 | 0.34 | 8,824 | 10,578 | 0.8 |
| `word-rnn-2` | 1.156 | 1.18 | 31,231 | 39,074 | 1.9 |
| `char-crn` | 0.286 | 0.23 | 4,901 | 22,748 | 0.6 |
| `char-crn-2` | 1.092 | 1.09 | 18,893 | 86,663 | 1.1 |
| `wresnet-610-14` | 1.912 | 1.91 | 10,353 | 187,742 | 0.9 |
| `wresnet-304-28` | 3.776 | 3.77 | 5,151 | | 0.4 |
| `trn` | 2.041 | 1.99 | 8,482 | 204,792 | 0.8 |
| `trn-2` | 5.250 | 5.1 | 7,832 | 160,518 | 0.6 |
| `e3d` | 0.926 | 0.95 | 16,179 | 55,756 | 1.7 |
| `e3d-2` | 2.377 | 2.4 | 16,179 | 55,756 | 1.3 |

A graph of 250,000 operations takes 15 seconds. Seconds grow with operations to the power of 0.81 (`word-rnn`,
up to 64 layers of 100 steps), 1.06 (`trn`, up to 416 layers in each half) and 0.96 (`e3d`, up to 40 steps).
"""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model at its defaults."""

    name: str
    """The model's name."""

    parameters: int
    """The number of elements of all parameters."""

    batch: int
    """The default batch."""

    data: tuple[Shape, ...]
    """The shapes of its inputs except labels, for one sample."""

    options: tuple[str, ...]
    """The names of its options."""

    source: str
    """Where the model was published."""


def model_facts() -> Iterator[ModelFacts]:
    """Yield the facts of every model that the zoo lists."""
    for family in FAMILIES:
        for name in family.examples:
            model = models.get(name)
            data = tuple(shape[1:] for shape in model.data.values())
            yield ModelFacts(
                name, model.weight_count, model.batch, data, tuple(family.options)[1:], family.source
            )


def markdown(facts: Iterable[ModelFacts]) -> str:
    """Return the page `docs/models.md`."""
    rows = [
        "| model | parameters | batch | a sample | options | published in |",
        "|---|---:|---:|---|---|---|",
        *map(_row, facts),
    ]
    return HEAD + "\n" + "\n".join(rows) + "\n" + NOTES


def _row(facts: ModelFacts) -> str:
    cells = (
        f"`{facts.name}`",
        f"{facts.parameters:,}",
        str(facts.batch),
        " and ".join(" x ".join(map(str, shape)) for shape in facts.data),
        ", ".join(facts.options),
        facts.source,
    )
    return f"| {' | '.join(cells)} |"

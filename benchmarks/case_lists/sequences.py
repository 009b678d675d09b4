"""Sequences with lengths, and recurrent networks over them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .case import Case, Values, case

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def cases(values: Values) -> Iterator[Case]:
    yield from _lengths(values)
    yield from _networks(values)


def _lengths(values: Values) -> Iterator[Case]:
    for name in ("SequenceLast", "SequenceMask", "SequenceReverse"):
        for shape in ((4, 3), (4, 3, 2), (4, 3, 2, 2)):
            if name != "SequenceMask" and len(shape) == 2:
                continue
            yield case(name, data=values.signed(*shape))
            yield case(
                name,
                {"use_sequence_length": True, **({"value": 1.5} if name == "SequenceMask" else {})},
                fixed=("sequence_length",),
                data=values.signed(*shape),
                sequence_length=values.whole(1, 5, 3),
            )
    for name in ("SequenceLast", "SequenceMask"):
        yield case(
            name,
            {"use_sequence_length": True, "axis": 1},
            fixed=("sequence_length",),
            data=values.signed(3, 4, 2),
            sequence_length=values.whole(1, 5, 3),
        )


def _networks(values: Values) -> Iterator[Case]:
    steps, batch, inputs, hidden = 3, 2, 3, 2
    for mode, layers, both, states in product(GATES, (1, 2), (False, True), (False, True)):
        directions = 2 if both else 1
        rows = GATES[mode] * hidden
        width = [inputs] + [directions * hidden] * (layers - 1)
        numbers = directions * sum(rows * (w + hidden + 2) for w in width)
        shape = (layers * directions, batch, hidden)
        yield case(
            "RNN",
            {
                "state_size": hidden,
                "num_layers": layers,
                "mode": mode,
                "bidirectional": both,
                "state_outputs": states,
            },
            data=values.signed(steps, batch, inputs) * 0.5,
            parameters=values.signed(numbers) * 0.3,
            state=values.signed(*shape) * 0.5,
            **({"state_cell": values.signed(*shape) * 0.5} if mode == "lstm" else {}),
        )

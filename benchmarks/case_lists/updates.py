"""Optimizers: the new weight, and the states that MXNet overwrites."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, Values, case

STATES = {
    "sgd_update": (),
    "sgd_mom_update": ("mom",),
    "mp_sgd_update": ("weight32",),
    "mp_sgd_mom_update": ("mom", "weight32"),
    "adam_update": ("mean", "var"),
    "rmsprop_update": ("n",),
    "rmspropalex_update": ("n", "g", "delta"),
}
"""Operators and the states behind weight and gradient, in MXNet's order."""

OWN = {
    "sgd_mom_update": {"momentum": 0.8},
    "mp_sgd_mom_update": {"momentum": 0.8},
    "adam_update": {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
    "rmsprop_update": {"gamma1": 0.8, "epsilon": 1e-3, "clip_weights": 0.5},
    "rmspropalex_update": {"gamma1": 0.8, "gamma2": 0.7, "epsilon": 1e-3, "clip_weights": 0.5},
}


def cases(values: Values) -> Iterator[Case]:
    for name, states in STATES.items():
        for attributes in (
            {},
            {"wd": 0.1},
            {"rescale_grad": 0.5},
            {"clip_gradient": 0.3},
            {"wd": 0.2, "rescale_grad": 0.5, "clip_gradient": 0.2, **OWN.get(name, {})},
            OWN.get(name, {}),
        ):
            tensors = {"weight": values.signed(3, 4), "grad": values.signed(3, 4)}
            for state in states:
                unsigned = state in ("var", "n")
                tensors[state] = values.unit(3, 4) + 1 if unsigned else values.signed(3, 4) * 0.1
            if "weight32" in tensors:
                tensors["weight32"] = tensors["weight"]
            yield case(name, {"lr": 0.1, **attributes}, **tensors)

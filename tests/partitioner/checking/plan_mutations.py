"""Plans with one thing changed."""

from __future__ import annotations

from tofu.partitioner.explaining.explain import explain

from .mutated import Nothing, families


def states_other_bytes(subject, draw):
    amount = draw.choice([-4, 1, 4, 4096])
    subject.document["cost_bytes"] += amount
    subject.document["step_cost_bytes"][draw.randrange(len(subject.plan.factors))] += amount


def moves_bytes_to_another_step(subject, draw):
    subject.document["step_cost_bytes"][0] += 4
    subject.document["step_cost_bytes"][-1] -= 4


def claims_a_bound_above_its_cost(subject, draw):
    subject.document["lower_bound_bytes"] = subject.document["cost_bytes"] + draw.choice([1, 1000])


def is_for_another_graph(subject, draw):
    place = draw.randrange(64)
    text = subject.document["fingerprint"]
    subject.document["fingerprint"] = text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]


def leaves_something_out(subject, draw):
    entries = subject.document[draw.choice(["tensors", "operations"])]
    del entries[draw.choice(sorted(entries))]


def names_something_else(subject, draw):
    entries = subject.document[draw.choice(["tensors", "operations"])]
    entries["stranger"] = entries.pop(draw.choice(sorted(entries)))


def has_another_shape(subject, draw):
    entry = subject.document["tensors"][draw.choice(sorted(subject.document["tensors"]))]
    entry["shape"][draw.randrange(len(entry["shape"]))] += draw.choice([1, 8])


def is_for_other_workers(subject, draw):
    subject.document["workers"] = draw.choice([1, 2, 3, 5, 16])


def has_other_steps(subject, draw):
    subject.document["factors"] = [subject.plan.workers * 2]


def is_of_another_version(subject, draw):
    subject.document["version"] = draw.choice([0, 3, "1", None])


def splits_along_a_missing_dimension(subject, draw):
    entry = subject.document["tensors"][draw.choice(sorted(subject.document["tensors"]))]
    entry["dimensions"][draw.randrange(len(entry["dimensions"]))] = draw.choice([-1, 7, len(entry["shape"])])


def splits_along_a_missing_variable(subject, draw):
    choices = subject.document["operations"][draw.choice(sorted(subject.document["operations"]))]
    choices[draw.randrange(len(choices))] = draw.choice(["q", "", "0"])


def splits_too_small_an_extent(subject, draw):
    small = [e for e in subject.document["tensors"].values() if min(e["shape"]) < subject.plan.workers]
    if not small:
        raise Nothing
    entry = draw.choice(small)
    entry["dimensions"] = [entry["shape"].index(min(entry["shape"]))] * len(subject.plan.factors)


def chooses_otherwise_at_the_same_price(subject, draw):
    """Another legal choice, whose bytes differ from those that the plan still states."""
    what = draw.choice(["operator", "tensor"])
    names = subject.plan.strategies if what == "operator" else subject.plan.layouts
    explanation = explain(subject.graph, subject.plan, draw.choice(sorted(names)), what)
    dearer = [a for a in explanation.alternatives if a.held_bytes != subject.plan.cost_bytes]
    if not dearer:
        raise Nothing
    choice = list(draw.choice(dearer).choice)
    for name in explanation.decided_together:
        if what == "operator":
            subject.document["operations"][name] = choice
        else:
            subject.document["tensors"][name]["dimensions"] = choice


def parts_what_shares_storage(subject, draw):
    aliases = [t for t in subject.graph.tensors if t.alias is not None and len(t.shape) > 1]
    if not aliases:
        raise Nothing
    entry = subject.document["tensors"][draw.choice(aliases).name]
    entry["dimensions"] = [None if d is not None else 0 for d in entry["dimensions"]]


FAMILIES = families(globals())

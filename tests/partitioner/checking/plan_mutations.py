"""Plans with one thing changed."""

from __future__ import annotations

import dataclasses

import numpy as np

from tofu.analyzer.indices.region import to_region
from tofu.partitioner.explaining.explain import explain
from tofu.partitioner.layouts.forms import Partial, Parts, Spread, expand
from tofu.partitioner.layouts.partial import is_partial
from tofu.partitioner.layouts.step_split import split_operation
from tofu.partitioner.plans.form_document import encode_form
from tofu.programs.plain_regions import common, size
from tofu.tdl.ast import Reducer

from .mutated import Nothing, families, some


def states_other_bytes(subject, draw):
    amount = draw.choice([-4, 1, 4, 4096])
    subject.document["cost_bytes"] += amount
    steps = subject.document["step_cost_bytes"]
    steps[draw.randrange(len(steps))] += amount


def moves_bytes_to_another_step(subject, draw):
    if len(subject.document["step_cost_bytes"]) < 2:
        raise Nothing
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
    entry = some(draw, [e for e in subject.document["tensors"].values() if e["shape"]])
    entry["shape"][draw.randrange(len(entry["shape"]))] += draw.choice([1, 8])


def is_for_other_workers(subject, draw):
    subject.document["workers"] = draw.choice([n for n in (1, 2, 3, 5, 16) if n != subject.plan.workers])


def has_other_steps(subject, draw):
    subject.document["factors"] = [subject.plan.workers * 2]


def is_of_another_version(subject, draw):
    subject.document["version"] = draw.choice([0, 3, "1", None])


def splits_along(form, label, draw):
    """Change one label of a form in a plan file."""
    match form:
        case {"cut": _}:
            form["cut"] = label
        case {"spread": [*pairs]} if pairs:
            draw.choice(pairs)[0] = label
        case [*entries] if entries:
            form[draw.randrange(len(entries))] = label
        case _:
            raise Nothing


def form_key(subject):
    return "dimensions" if subject.document["version"] == 1 else "form"


def splits_along_a_missing_dimension(subject, draw):
    entry = subject.document["tensors"][draw.choice(sorted(subject.document["tensors"]))]
    splits_along(entry[form_key(subject)], draw.choice([-1, 7, len(entry["shape"])]), draw)


def splits_along_a_missing_variable(subject, draw):
    forms = subject.document["operations"]
    splits_along(forms[draw.choice(sorted(forms))], draw.choice(["q", "", "0"]), draw)


def splits_too_small_an_extent(subject, draw):
    tensors = subject.document["tensors"].values()
    entry = some(draw, [e for e in tensors if e["shape"] and min(e["shape"]) < subject.plan.workers])
    entry[form_key(subject)] = [entry["shape"].index(min(entry["shape"]))] * len(subject.plan.factors)


def chooses_otherwise_at_the_same_price(subject, draw):
    """Another legal choice, whose bytes differ from those that the plan still states."""
    if subject.document["version"] != 1:
        raise Nothing
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
    tensor = some(draw, [t for t in subject.graph.tensors if t.alias is not None])
    entry = subject.document["tensors"][tensor.name]
    workers = subject.plan.workers
    whole = Spread(((None, workers),), tuple(range(workers)))
    if sorted(holds(subject, tensor)) == sorted(held_parts(subject, whole, tensor.shape)):
        raise Nothing
    write(subject, entry, encode_form(whole))


def write(subject, entry, form):
    """Give a tensor's entry another form, in a file of version 2."""
    document = subject.document
    if document["version"] == 1:
        document["version"] = 2
        for each in document["tensors"].values():
            each["form"] = each.pop("dimensions")
    entry["form"] = form


def held_parts(subject, form, shape):
    """The (worker, region, term) of a tensor's form."""
    whole = tuple((0, extent) for extent in shape)
    return parts_of(form, whole, range(len(shape)), subject.plan.factors)


def parts_of(form, whole, labels, factors):
    found = expand(form, np.array(whole, np.int64).reshape(-1, 2), list(labels).index, factors)
    regions = map(to_region, found.boxes)
    return list(zip(found.workers.tolist(), regions, found.term.tolist(), strict=True))


def tasks_of(subject, operation):
    """The (worker, box, term) of an operation's tasks."""
    whole = [(0, extent) for extent in operation.bound.extents.values()]
    form = subject.plan.strategies[operation.name]
    return parts_of(form, whole, operation.bound.variables, subject.plan.factors)


def listed(parts):
    """Parts as a plan file lists them."""
    terms = any(term for _, _, term in parts)
    return {"parts": [[worker, region, *([term] if terms else [])] for worker, region, term in parts]}


def alone(parts):
    """The places of parts that have elements and no replica."""
    boxes = [(region, term) for _, region, term in parts]
    return [place for place, box in enumerate(boxes) if boxes.count(box) == 1 and size(box[0])]


def some_tensor(subject, draw, fits):
    return some(draw, [t for t in subject.graph.tensors if t.alias is None and fits(t)])


def holds(subject, tensor):
    return held_parts(subject, subject.plan.layouts[tensor.name].form, tensor.shape)


def is_overwritten(subject, tensor):
    return tensor.index in {other.alias for other in subject.graph.tensors}


def holds_a_part_less(subject, draw):
    tensor = some_tensor(subject, draw, lambda t: not is_overwritten(subject, t) and alone(holds(subject, t)))
    parts = holds(subject, tensor)
    del parts[draw.choice(alone(parts))]
    write(subject, subject.document["tensors"][tensor.name], listed(parts))


def holds_a_part_twice(subject, draw):
    tensor = some_tensor(subject, draw, lambda t: not is_overwritten(subject, t) and holds(subject, t))
    parts = holds(subject, tensor)
    write(subject, subject.document["tensors"][tensor.name], listed([*parts, draw.choice(parts)]))


def reduces_on_the_way_without_a_part(subject, draw):
    """A first hop of a reduction that misses some elements."""

    def between(tensor):
        via = subject.plan.layouts[tensor.name].via
        return [] if via is None else held_parts(subject, via, tensor.shape)

    tensor = some_tensor(subject, draw, lambda t: not is_overwritten(subject, t) and alone(between(t)))
    parts = between(tensor)
    del parts[draw.choice(alone(parts))]
    subject.document["tensors"][tensor.name]["via"] = listed(parts)


def holds_terms_with_a_gap(subject, draw):
    tensor = some_tensor(subject, draw, lambda t: max((n for _, _, n in holds(subject, t)), default=0))
    parts = holds(subject, tensor)
    missing = draw.randrange(max(term for _, _, term in parts) + 1)
    parts = [(worker, region, term + (term >= missing)) for worker, region, term in parts]
    write(subject, subject.document["tensors"][tensor.name], listed(parts))


def leaves_a_lasting_tensor_in_terms(subject, draw):
    """A tensor and those that overwrite it, or are overwritten by it, in terms."""
    tensors, document = subject.graph.tensors, subject.document["tensors"]
    tensor = some_tensor(subject, draw, lambda t: t.role.persistent)
    group = {tensor.index}
    for other in tensors:
        if other.alias in group:
            group.add(other.index)
    form = in_terms(draw, subject.plan.workers, 2)
    for index in group:
        write(subject, document[tensors[index].name], encode_form(form))


def in_terms(draw, workers, terms):
    return Spread(((Partial(), terms),), tuple(draw.randrange(workers) for _ in range(terms)))


def lists_tasks(subject, operation, parts):
    """Give an operation other parts, in a file of version 2."""
    any_entry = next(iter(subject.document["tensors"].values()))
    write(subject, any_entry, any_entry[form_key(subject)])
    subject.document["operations"][operation.name] = listed(parts)


def some_tasks(subject, draw, fits):
    """An operation and its tasks that fit."""
    every = [(operation, tasks_of(subject, operation)) for operation in subject.graph.operations]
    operation, tasks = some(draw, [(each, tasks) for each, tasks in every if fits(tasks)])
    return operation, list(tasks)


def leaves_out_a_task(subject, draw):
    operation, tasks = some_tasks(subject, draw, alone)
    del tasks[draw.choice(alone(tasks))]
    lists_tasks(subject, operation, tasks)


def leaves_out_all_tasks(subject, draw):
    operation, _ = some_tasks(subject, draw, alone)
    lists_tasks(subject, operation, [])


def has_a_task_twice(subject, draw):
    operation, tasks = some_tasks(subject, draw, len)
    lists_tasks(subject, operation, [*tasks, draw.choice(tasks)])


def has_tasks_that_overlap(subject, draw):
    """A task that begins earlier than it should, where another ends."""
    operation, tasks = some_tasks(
        subject, draw, lambda tasks: [1 for _, box, _ in tasks for lower, _ in box if lower]
    )
    place, axis = draw.choice([(p, a) for p, t in enumerate(tasks) for a, (low, _) in enumerate(t[1]) if low])
    worker, box, term = tasks[place]
    box = (*box[:axis], (box[axis][0] - 1, box[axis][1]), *box[axis + 1 :])
    tasks[place] = worker, box, term
    lists_tasks(subject, operation, tasks)


def reads(subject, only=lambda operation, name, tensor: True):
    """(operation, parameter, tensor) of everything that is read."""
    return [
        (operation, name, subject.graph.tensors[operation.inputs[place]])
        for operation in subject.graph.operations
        for place, name in operation.bound.read_places
        if only(operation, name, subject.graph.tensors[operation.inputs[place]])
    ]


def version_read(subject, operation, tensor):
    """The form of the version that an operation reads."""
    copies = subject.plan.copies.get(tensor.name, ())
    copied = [copy.form for copy in copies if operation.name in copy.readers]
    return copied[0] if copied else subject.plan.layouts[tensor.name].form


def computes_terms_of_what_has_none(subject, draw):
    """An operation in terms, though nothing that it reads has any."""
    whole = [
        operation
        for operation in subject.graph.operations
        if not any(
            is_partial(version_read(subject, operation, subject.graph.tensors[tensor]))
            for tensor in operation.inputs
        )
    ]
    operation = some(draw, whole)
    lists_tasks(subject, operation, [])
    form = in_terms(draw, subject.plan.workers, 2)
    subject.document["operations"][operation.name] = encode_form(form)


def terms_made(subject, operation):
    """How many terms an operation makes of its outputs."""
    tasks = split_operation(operation.bound, subject.plan.strategies[operation.name], subject.plan.factors)
    return tasks.terms


def reads_terms_where_it_is_not_linear(subject, draw):
    """A sum that is not reduced, and one of its readers in terms, which is not linear in it."""
    maker = {tensor: each for each in subject.graph.operations for tensor in each.outputs}

    def fits(operation, name, tensor):
        partial = tensor.index in maker and terms_made(subject, maker[tensor.index]) > 1
        copied = any(operation.name in copy.readers for copy in subject.plan.copies.get(tensor.name, ()))
        lasts = tensor.role.persistent or tensor.index in subject.graph.outputs or tensor.alias is not None
        return partial and not copied and not lasts and not operation.bound.linear_in([name])

    operation, _, tensor = some(draw, reads(subject, fits))
    terms = terms_made(subject, maker[tensor.index])
    form = encode_form(in_terms(draw, subject.plan.workers, terms))
    write(subject, subject.document["tensors"][tensor.name], form)
    subject.document["operations"][operation.name] = form


def reads_terms_of_a_greatest_value(subject, draw):
    """Terms of a tensor that Max combines, read by an operation that is linear in it."""
    maker = {tensor: each for each in subject.graph.operations for tensor in each.outputs}

    def along(tensor):
        bound = maker[tensor.index].bound
        return [v for v, n in bound.extents.items() if bound.reducer(v) is Reducer.MAX and n > 1]

    def fits(operation, name, tensor):
        copied = any(operation.name in copy.readers for copy in subject.plan.copies.get(tensor.name, ()))
        made = tensor.index in maker and not is_partial(subject.plan.strategies[maker[tensor.index].name])
        return made and bool(along(tensor)) and not copied and operation.bound.linear_in([name])

    operation, _, tensor = some(draw, reads(subject, fits))
    made, workers = maker[tensor.index], subject.plan.workers
    write(subject, subject.document["tensors"][tensor.name], encode_form(in_terms(draw, workers, 2)))
    subject.document["operations"][operation.name] = encode_form(in_terms(draw, workers, 2))
    cut = Spread(((along(tensor)[0], 2),), (0, workers - 1))
    subject.document["operations"][made.name] = encode_form(cut)


def reads_fewer_terms_than_there_are(subject, draw):
    def fits(operation, name, tensor):
        return is_partial(version_read(subject, operation, tensor))

    operation, _, _ = some(draw, reads(subject, fits))
    subject.document["operations"][operation.name] = encode_form(Spread((), (0,)))


def turned(subject, first, then):
    """Run an operation just before another, in an order that is otherwise the plan's."""
    if subject.document["version"] == 1:
        lists_tasks(subject, first, tasks_of(subject, first))
    names = subject.document.get("order", [operation.name for operation in subject.graph.operations])
    order = [name for name in names if name != then.name]
    order.insert(order.index(first.name), then.name)
    subject.document["order"] = order


def reads_before_it_is_made(subject, draw):
    maker = {tensor: each for each in subject.graph.operations for tensor in each.outputs}
    reader, _, tensor = some(draw, reads(subject, lambda operation, name, tensor: tensor.index in maker))
    turned(subject, maker[tensor.index], reader)


def overwrites_before_it_is_read(subject, draw):
    updates = {
        subject.graph.tensors[tensor].alias: each
        for each in subject.graph.operations
        for tensor in each.outputs
        if subject.graph.tensors[tensor].alias is not None
    }
    reader, _, tensor = some(
        draw,
        reads(subject, lambda o, name, tensor: tensor.index in updates and updates[tensor.index] != o),
    )
    turned(subject, reader, updates[tensor.index])


def runs_an_operation_twice(subject, draw):
    operation = some(draw, subject.graph.operations)
    lists_tasks(subject, operation, tasks_of(subject, operation))
    names = subject.document.get("order", [operation.name for operation in subject.graph.operations])
    subject.document["order"] = [*names, draw.choice(names)]


def runs_an_operation_never(subject, draw):
    runs_an_operation_twice(subject, draw)
    del subject.document["order"][draw.randrange(len(subject.graph.operations)) :]


def some_copy(subject, draw, fits=lambda name, number, copy: True):
    """(tensor, number, copy) of a copy in the document."""
    copies = subject.document.get("copies", {})
    return some(
        draw,
        [(n, i, copy) for n, each in copies.items() for i, copy in enumerate(each, 1) if fits(n, i, copy)],
    )


def count_again(subject, copies):
    """The bytes that the plan with other copies moves."""
    return dataclasses.replace(subject.plan, copies=copies).count(subject.graph)[-1]


def makes_a_copy_for_nothing(subject, draw):
    some_copy(subject, draw)[2]["readers"] = []


def makes_a_copy_for_a_reader_less(subject, draw):
    """A reader that takes the home instead, at other bytes than the plan states."""
    name, number, entry = some_copy(subject, draw, lambda name, number, copy: len(copy["readers"]) > 1)
    del entry["readers"][draw.randrange(len(entry["readers"]))]
    listed = list(subject.plan.copies[name])
    listed[number - 1] = dataclasses.replace(listed[number - 1], readers=tuple(entry["readers"]))
    if count_again(subject, {**subject.plan.copies, name: listed}) == subject.plan.cost_bytes:
        raise Nothing


def makes_a_copy_for_a_reader_twice(subject, draw):
    _, _, entry = some_copy(subject, draw)
    entry["readers"] = [*entry["readers"], draw.choice(entry["readers"])]


def makes_a_copy_for_a_reader_of_another(subject, draw):
    name, number, entry = some_copy(subject, draw, lambda name, number, copy: number > 1)
    entry["readers"] = [*entry["readers"], subject.document["copies"][name][number - 2]["readers"][0]]


def makes_a_copy_for_a_stranger(subject, draw):
    """An operation that does not read the tensor, or does not exist."""
    name, _, entry = some_copy(subject, draw)
    tensor = next(tensor.index for tensor in subject.graph.tensors if tensor.name == name)
    strangers = [each.name for each in subject.graph.operations if tensor not in each.inputs]
    entry["readers"] = [*entry["readers"], draw.choice([*strangers, "stranger"])]


def copies_what_there_is_not(subject, draw):
    name, _, _ = some_copy(subject, draw)
    subject.document["copies"]["stranger"] = subject.document["copies"][name]


def copies_a_later_version(subject, draw):
    _, number, entry = some_copy(subject, draw)
    entry["source"] = number + draw.choice([0, 1])


def copies_before_its_source_is_made(subject, draw):
    """The readers of a copy and of the copy that it is made from, exchanged."""
    name, _, entry = some_copy(subject, draw, lambda name, number, copy: copy["source"] > 0)
    other = subject.document["copies"][name][entry["source"] - 1]
    entry["readers"], other["readers"] = other["readers"], entry["readers"]


def copies_less_than_is_read(subject, draw):
    """A copy without a part that an operation reads; the stated bytes are those of this copy."""
    fitting = []
    for tensor in subject.graph.tensors:
        for number, entry in enumerate(subject.plan.copies.get(tensor.name, ())):
            parts = held_parts(subject, entry.form, tensor.shape)
            for operation, name, read in reads(subject):
                if read is tensor and operation.name in entry.readers and max(n for _, _, n in parts) == 0:
                    boxes = [box for _, box, _ in tasks_of(subject, operation)]
                    regions = list(map(to_region, operation.bound.input_regions(np.array(boxes))[name]))
                    fitting += [
                        (tensor.name, number, parts, place)
                        for place in alone(parts)
                        if any(size(common(region, parts[place][1])) for region in regions)
                    ]
    name, number, parts, place = some(draw, fitting)
    subject.document["copies"][name][number]["form"] = listed([*parts[:place], *parts[place + 1 :]])
    copies = list(subject.plan.copies[name])
    left = Parts(tuple((worker, region) for worker, region, _ in [*parts[:place], *parts[place + 1 :]]))
    copies[number] = dataclasses.replace(copies[number], form=left)
    states(subject, count_again(subject, {**subject.plan.copies, name: copies}))


def states(subject, total):
    subject.document["cost_bytes"] = total
    subject.document["step_cost_bytes"] = [total]


def states_no_bytes_for_a_copy(subject, draw):
    """The bytes that the plan would move if the readers of a copy took the home."""
    name, _, _ = some_copy(subject, draw)
    total = count_again(subject, {k: v for k, v in subject.plan.copies.items() if k != name})
    if total == subject.plan.cost_bytes:
        raise Nothing
    states(subject, total)


FAMILIES = families(globals())

"""From a graph and a strategy to a plan: AutoDist's kernels (section 2.3) as layouts.

    base            data parallelism, or any plan: its forms stay, but for variables and their updates
    all-reduce      whoever reads a part in the base holds and updates it, with its states and its gradient:
                    partial results are reduced in two hops, or in two levels
    server          they are on one worker, which alone updates the part; readers fetch it
    proxy           a copy where the part is read, which the operations of both passes read
    factors         whoever holds a part computes all of its gradient, and fetches what that needs
    parts           a variable has the parts of its synchronisers; operations that read it are not split

A variable that a base has in one place alone, where alone it is read, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise

from ....analyzer.indices.region import Region
from ....analyzer.strategies.discover import Kind
from ....dataflow.graph import Graph, Operation, Role
from ....dataflow.rewrites.arrivals import Arriving, arriving
from ....dataflow.validate import validate
from ....errors import PlanError
from ....support.wording import counted
from ...costs.movement import Movements
from ...layouts.copies import Copy
from ...layouts.forms import Form
from ...layouts.step_split import Layout
from ...layouts.two_hops import in_two_hops
from ...layouts.uses import Use, touched
from ...plans.plan import Plan, require_graph, require_workers
from ..flexflow.soap import Soap, find_soap
from .checks import check_strategy
from .data_parallel import data_parallel
from .gradient_groups import collected_together
from .part_rewrites import held_parts
from .piece_forms import TwoLevels, computed_form, copy_forms, home_form, stacked_form, two_levels
from .pieces import Held, SyncPiece, cut_in_pieces, is_alone
from .rewriting import rewrite
from .rewritten_base import check_base_rewrites, rewritten_base
from .rows import RowForms, masked_forms, row_choices
from .strategy import AllReduce, Synchronisation, SyncStrategy
from .uneven import with_shares
from .variables import TrainedVariable, find_variables

METHOD = "sync"


def compile_strategy(graph: Graph, workers: int, strategy: SyncStrategy, base: Plan | None = None) -> Plan:
    """Return the plan of a strategy on top of a base; None for data parallelism.

    If the strategy encodes or delays gradients, the plan is for the graph that has these: `plan.graph`.
    Raises PlanError naming the variable that has no synchronisation or one that does not fit, for a base of
    another graph or number of workers, and for a batch with fewer samples than there are workers.
    """
    require_graph(graph)
    require_workers(workers)
    validate(graph)
    variables = {each.tensor.name: each for each in find_variables(graph)}
    check_strategy(variables, workers, strategy)
    rewrites = strategy.rewrites
    if base is not None:
        _check_base(graph, workers, base)
        check_base_rewrites(graph, base, rewrites)
    before = graph
    if rewrites:
        graph = rewrite(graph, workers, strategy)
        variables = {each.tensor.name: each for each in find_variables(graph)}
    groups = strategy.groups(workers)
    if base is None:
        if strategy.base is not None:
            raise PlanError(
                f"the strategy has the base {strategy.base!r}; call tofu.sync.compile, or give its plan"
            )
        started = data_parallel(graph, workers, tuple(worker for group in groups for worker in group))
    else:
        started = rewritten_base(base, before, graph, rewrites) if rewrites else base
    made = _Synchronised(graph, started, groups)
    if base is not None:
        made.check_replicas({each.index for variable in variables.values() for each in variable.updates})
    for name, variable in variables.items():
        held = made.held(variable)
        read = made.read(variable)
        how = strategy.variables[name]
        if base is not None and not how.by_arrival and is_alone(variable.tensor.shape, read, held):
            if name not in rewrites:
                continue
            how = Synchronisation((AllReduce(),))
        pieces = cut_in_pieces(name, variable.tensor.shape, how, read, held)
        made.synchronise(variable, pieces, how.factors or how.rewrite.sums_where_held)
        if how.part_rewrites:
            made.hold_parts(variable, how, pieces)
        if how.by_arrival:
            made.receive_one_by_one(variable, pieces)
        if how.masked:
            made.look_up_where_held(variable, pieces)
        elif how.rows:
            made.may_exchange_rows(variable, pieces)
    order = made.updates_last(variables.values()) if strategy.updates_last else started.written_order
    together = collected_together(graph, strategy) if strategy.together else ()
    plan = replace(made.plan_by_rows(order), rewrites=rewrites, together=together)
    if strategy.shares is None:
        return plan
    return with_shares(graph, plan, _reduced(graph, variables.values(), strategy), strategy.shares)


def _reduced(graph: Graph, variables: Iterable[TrainedVariable], strategy: SyncStrategy) -> list[str]:
    """Return the gradients of all variables that are reduced as a whole."""
    gradients = {tensor.name for tensor in graph.tensors if tensor.role is Role.GRADIENT}
    return [
        name
        for each in variables
        if all(isinstance(part, AllReduce) for part in strategy.variables[each.tensor.name].parts)
        for name in each.together
        if name in gradients
    ]


def _check_base(graph: Graph, workers: int, base: Plan) -> None:
    if not isinstance(base, Plan):
        raise PlanError(f"the base is {str(base)[:60]!r}; give a plan")
    if base.workers != workers:
        raise PlanError(f"the base is for {counted(base.workers, 'worker')}, not {workers}; make them equal")
    base.check_forms(graph)


class _Synchronised:
    """A plan whose variables are synchronised one after the other."""

    def __init__(self, graph: Graph, base: Plan, groups: Sequence[Sequence[int]]) -> None:
        self._graph = graph
        self._base = base
        self._groups = groups
        self._movements = Movements(base.workers, base.factors)
        self._operations: dict[str, Form] = dict(base.strategies)
        self._layouts = dict(base.layouts)
        self._copies = {name: list(copies) for name, copies in base.copies.items()}
        self._named = {each.name: each for each in graph.operations}
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._readers: dict[int, list[str]] = {}
        for operation in graph.operations:
            for tensor in dict.fromkeys(operation.inputs):
                self._readers.setdefault(tensor, []).append(operation.name)
        order = base.written_order or tuple(self._named)
        self._turn = {name: turn for turn, name in enumerate(order)}
        self._index = {tensor.name: tensor.index for tensor in graph.tensors}
        self._choices: list[RowForms] = []

    def updates_last(self, variables: Iterable[TrainedVariable]) -> tuple[str, ...]:
        """Return all operations in the order of the base, those that update variables at the end.

        Operations that follow from these, such as the pulls of values that arrivals made, and an operation
        that overwrites a tensor that these read, such as a count of updates, are at the end as well.
        """
        updates = {update.name for each in variables for update in each.updates}
        for operation in self._graph.operations:
            makers = {self._maker[tensor].name for tensor in operation.inputs if tensor in self._maker}
            if not makers.isdisjoint(updates):
                updates.add(operation.name)
        read = {tensor for name in updates for tensor in self._named[name].inputs}
        updates |= {
            self._maker[tensor.index].name
            for tensor in self._graph.tensors
            if tensor.alias in read and tensor.index in self._maker
        }
        return tuple(sorted(self._turn, key=lambda name: (name in updates, self._turn[name])))

    def check_replicas(self, updates: Set[int]) -> None:
        """Raise PlanError if the base runs an operation, updates excepted, on other workers than replicas."""
        replicas = {worker for group in self._groups for worker in group}
        for operation in self._graph.operations:
            tasks = self._movements.operator(operation.bound, self._operations[operation.name])
            others = () if operation.index in updates else sorted({*tasks.workers} - replicas)
            if others:
                raise PlanError(
                    f"the base runs operation {operation.name!r} on worker {others[0]}, but the replicas are "
                    f"{sorted(replicas)}; list it among the replicas, or choose another base"
                )

    def held(self, variable: TrainedVariable) -> list[Held]:
        """Return who holds which regions of a variable in the base."""
        held = self._movements.layout(self._base.layouts[variable.tensor.name])
        return list(zip(held.workers, held.regions, strict=True))

    def read(self, variable: TrainedVariable) -> list[Held]:
        """Return who reads which regions of a variable, its updates excepted."""
        found: dict[Held, None] = {}
        for reader in map(self._named.__getitem__, variable.readers):
            regions = self._movements.operator(reader.bound, self._operations[reader.name])
            for position, name in reader.bound.read_places:
                if reader.inputs[position] == variable.tensor.index:
                    needed = regions.inputs[name]
                    found.update(dict.fromkeys(zip(needed.workers, needed.regions, strict=True)))
        return list(found)

    def synchronise(self, variable: TrainedVariable, pieces: Sequence[SyncPiece], where_held: bool) -> None:
        """Hold, update and copy a variable as its pieces say, with its gradient in terms or `where_held`."""
        tensor, base = variable.tensor, self._base
        whole: Region = tuple((0, extent) for extent in tensor.shape)
        home = home_form(pieces, whole, base.workers, base.factors)
        layout = in_two_hops(Layout(tensor.shape, home, base.factors))
        for name in variable.together:
            self._layouts[name] = layout
            self._copies.pop(name, None)
        for update in variable.updates:
            self._operations[update.name] = self._computed(variable, update, [0], pieces)
        kept = copy_forms(pieces, whole, base.workers, base.factors)
        if kept and variable.readers:
            self._copies[tensor.name] = self._copies_of(kept, variable.readers)
        if where_held:
            self._compute_where_held(variable, pieces, layout)
        levels = two_levels(tensor.name, pieces, self._groups)
        if levels is not None:
            self._sum_in_two_levels(variable, levels)

    def hold_parts(
        self, variable: TrainedVariable, how: Synchronisation, pieces: Sequence[SyncPiece]
    ) -> None:
        """Hold the parts of a gradient, and what keeps them for later, each where its part is."""
        parts = held_parts(self._graph, variable, how, (None,) * len(self._base.factors))
        self._operations.update(parts.operations)
        self._operations[parts.joined.name] = self._computed(variable, parts.joined, [0], pieces)
        self._hold(parts.tensors)

    def receive_one_by_one(self, variable: TrainedVariable, pieces: Sequence[SyncPiece]) -> None:
        """Bring the gradients of all replicas once to where each piece is held, and pick them there.

        The values that replicas pull are picked there, too, and each replica fetches its own.
        """
        graph, factors = self._graph, self._base.factors
        own = {self._index[name] for name in variable.together}
        (row,) = (each for each in self._arriving if own & {*graph.operations[each.picks[0]].outputs})
        for number in row.readers:
            reader = graph.operations[number]
            uses = [use for touching, use in touched(reader) if graph.roots[touching] in own]
            self._operations[reader.name] = self._computed(variable, reader, uses, pieces)
        pull = graph.operations[row.pull].outputs[0]
        (kept,) = (each for each in graph.operations if pull in each.inputs)
        (state,) = (graph.tensors[graph.roots[output]] for output in kept.outputs)
        form = stacked_form(pieces, tuple((0, extent) for extent in state.shape), self._base.workers, factors)
        picks = tuple(graph.operations[number].name for number in row.picks)
        self._copies[graph.tensors[row.local].name] = [Copy(form, picks)]
        by_replica: Form = (0,) * len(factors)
        self._hold({graph.tensors[pull].name: form, state.name: by_replica})
        self._operations[kept.name] = (kept.bound.variables[0],) * len(factors)

    @cached_property
    def _arriving(self) -> tuple[Arriving, ...]:
        return arriving(self._graph)

    def may_exchange_rows(self, variable: TrainedVariable, pieces: Sequence[SyncPiece]) -> None:
        """Keep the choices in which a sparse variable exchanges rows, for `plan_by_rows`."""

        def computed(operation: Operation, tensor: int) -> Form:
            uses = [use for touching, use in touched(operation) if touching == tensor]
            return self._computed(variable, operation, uses, pieces)

        held = self._layouts[variable.tensor.name].form
        self._choices += row_choices(self._soap, variable, computed, held)

    def look_up_where_held(self, variable: TrainedVariable, pieces: Sequence[SyncPiece]) -> None:
        """Look up the pieces of a variable and make their gradients where they are, for all samples."""

        def computed(operation: Operation, tensor: int, kind: Kind = "concat") -> Form:
            uses = [use for touching, use in touched(operation) if touching == tensor]
            return self._computed(variable, operation, uses, pieces, kind)

        held = self._layouts[variable.tensor.name].form
        forms = masked_forms(self._soap, variable, computed, partial(computed, kind="reduce"), held)
        self._operations.update(forms.operations)
        self._hold(forms.tensors)
        if forms.operations.keys() >= set(variable.readers):
            self._copies.pop(variable.tensor.name, None)

    @cached_property
    def _soap(self) -> Soap:
        return find_soap(self._graph, self._base.workers)

    def _hold(self, forms: Mapping[str, Form]) -> None:
        for name, form in forms.items():
            shape = self._graph.tensors[self._index[name]].shape
            self._layouts[name] = in_two_hops(Layout(shape, form, self._base.factors))

    def _computed(
        self,
        variable: TrainedVariable,
        operation: Operation,
        uses: Sequence[Use],
        pieces: Sequence[SyncPiece],
        kind: Kind = "concat",
    ) -> Form:
        """Return the form in which an operation runs where the pieces of a variable are."""
        base, tensor = self._base, variable.tensor
        whole: Region = tuple((0, extent) for extent in tensor.shape)
        place = f"operation {operation.name!r}"
        return computed_form(
            tensor.name, place, operation.bound, uses, whole, pieces, base.workers, base.factors, kind
        )

    def _copies_of(self, kept: Sequence[Form], readers: Sequence[str]) -> list[Copy]:
        """Return the copies of a variable. If there are proxies, one reader reads what groups keep.

        Every copy needs a reader, so proxies of what groups keep pay from the third reader on.
        """
        first, *others = sorted(readers, key=self._turn.__getitem__)
        if len(kept) == 1 or len(others) < 2:
            return [Copy(kept[0], tuple(readers))]
        return [Copy(kept[0], (first,)), Copy(kept[1], tuple(others), 1)]

    def _made_in_terms(self, variable: TrainedVariable) -> list[tuple[int, Operation]]:
        """Return the tensors of a variable that operations make as partial results, with these."""
        updates = {each.name for each in variable.updates}
        found = []
        for name in variable.together:
            maker = self._maker.get(self._index[name])
            if maker is not None and maker.name not in updates and self._terms(maker) > 1:
                found.append((self._index[name], maker))
        return found

    def _terms(self, operation: Operation) -> int:
        regions = self._movements.operator(operation.bound, self._operations[operation.name])
        return regions.outputs[0].terms

    def _compute_where_held(
        self, variable: TrainedVariable, pieces: Sequence[SyncPiece], layout: Layout
    ) -> None:
        """Compute gradients where they are held, and terms that are added to them as well."""
        pending = self._made_in_terms(variable)
        while pending:
            tensor, maker = pending.pop()
            self._layouts[self._graph.tensors[tensor].name] = layout
            self._operations[maker.name] = self._computed(
                variable, maker, [maker.outputs.index(tensor)], pieces
            )
            for read in maker.inputs:
                added = self._graph.tensors[read]
                if self._layouts[added.name].expanded.terms == 1:
                    continue
                if added.shape != variable.tensor.shape:
                    raise PlanError(
                        f"holders of {variable.tensor.name!r} compute its gradient from whole tensors, "
                        f"but the base leaves terms of {added.name!r}, which {maker.name!r} reads; leave out "
                        "'factors' and the rewrite of this variable, or choose another base"
                    )
                pending.append((read, self._maker[read]))

    def _sum_in_two_levels(self, variable: TrainedVariable, levels: TwoLevels) -> None:
        """Sum gradients in groups first, and let whoever reads them read them from their groups."""
        gradients = self._made_in_terms(variable)
        if not gradients:
            raise PlanError(
                f"variable {variable.tensor.name!r} is summed in two levels, but its gradient is not made as "
                "partial results; leave out `tree` and `via`"
            )
        for tensor, maker in gradients:
            self._check_groups(variable.tensor.name, maker)
            name, shape = self._graph.tensors[tensor].name, variable.tensor.shape
            self._layouts[name] = Layout(shape, levels.home, self._base.factors, levels.via)
            readers = tuple(self._readers[tensor])
            self._copies[name] = [Copy(levels.copy, readers)]

    def _check_groups(self, variable: str, maker: Operation) -> None:
        """Raise PlanError unless equally many terms, one after the other, are made by every group."""
        made = self._movements.operator(maker.bound, self._operations[maker.name]).outputs[0]
        each, uneven = divmod(made.terms, len(self._groups))
        for worker, term in zip(made.workers, made.term, strict=True):
            if uneven or worker not in self._groups[term // each]:
                raise PlanError(
                    f"variable {variable!r} is summed in two levels, but operation {maker.name!r} makes its "
                    f"{made.terms} terms on other workers than {len(self._groups)} groups of replicas would, "
                    "one after the other; choose other groups"
                )

    def plan_by_rows(self, order: tuple[str, ...] | None) -> Plan:
        """Return the plan in which each choice of rows is taken that moves fewer bytes, one after another."""
        plan = self._plan(order)
        for choice in self._choices:
            before = dict(self._operations), dict(self._layouts), dict(self._copies)
            self._operations.update(choice.operations)
            self._hold(choice.tensors)
            if choice.copied is not None:
                self._copies.pop(choice.copied, None)
            with suppress(PlanError):
                other = self._plan(order)
                if other.cost_bytes < plan.cost_bytes:
                    plan = other
                    continue
            self._operations, self._layouts, self._copies = before
        return plan

    def _plan(self, order: tuple[str, ...] | None) -> Plan:
        """Return the plan, checked and counted."""
        for tensor in self._graph.tensors:
            if tensor.alias is not None:
                self._layouts[tensor.name] = self._layouts[self._graph.tensors[tensor.alias].name]
        base = self._base
        found = Plan(
            fingerprint=self._graph.fingerprint,
            workers=base.workers,
            factors=base.factors,
            method=METHOD,
            layouts=dict(self._layouts),
            strategies=dict(self._operations),
            cost_bytes=0,
            step_cost_bytes=(0,),
            lower_bound_bytes=0,
            written_order=order,
            copies={name: tuple(copies) for name, copies in self._copies.items()},
            graph=self._graph,
        )
        totals = found.checked_count(self._graph)
        steps = tuple(after - before for before, after in pairwise(totals))
        return replace(found, cost_bytes=totals[-1], step_cost_bytes=steps)

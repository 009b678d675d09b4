"""`partition` and `Module`: the one place where search and runtime meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .dataflow.graph import Graph
from .dataflow.optimizer import Optimizer
from .dataflow.symbol import Symbol
from .dataflow.training import training_graph
from .errors import DataError, GraphError, PlanError
from .machines.machine import Machine
from .machines.machine_file import machine_of
from .models.torch_module import is_module, of_module
from .partitioner import (
    Fitting,
    Method,
    Needs,
    Plan,
    SearchSettings,
    Simulations,
    find_plan_within,
    lower,
)
from .partitioner.lowering.arenas import Arenas
from .partitioner.methods.autodist.rewriting import rewrite
from .partitioner.methods.frontier import WHOLE, Frontier, Measured, Measures, find_frontier
from .partitioner.methods.limit import (
    parse_limit,
    parse_same_limit,
    worker_limits,
)
from .partitioner.methods.manual import Layouts
from .partitioner.methods.merged_plans import better_merged
from .partitioner.methods.method import Search, find_method
from .partitioner.methods.placement.result import Placement
from .partitioner.methods.simulated import Watch
from .partitioner.methods.tensoropt import find_modelled_frontier
from .partitioner.plans.plan import decode_plan, graph_of, require_graph, require_plan, require_workers
from .partitioner.plans.plan_file import encode_plan
from .partitioner.plans.sampling import Sampling
from .partitioner.problem.constraints import Constraint
from .partitioner.scoring import PlacementScore, score_graph
from .partitioner.solvers.anytime import Report
from .partitioner.translation.named_mesh import NamedMesh
from .programs.program import PartitionedGraph
from .runtime import module
from .runtime.arrival_log import ArrivalLog
from .runtime.context import Context, cpu, devices_of, gpu
from .runtime.distributed.processes import Processes, distributed
from .runtime.initializer import WeightRule
from .runtime.run_settings import RunSettings
from .simulator.times import task_times
from .support.checked_argument import path_of, require
from .support.wording import counted
from .within_limit import needs_of, refusal, search_fewest, search_within, with_times

if TYPE_CHECKING:
    import networkx

__all__ = ["Context", "Module", "cpu", "distributed", "frontier", "gpu", "partition", "place", "score"]

RECOMPUTE = (1, 8)
"""The numbers of segments that frontiers try."""

COST_MODELS = ("simulated", "tensoropt")
"""The models of time and memory that frontiers may have."""


def partition(
    graph: Graph,
    workers: int | str,
    method: str | Method | Search = "recursive",
    *,
    constraints: Iterable[Constraint | str] = (),
    layouts: Layouts | None = None,
    machine: Machine | str | None = None,
    objective: str = "bytes",
    report: Report | None = None,
    memory: int | str | None = None,
    keep: bool = True,
    copy_activations: bool = False,
    replicate: bool = True,
    feed: str = "batch",
    seed: int = 0,
    proposals: int | None = None,
    beta: float | None = None,
    seconds: float | None = None,
    slower: float = 0.0,
    groups: str | None = None,
    merge: bool = False,
    watch: Watch | None = None,
) -> Plan:
    """Find a plan for `workers` workers that fits the memory of each; the same graph gives the same plan.

    With `auto` instead of a number, the plan has the fewest workers for which a plan is found that fits
    `memory`, up to the devices of `machine`, or 64.

    `method` is a method's name, a `tofu.search.Method`, or a function of a `tofu.search.Problem` and a number
    of workers that returns a `Solution`. The solution of a user's own method is verified. The methods
    `megatron` and `megatron-sp` take a mesh after a colon, such as `megatron:dp4-tp2`.
    `constraints` are pins and prohibitions. The plan obeys them, and its lower bound holds for plans that do.
    `layouts` is for the method `manual`: forms of tensors by name or pattern, or a whole plan, as a dict or
    as the path of a file.
    `machine` is a preset's name, a file or a Machine. If it says how fast its devices are, the plan's
    `step_seconds` is the simulated time of one iteration, see `tofu.simulate`.
    `objective` is `bytes`, or a time on `machine`. `time` is what the traffic takes over its links.
    `step-time` adds latency and computations; of the plan that is found and the one for `bytes`, the plan
    whose simulated iteration is shorter is returned. For both, the workers are split by the levels of the
    machine.
    `seed`, `proposals`, `beta` and `seconds` are for `flexflow` and `anneal`, which draw at random: see
    `Sampling`. They need a machine and minimise `step_seconds`. With `slower`, such as 0.05, `anneal` may
    return a plan that is up to so much slower than the fastest one and moves fewer bytes. With `seconds`
    another run may find another plan. `watch` is called with their progress, whenever they find a better plan
    and otherwise at most ten times a second.
    `groups` is for `place`: `2x4` places operations on 2 groups of 4 workers, which share each operation.
    Without it the best numbers are searched for.
    With `merge` a plan is searched as well for the graph in which operations that do the same to several
    tensors are one, such as the products of a weight with all time steps. It is returned if it costs no more
    and fits; then `merged` is True, and `plan.graph` is its graph. Results are equal up to rounding.
    `report` is called with the cost and the proven bound, in bytes or in picoseconds, whenever `exact`
    improves one of them.

    `replicate` says whether any step may replicate a tensor; without it, plans split all that can be split,
    as in the paper. `keep` says whether sums may stay in terms, partial results may be reduced in parts
    before they are spread, inputs and what many operations read may be copied, and operations may be
    repeated at a price. It is for the objective `bytes`. Only what lasts is copied, such as weights. With
    `copy_activations` activations may be copied as well, and the search takes longer. `feed` is `batch` if
    data and labels arrive split by batch, as a loader has them, so that all else that a plan needs of them is
    moved and counted. With `anywhere` they arrive where the plan wants them, without a byte. The lower bound
    holds for the plans that these settings leave (`plan.space`).

    `memory` is the most that a worker may hold, in bytes or as text such as `12GB`: its arena and the
    workspace of the processor's kernels. If the best plan takes more, the search puts prices on what is held
    and returns the best plan found that fits, with a bound for plans that do. Without `memory`, the limit is
    what each worker's device has; if that is not known either, arenas may be 15% larger than that of
    the recursive plan that replicates nothing. `unlimited` frees memory.

    Raises PlanError for an unknown method, for constraints that clash or that the method cannot take, or if
    no plan is found that fits `memory`. Raises MachineError for a bad machine or if
    `memory` is not an amount of memory. Raises GraphError for a malformed graph.
    """
    found = None if machine is None else machine_of(machine)
    limit = parse_limit(memory, "memory", found)
    if found is not None and isinstance(workers, int):
        found.check_workers(workers)
    simulates = find_method(method).simulates
    searched = found if simulates or objective != "bytes" else None
    settings = SearchSettings(
        method,
        constraints,
        layouts,
        searched,
        objective,
        replicate=replicate,
        keep=keep,
        copy_activations=copy_activations,
        feed=feed,
        report=report,
        sampling=Sampling(seed, proposals, Sampling().beta if beta is None else beta, seconds, slower),
        watch=watch,
        groups=groups,
        merge=merge,
    )
    if workers == "auto":
        fitting = search_fewest(graph, settings, limit, found)
    elif isinstance(workers, str):
        raise PlanError(f"the number of workers is {workers!r}; give a number, or 'auto'")
    else:
        fitting = search_within(graph, workers, settings, limit)
    plan = fitting.plan
    graph = graph_of(plan)
    refused = refusal(graph, fitting, limit)
    if refused is not None:
        raise PlanError(refused)
    if found is None or not found.kinds or plan.step_seconds is not None:
        return plan
    return with_times(graph, plan, found)


def frontier(
    graph: Graph,
    workers: int,
    machine: Machine | str,
    memory: int | str | None = None,
    method: str | Method = "recursive",
    recompute: Sequence[int] = RECOMPUTE,
    *,
    keep: bool = True,
    replicate: bool = True,
    cost_model: str = "simulated",
) -> Frontier:
    """Find plans of which none beats another one in both step time and memory, for `workers` workers.

    `machine` is a preset's name, a file or a Machine that says how fast its devices are. Times are simulated,
    and memory is the largest arena of a worker. Plans that take more than `memory` (bytes, or text such as
    `12GB`) are left out; without it that is the memory of the machine's devices.
    `recompute` are the numbers of segments in which activations may be computed again, see `training_graph`;
    a point's `recompute` is that of its plan's graph. `keep` and `replicate` are as for `partition`. If the
    number of plans with `keep=False` is small (up to 1,024), all of them are considered.
    `cost_model` says what times and memory are: `simulated`, or sums of estimates as TensorOpt adds them up
    (`tensoropt`). Every point of the latter has what its plan takes in `taken`, and plans keep no copies.

    Raises PlanError for an unknown cost model or if no plan is found that fits, GraphError for what is not a
    graph and for a number of segments below 1, and MachineError for a bad machine.
    """
    require_graph(graph)
    require_workers(workers)
    fits = isinstance(recompute, Sequence) and len(recompute) > 0
    require(fits, recompute, "recompute", "a list of numbers of segments", GraphError)
    if cost_model not in COST_MODELS:
        raise PlanError(f"there is no cost model {cost_model!r}; there are: {', '.join(COST_MODELS)}")
    found = machine_of(machine)
    found.check_workers(workers)
    limit = parse_limit(memory, "memory", found)

    def measuring(graph: Graph) -> Callable[[Plan], Measured]:
        arenas, simulations = Arenas(graph), Simulations(graph, found)
        return lambda plan: Measured(simulations.of(plan).seconds, arenas.largest(plan))

    measures = Measures(measuring, lambda graph: task_times(graph, found, workers))
    limits = worker_limits(limit, workers)
    limit_bytes = None if limits is None else min(limits)
    space = replace(WHOLE, keep=bool(keep), replicate=bool(replicate))
    search = find_frontier if cost_model == "simulated" else find_modelled_frontier
    return search(graph, workers, found, method, measures, limit_bytes, recompute, space)


def place(
    graph: networkx.DiGraph[Any], machine: Machine | str, workers: int, memory: int | str | None = None
) -> Placement:
    """Place whole nodes of a graph with costs on workers, within the memory of each.

    Nodes of `graph` have `seconds`, a number or one for each kind of device by name, and `bytes`, the size of
    their output, which goes once to each worker that reads it. Optional are `persistent_bytes`, which a node
    holds throughout, `output_persists` if its output is part of them, and `colocate`: nodes with equal values
    share a worker. An edge with `bytes` is a value of its own, and one with 0 bytes is order alone. A
    training graph's `to_networkx` makes such graphs.

    `machine` is a preset's name, a file or a Machine. `memory` is the most that a worker may hold, in bytes
    or as text such as `12GB`; without it, it is what its device has. `unlimited` frees memory. The same graph
    and machine give the same placement.

    Raises GraphError for a bad graph, naming the node or edge and its attribute, PlanError for a bad number
    of workers or if no placement is found that fits, and MachineError for a bad machine or amount of memory.
    """
    from .partitioner.methods.placement.devices import kinds_of
    from .partitioner.methods.placement.from_networkx import from_networkx
    from .partitioner.methods.placement.place_graph import place_graph

    found = machine_of(machine)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise PlanError(f"the number of workers is {workers!r}; give a positive number")
    limit = parse_limit(memory, "memory", found)
    plain = from_networkx(graph, kinds_of(found, workers))
    return place_graph(plain, found, workers, limit)


def score(
    model: Graph | Symbol | object,
    placements: Mapping[str, Any],
    mesh: NamedMesh | Mapping[str, int],
    *,
    example_inputs: object = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    optimizer: Optimizer | str = "sgd",
    machine: Machine | str | None = None,
) -> PlacementScore:
    """Score placements of another system: the bytes that they make move, and the memory that they need.

    `model` is a training graph, a symbol with the `shapes` of its inputs, or a module of PyTorch with
    `example_inputs`, as for `from_torch`. `mesh` has sizes by name, such as `{"dp": 4, "tp": 2}`.

    `placements` has, by name or shell pattern of parameters and inputs, a placement for each axis of the
    mesh: a sequence, or a dict by axis in which others replicate. A placement is `Shard(dim)` or
    `Replicate()`, of PyTorch or of `tofu.plans`. In `{"layers.*.up": {"tp": "column"}}` the name is that of a
    layer: `column` cuts its weight `[out, in]` and its bias along `out`, and `row` cuts its weight along
    `in`. Parameters that no name means replicate. States of optimizers lie as their parameters.

    Everything else is searched: the result's plan moves few bytes with these placements. With a `machine`,
    `step_seconds` is simulated. Raises PlanError for placements that do not fit.
    """
    if isinstance(model, Graph):
        graph = model
    elif isinstance(model, Symbol):
        graph = training_graph(model, shapes or {}, optimizer)
    elif is_module(model):
        graph = of_module(type(model).__name__, model, example_inputs).training_graph(optimizer=optimizer)
    else:
        raise GraphError(
            f"the model is a {type(model).__name__}; give a graph, a symbol, or a module of PyTorch"
        )
    return score_graph(graph, placements, mesh, machine)


class Module(module.TrainableModule):
    """A symbol trained over the workers of `context`: every operator and tensor is partitioned over them.

        module = tofu.Module(symbol, context=[tofu.cpu(i) for i in range(8)])    # or tofu.gpu(i)
        module.fit(tofu.ArrayIterator(images, labels, batch_size=64), num_epoch=10, learning_rate=0.1)

    `method` names the search. `memory` is the most that a worker may hold, in bytes or as text such as
    `12GB`; the search looks for a plan that fits, see `partition`. `dtype` may be float16 or
    bfloat16: large activations and gradients are stored in that type, and gradients are multiplied by
    `loss_scale`. With `recompute` above 1, activations are computed again in the backward pass, in that many
    segments, see `training_graph`. `merge` is that of `partition`. With `guard_buffers` a kernel that writes
    outside its buffers is an error, and no buffers share memory. With `plan` it trains as that plan says,
    which was made for this symbol, batch size, optimizer and number of workers; else PlanError. If the plan
    applies gradients in the order in which they arrive, the order is written to the file `arrivals`, or read
    from the file `replay`, which repeats that run bit for bit. `plans` holds the plan of every graph made so
    far by the graph's fingerprint.
    """

    def __init__(
        self,
        symbol: Symbol,
        context: Context | Sequence[Context] | Processes | None = None,
        *,
        method: str | Method | Search = "recursive",
        plan: Plan | None = None,
        initializer: WeightRule | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        threads: int | None = None,
        eager: bool = False,
        tf32: bool = False,
        detect_nan: bool = False,
        guard_buffers: bool = False,
        memory: int | str | None = None,
        dtype: str = "float32",
        loss_scale: float | None = None,
        recompute: int = 1,
        merge: bool = False,
        arrivals: str | PathLike[str] | None = None,
        replay: str | PathLike[str] | None = None,
    ) -> None:
        self._merge = merge
        self._limit = parse_same_limit(memory, "memory")
        super().__init__(
            symbol,
            context,
            lower=self._partition,
            settings=RunSettings(
                initializer,
                parameters or {},
                seed,
                threads,
                eager,
                tf32,
                detect_nan,
                guard_buffers,
                None if self._limit == "unlimited" else self._limit,
                dtype,
                loss_scale,
                recompute,
                _arrival_log(arrivals, replay),
            ),
        )
        if plan is not None:
            require_plan(plan)
            if plan.workers != self.workers:
                raise PlanError(
                    f"the plan is for {counted(plan.workers, 'worker')}, but the context lists "
                    f"{self.workers}; use as many as the plan has"
                )
        self.plans: dict[str, Plan] = {}
        self._method = method
        self._on_cards = (
            bool(context.cards)
            if isinstance(context, Processes)
            else any(device.device_type == "gpu" for device in devices_of(context))
        )
        self._plan = plan

    def _partition(self, graph: Graph, workers: int) -> PartitionedGraph:
        given = self._plan if any(map(graph.learns, graph.operations)) else None
        self.peers.agree({"the plan": "to be searched" if given is None else "given"})
        plan = given or self._searched_once(graph, workers)
        self.plans[plan.fingerprint] = plan
        return lower(rewrite(graph, workers, plan), plan)

    def _searched_once(self, graph: Graph, workers: int) -> Plan:
        """Search a plan in the first process, and send it to all others."""
        if self.peers.count == 1:
            return self._searched(graph, workers)
        self.peers.agree({"the graph": graph.fingerprint})
        found = self.peers.text(lambda: encode_plan(self._searched(graph, workers)))
        return decode_plan(found.encode())

    def _searched(self, graph: Graph, workers: int) -> Plan:
        """Search a plan that fits. The workspace of kernels on cards is known only once they are prepared."""

        def search(each: Graph) -> Fitting:
            needs = needs_of(each)
            if self._on_cards:
                needs = Needs(needs.arena)
            return find_plan_within(each, workers, SearchSettings(self._method), self._limit, needs)

        return (better_merged(graph, self._limit, search) if self._merge else search(graph)).plan


def _arrival_log(
    arrivals: str | PathLike[str] | None, replay: str | PathLike[str] | None
) -> ArrivalLog | None:
    """Return the log of the order in which gradients arrive: to be written, or to be replayed."""
    if arrivals is not None and replay is not None:
        raise DataError("a run cannot log arrivals and replay them; leave out `arrivals` or `replay`")
    name, path = ("replay", replay) if arrivals is None else ("arrivals", arrivals)
    return None if path is None else ArrivalLog(path_of(path, name, DataError), replay is not None)

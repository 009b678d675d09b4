"""Run `tofu train`: train a task over workers and pass its events to reports."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..api import Context, Module, cpu
from ..dataflow.training import training_graph
from ..errors import PlanError, TofuError
from ..models.fitting import require_fit
from ..partitioner import Plan, lower, partition
from ..reports.links import link_facts
from ..reports.training import Report, Start
from ..reports.training_screen import Screen
from ..runtime.checkpoint import CheckpointFolder
from ..runtime.data import ArrayIterator
from ..runtime.distributed.processes import Processes
from ..runtime.executor import Executor
from ..runtime.footprint import Footprint, footprint
from ..runtime.learning_rate import LearningRate
from ..runtime.progress import Epoch, Progress
from ..support.wording import counted
from .recipes import Settings, TrainingTask
from .target import RECIPE
from .update_options import UpdateOptions


@dataclass(frozen=True)
class Devices:
    """A device for each worker, and how GPUs run."""

    devices: tuple[Context, ...]
    """The device of each worker; none if several processes run them."""

    processes: Processes | None = None
    """The processes that run the workers; None for this one alone."""

    eager: bool = False
    """Whether GPUs launch every operation; if not, they launch one graph for an iteration."""

    tf32: bool = False
    """Whether GPUs may round the factors of float32 products to TF32."""

    dtype: str = "float32"
    """The element type in which the model computes."""

    loss_scale: float | None = None
    """The factor of the loss; None for the default of the element type."""

    @classmethod
    def of(cls, kind: str, workers: int, processes: Processes | None, *options: Any) -> Devices:
        """Return devices for `workers` workers: those of processes, the processor, or this machine's cards.

        Raises ExecutionError if cards are asked for and there are none.
        """
        if processes is not None:
            return cls((), processes, *options)
        if kind == "cpu":
            return cls(tuple(cpu(worker) for worker in range(workers)), processes, *options)
        from ..runtime.cuda.cards import shared

        return cls(tuple(shared(workers)), processes, *options)

    @property
    def context(self) -> tuple[Context, ...] | Processes:
        """Return the context of a module."""
        return self.processes or self.devices

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return len(self.devices) if self.processes is None else self.processes.workers

    @property
    def named(self) -> str:
        """Return the devices in words, such as `cpu`, `4 processes on GPUs`, or `1 GPU, shared`."""
        if self.processes is not None:
            named = counted(self.processes.count, "process", "processes")
            return f"{named} on GPUs" if self.processes.cards else named
        if self.devices[0].device_type == "cpu":
            return "cpu"
        cards = len(set(self.devices))
        shared = ", shared" if cards < self.workers else ""
        return f"{cards} GPU{'' if cards == 1 else 's'}{shared}"


@dataclass(frozen=True)
class Run:
    """One training run."""

    task: TrainingTask
    """The model and the data."""

    settings: Settings
    """The settings of the task, with the values that were asked for."""

    updates: UpdateOptions
    """How the learning rate changes, and which gradients are clipped."""

    devices: Devices
    """A device for each worker."""

    seed: int
    """The seed of everything that is random."""

    method: str
    """The search method."""

    plan: Plan | None
    """The plan to follow; None to search one."""

    detect_nan: bool
    """Whether every result is checked for NaN."""

    guard_buffers: bool
    """Whether writing outside of buffers is an error."""

    accumulate: int
    """The number of micro-batches in one update."""

    unroll: bool
    """Whether one iteration works on all micro-batches."""

    recompute: int
    """The number of segments whose activations are computed again."""

    merge: bool
    """Whether operations that do the same to several tensors may be one."""

    memory: str | None
    """The memory that each worker may use, such as `2GB`; None for any."""

    checkpoint: Path | None
    """The folder in which the run is saved; None if it is not saved."""

    resume: bool
    """Whether it continues the run that the folder holds."""

    arrivals: Path | None
    """The file in which the order of arriving gradients is logged; None if it is not."""

    replay: Path | None
    """The file whose order is repeated; None if there is none."""

    def require_fit(self) -> None:
        """Raise DataError if model, data and metrics do not go together, UsageError for a wrong schedule."""
        _ = self._fed, self._rate

    @cached_property
    def _fed(self) -> tuple[str, str]:
        """The names of the model's input and label."""
        task = self.task
        return require_fit(task.model, task.data, task.place, self.settings.metrics)

    @cached_property
    def _rate(self) -> LearningRate:
        settings = self.settings
        return self.updates.rate(settings.learning_rate, settings.epochs, len(self._train))

    @cached_property
    def _train(self) -> ArrayIterator:
        split = self.task.data.split
        data, label = self._fed
        return ArrayIterator(
            {data: split.train_data},
            {label: split.train_label},
            self.task.model.batch,
            shuffle=True,
            seed=self.seed,
        )

    @cached_property
    def _test(self) -> ArrayIterator | None:
        split = self.task.data.split
        if not len(split.test_data):
            return None
        data, label = self._fed
        return ArrayIterator({data: split.test_data}, {label: split.test_label}, self.task.model.batch)

    def train(self, reports: Report, screen: Screen | None) -> None:
        """Train, and pass every event to the reports. Raises TofuError if all epochs are done already."""
        progress: list[Progress] = []

        def on_step(step: Progress) -> None:
            progress.append(step)
            reports.step(step)

        def on_epoch(epoch: Epoch) -> None:
            reports.epoch(epoch, self.settings.epochs)

        steps = self.settings.epochs * len(self._train)
        with self._opened() as module:
            with nullcontext() if screen is None else screen.preparing():
                executor = self._bound(module)
            reports.start(self._start(executor, steps))
            history = module.fit(
                self._train,
                self._test,
                num_epoch=self.settings.epochs,
                optimizer=self.settings.optimizer,
                learning_rate=self._rate,
                metric=self.settings.metrics,
                accumulate=self.accumulate,
                unroll=self.unroll,
                on_step=on_step,
                on_epoch=on_epoch,
                checkpoint=self.checkpoint,
                resume=self.resume,
            )
            if not progress:
                raise TofuError(
                    f"all {len(history)} epochs are in the checkpoint; ask for more with --epochs"
                )
            facts = self._facts_of_processes(executor, module)
            if self.devices.processes is None or not self.devices.processes.number:
                reports.summary({**self._summary(executor, progress, history[-1]), **facts})

    def _bound(self, module: Module) -> Executor:
        """Return the executor of the run. Raises PlanError if it cannot follow the plan."""
        try:
            return module.bind(
                self._train.shapes,
                self.settings.optimizer,
                accumulate=self.accumulate,
                unroll=self.unroll,
            )
        except PlanError as error:
            if self.plan is None:
                raise
            if self.updates.clips:
                raise PlanError(
                    f"{error}; `tofu plan` makes plans for updates that are not clipped: leave out "
                    "--clip-norm and --clip-value, or train without --plan"
                ) from error
            if self.task.recipe is None:
                raise
            recipe = f"{RECIPE}{self.task.recipe}"
            raise PlanError(f"{error}; `tofu plan {recipe} --save FILE` makes a plan for this run") from error

    def kept(self) -> str:
        """Return what there is of a run that was interrupted."""
        if self.checkpoint is None:
            return "nothing was saved; --checkpoint FOLDER saves the run after every epoch"
        if not CheckpointFolder(self.checkpoint).paths():
            return f"there is no checkpoint in {self.checkpoint} yet"
        return f"continue from its newest checkpoint with --checkpoint {self.checkpoint} --resume"

    @contextmanager
    def _opened(self) -> Iterator[Module]:
        """Close a module in the end without reading what it learned: checkpoints have that."""
        module = self._module()
        try:
            yield module
        finally:
            module.close(keep=False)

    def _module(self) -> Module:
        return Module(
            self.task.model.symbol,
            self.devices.context,
            parameters=self.task.model.start,
            method=self.method,
            plan=self.plan,
            seed=self.seed,
            detect_nan=self.detect_nan,
            guard_buffers=self.guard_buffers,
            memory=self.memory,
            eager=self.devices.eager,
            tf32=self.devices.tf32,
            dtype=self.devices.dtype,
            loss_scale=self.devices.loss_scale,
            recompute=self.recompute,
            merge=self.merge,
            arrivals=self.arrivals,
            replay=self.replay,
        )

    def _start(self, executor: Executor, steps: int) -> Start:
        return Start(
            model=self.task.model.name,
            about=self.task.about,
            workers=self.devices.workers,
            device=self.devices.named,
            epochs=self.settings.epochs,
            steps=steps,
            samples=self._train.samples,
            held_out_samples=0 if self._test is None else self._test.samples,
            parameters=self.task.model.weight_count,
            peak_bytes_per_worker=executor.peak_bytes_per_worker,
            resumed=self.resume,
        )

    def _summary(self, executor: Executor, progress: list[Progress], last: Epoch) -> dict[str, Any]:
        alone = self._alone(executor.partitioned.graph.name)
        return {
            "workers": self.devices.workers,
            "device": self.devices.named,
            "steps": len(progress),
            "parameters": self.task.model.weight_count,
            "final_loss": last.training[self.settings.metrics[0]],
            "metric": dict(last.evaluation),
            "seconds_per_step": statistics.median(step.seconds for step in progress),
            "samples_per_second": sum(p.samples for p in progress) / sum(p.seconds for p in progress),
            "simulated_seconds_per_step": None if self.plan is None else self.plan.step_seconds,
            "planned_bytes_per_step": executor.partitioned.planned_bytes,
            "fetched_bytes_per_step": executor.fetched_bytes,
            "peak_bytes_per_worker": executor.peak_bytes_per_worker,
            "workspace_bytes_per_worker": executor.workspace_bytes_per_worker,
            "single_device_peak_bytes": alone.peak_bytes,
            "single_device_workspace_bytes": max(alone.workspace_bytes),
        }

    def _facts_of_processes(self, executor: Executor, module: Module) -> dict[str, Any]:
        """Return what a run of several processes reports besides; all of them call this."""
        processes = self.devices.processes
        if processes is None:
            return {}
        return {
            "links": link_facts(
                executor.partitioned, processes.places, processes.hosts, executor.process_bytes
            ),
            "checkpoint_writers": module.checkpoint_writers,
        }

    def _alone(self, name: str) -> Footprint:
        """Return what the whole batch takes on one device."""
        graph = training_graph(self.task.model.symbol, self._train.shapes, self.settings.optimizer, name=name)
        return footprint(lower(graph, partition(graph, workers=1)))

"""A strategy that changes, with the simulated time of an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ....machines.machine import Machine
from ....simulator.simulation import Simulation
from ....simulator.timeline import Timeline
from ....simulator.times import TaskTimes
from .configurations import Configuration, Drawable
from .strategy import Strategies


class StrategyWalk:
    """A strategy. A proposal gives a random decision a random configuration (FlexFlow, section 6.2)."""

    def __init__(
        self,
        strategies: Strategies,
        drawables: Sequence[Drawable],
        strategy: Sequence[Configuration],
        machine: Machine,
        times: TaskTimes | None = None,
    ) -> None:
        self.strategy = list(strategy)
        """The configuration of each decision."""
        soap, whole = strategies.soap, strategies.whole(strategy)
        self._simulation = Simulation(
            soap.graph, machine, soap.workers, whole.tasks, whole.holdings, stops=whole.stops, times=times
        )
        self._strategies = strategies
        self._drawables = drawables
        self._open = [number for number, each in enumerate(drawables) if len(each) > 1]
        self._earlier: tuple[int, Configuration] | None = None

    @property
    def cost(self) -> int:
        """Return the nanoseconds of an iteration."""
        return self._simulation.nanoseconds

    @property
    def timeline(self) -> Timeline:
        """Return the time line of an iteration."""
        return self._simulation.timeline

    def propose(self, draw: Random) -> int:
        """Give a decision another configuration, both drawn with equal probabilities."""
        number = self._open[draw.randrange(len(self._open))]
        configuration = self._drawables[number].draw(draw)
        self._earlier = number, self.strategy[number]
        self.strategy[number] = configuration
        change = self._strategies.change(number, configuration)
        return self._simulation.propose(change.tasks, change.holdings, stops=change.stops)

    def accept(self) -> None:
        """Keep the open proposal."""
        self._simulation.accept()

    def refuse(self) -> None:
        """Go back."""
        assert self._earlier is not None
        number, configuration = self._earlier
        self.strategy[number] = configuration
        self._simulation.refuse()

"""The one tree of errors.

Everything that a user's input can cause ends in a subclass of `TofuError`. A message names the place,
both values that disagree and what to do about it; commands print it and leave with exit status 2.
"""

from __future__ import annotations


class TofuError(Exception):
    """Base of every error that Tofu raises on purpose."""

    def saying(self, text: str) -> TofuError:
        """An error of the same kind with another message, which says more of the place."""
        return type(self)(text)


class DescriptionError(TofuError):
    """A description's text or meaning is wrong; the message shows each place with a caret."""


class ShapeError(TofuError):
    """Shapes do not fit a description, an operator or each other."""


class OperatorError(TofuError):
    """An operator is unknown, lacks something (a gradient, a kernel), or got a bad attribute."""


class GraphError(TofuError):
    """A symbol or graph is malformed: a duplicate name, a cycle, a dangling input."""


class PlanError(TofuError):
    """A plan cannot be made, read, or used for this graph and worker count."""


class ProgramError(PlanError):
    """A lowered program, its memory plan or its waits are not what a graph and a plan ask for."""


class MachineError(TofuError):
    """A machine's file is malformed, or the machine does not fit the workers."""


class ExecutionError(TofuError):
    """A worker failed; the message names the worker, the operator and the step."""


class DataError(TofuError):
    """Training data, parameters or a file do not have the expected form."""

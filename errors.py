"""All errors of Tofu, in one tree.

Bad input always raises a subclass of `TofuError`. A message names the place, both values that disagree, and
what to do. Commands print it and exit with status 2.
"""

from __future__ import annotations


class TofuError(Exception):
    """Base of every error that Tofu raises on purpose."""

    def saying(self, text: str) -> TofuError:
        """Return an error of the same kind with another message, which says more about the place."""
        return type(self)(text)


class DescriptionError(TofuError):
    """The text or the meaning of a description is wrong; the message shows each place with a caret."""


class ShapeError(TofuError):
    """Shapes do not fit a description, an operator or each other."""


class OperatorError(TofuError):
    """An operator is unknown, lacks something (a gradient, a kernel), or got a bad attribute."""


class GraphError(TofuError):
    """A symbol or graph is malformed: a duplicate name, a cycle, a dangling input."""


class PlanError(TofuError):
    """A plan cannot be made, read, or used for this graph and worker count."""


class ProgramError(PlanError):
    """A lowered program, its memory plan or its waits do not match the graph and the plan."""


class MachineError(TofuError):
    """A machine's file is malformed, or the machine does not fit the workers."""


class ExecutionError(TofuError):
    """A worker failed; the message names the worker, the operator and the step."""


class DataError(TofuError):
    """Training data, parameters or a file do not have the expected form."""


class OtherVersion(DataError):
    """A checkpoint is of another format; it is not damaged, so none is read in place of it."""

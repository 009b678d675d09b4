"""The audit of operators: their strategies, and the kernels that compute them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...analyzer.audit.elements import Subject
from ...analyzer.audit.finding import Check, Finding, Verdict
from ...analyzer.audit.samples import Domain
from ...analyzer.audit.shrink import Bind
from ...analyzer.audit.strategies import Case, Report, Select, audit_strategies, offered, unheard
from ...analyzer.bind.shapes import shapes_by_name
from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ...tdl import ast
from ..declare import operator_of
from ..kernels.kernel import Array
from ..operator import Operator
from ..stages.bound_operator import BoundOperator
from .kernels import KernelAudit
from .report import Audit
from .runner import ContractRunner, FunctionRunner, Runner, takes_call
from .subjects import Missing, complete_shapes, stages

__all__ = ["Audit", "audit"]

Shapes = Mapping[str, Sequence[int]]
MakeCase = Callable[[str, Bind, Subject], Case]


def audit(
    operator: Operator | ast.Description,
    kernel: Callable[..., Any] | None = None,
    shapes: Shapes | None = None,
    *,
    attributes: Mapping[str, object] | None = None,
    workers: Sequence[int] = (2, 3),
    select: Select = offered,
    data: Mapping[str, Callable[[Array], Array]] | None = None,
    report: Report | None = None,
    **named: object,
) -> Audit:
    """Prove, try or refute every claim about an operator: its regions, its strategies, its kernels.

    Without `kernel` all that the operator is made of is audited: its stages and their gradients, each with
    the kernel that Tofu itself would run. A `kernel` is either of Tofu's contract (one parameter,
    `call: KernelCall`) or a function of local arrays that returns the local output.

    `shapes` are small shapes to start with; a library operator has an example. Attributes follow by name,
    or in `attributes` (Convolution has one called `kernel`). `workers` are the counts that are tried.
    `select` replaces the strategies that are audited. `data` is for operators that are not defined for all
    numbers: by tensor, a function from an array of numbers between 0 and 1 to one that will do. `report` is
    told the description, the check that begins, and the variable of the strategy that is checked or None.
    Raises OperatorError, ShapeError, DataError.
    """
    if isinstance(operator, ast.Description):
        operator = operator_of(operator)
    if not isinstance(operator, Operator):
        raise OperatorError(
            f"an operator or a description is audited, found {operator!r}; "
            f"use @tofu.op, tofu.parse(text) or tofu.operators.get(name)"
        )
    if kernel is not None and not callable(kernel):
        named["kernel"], kernel = kernel, None
    counts = tuple(workers) if isinstance(workers, Iterable) else ()
    if not counts or any(not isinstance(count, int) or count < 2 for count in counts):
        raise OperatorError(f"workers must be counts of at least 2, such as (2, 3), found {workers!r}")
    values = {**(attributes or {}), **named}
    given = shapes_by_name(operator.name, shapes or {})
    if not given and not values and operator.example is not None:
        given, values = dict(operator.example.shapes), dict(operator.example.attributes)
    elif not given and operator.arguments(values):
        needed = ", ".join(f"{name!r}: (...)" for name in operator.arguments(values))
        raise OperatorError(f"{operator.name} needs shapes for the audit: shapes={{{needed}}}")
    counts = tuple(sorted(set(counts)))
    known = complete_shapes(operator, given, values)
    unknown = [name for name in data or {} if name not in known]
    if unknown:
        raise OperatorError(f"{operator.name} takes no tensor {unknown[0]!r}, only {', '.join(known)}")
    domain = _domain(operator, data or {})
    case = partial(Case, workers=counts, select=select, domain=domain, report=report or unheard)
    if kernel is None:
        findings = _own(operator, known, values, case)
    else:
        findings = _foreign(operator, kernel, known, values, case)
    return Audit(operator.name, tuple(findings))


def _own(
    operator: Operator, shapes: Mapping[str, Shape], attributes: Mapping[str, object], make: MakeCase
) -> Iterator[Finding]:
    """Yield every stage with the kernel it has."""
    for part in stages(operator, shapes, attributes):
        if isinstance(part, Missing):
            yield Finding(part.name, Check.GRADIENT, Verdict.NOT_APPLICABLE, part.reason)
            continue
        stage, known = part
        case = make(stage.name, stage.bind, stage.bind(known))
        yield from audit_strategies(case)
        yield from KernelAudit(case, ContractRunner()).findings()


def _domain(operator: Operator, data: Mapping[str, Callable[[Array], Array]]) -> Domain:
    """Return the data on which the operator is defined."""
    example = operator.example
    return Domain(made=data) if example is None else Domain(example.whole, {**example.domain, **data})


def _foreign(
    operator: Operator,
    kernel: Callable[..., Any],
    shapes: Mapping[str, Shape],
    attributes: Mapping[str, object],
    make: MakeCase,
) -> Iterator[Finding]:
    """Yield the operator as a whole with a kernel of the user's."""

    def bind(local: Mapping[str, Shape]) -> Any:
        return operator.bind(local, True, **attributes)

    subject = bind(shapes)
    runner: Runner = FunctionRunner(kernel, bind)
    if takes_call(kernel):
        if not isinstance(subject, BoundOperator):
            raise OperatorError(
                f"{operator.name} has stages, and a kernel that takes a KernelCall computes one stage; "
                f"audit a function of arrays, or an operator of one stage"
            )
        runner = ContractRunner(kernel)
    case = make(operator.name, bind, subject)
    yield from audit_strategies(case)
    yield from KernelAudit(case, runner).findings()

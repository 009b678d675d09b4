"""How CUDA C++ spells each scalar function of the language.

Names without a namespace are CUDA's own, overloaded for float and double; the others are in `prelude.h`.
A spelling evaluates every argument once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...errors import OperatorError


@dataclass(frozen=True, slots=True)
class Spelling:
    """`real` for floating-point arguments; `integer`, if there is one, for integers: the result is one."""

    real: str
    integer: str = ""


SPELLINGS: Mapping[str, Spelling] = MappingProxyType(
    {
        "exp": Spelling("exp({})"),
        "expm1": Spelling("expm1({})"),
        "log": Spelling("log({})"),
        "log1p": Spelling("log1p({})"),
        "log2": Spelling("log2({})"),
        "log10": Spelling("log10({})"),
        "sqrt": Spelling("sqrt({})"),
        "rsqrt": Spelling("rsqrt({})"),
        "cbrt": Spelling("cbrt({})"),
        "square": Spelling("tofu::square({})", "tofu::square({})"),
        "reciprocal": Spelling("(real(1) / {})"),
        "abs": Spelling("fabs({})", "tofu::absolute({})"),
        "sign": Spelling("tofu::sign({})", "tofu::sign({})"),
        "floor": Spelling("floor({})", "{}"),
        "ceil": Spelling("ceil({})", "{}"),
        "round": Spelling("rint({})", "{}"),
        "trunc": Spelling("trunc({})", "{}"),
        "sin": Spelling("sin({})"),
        "cos": Spelling("cos({})"),
        "tan": Spelling("tan({})"),
        "arcsin": Spelling("asin({})"),
        "arccos": Spelling("acos({})"),
        "arctan": Spelling("atan({})"),
        "arctan2": Spelling("atan2({}, {})"),
        "sinh": Spelling("sinh({})"),
        "cosh": Spelling("cosh({})"),
        "tanh": Spelling("tanh({})"),
        "arcsinh": Spelling("asinh({})"),
        "arccosh": Spelling("acosh({})"),
        "arctanh": Spelling("atanh({})"),
        "sigmoid": Spelling("tofu::sigmoid({})"),
        "softplus": Spelling("tofu::softplus({})"),
        "relu": Spelling("tofu::relu({})", "tofu::relu({})"),
        "erf": Spelling("erf({})"),
        "erfc": Spelling("erfc({})"),
        "gamma": Spelling("tofu::gamma_function({})"),
        "gammaln": Spelling("tofu::log_gamma({})"),
        "digamma": Spelling("tofu::digamma({})"),
        "maximum": Spelling("tofu::maximum({}, {})", "tofu::maximum({}, {})"),
        "minimum": Spelling("tofu::minimum({}, {})", "tofu::minimum({}, {})"),
        "power": Spelling("pow({}, {})"),
        "hypot": Spelling("hypot({}, {})"),
        "uniform": Spelling("tofu::uniform({}, {}, {})"),
    }
)
"""Every entry of `tdl.functions.FUNCTIONS` but `where`, which is C's conditional expression."""


def spelling(operator: str, function: str) -> Spelling:
    """Return the spelling of a function. Raises OperatorError for one that has none."""
    found = SPELLINGS.get(function)
    if found is None:
        raise OperatorError(
            f"{operator}: CUDA has no spelling of the scalar function {function!r}; "
            "attach a kernel to the operator or write the function with others"
        )
    return found

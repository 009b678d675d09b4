"""The Tensor Description Language: text to a checked syntax tree, and back."""

from .decorator import op_location, op_source
from .derivatives import derivative
from .functions import CONSTANTS, FUNCTIONS, ScalarFunction
from .interpreter import interpret
from .markers import Max, Min, Opaque, Prod, Sum, pad
from .parser import parse, parse_expression
from .printer import format, format_expression, format_lambda
from .source import Diagnostic, Source, SourceError
from .traverse import Node, children, levels, rebuild, transform, walk

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Diagnostic",
    "Max",
    "Min",
    "Node",
    "Opaque",
    "Prod",
    "ScalarFunction",
    "Source",
    "SourceError",
    "Sum",
    "children",
    "derivative",
    "format",
    "format_expression",
    "format_lambda",
    "interpret",
    "levels",
    "op_location",
    "op_source",
    "pad",
    "parse",
    "parse_expression",
    "rebuild",
    "transform",
    "walk",
]

"""The Tensor Description Language: text to a checked syntax tree, and back."""

from .functions import FUNCTIONS, ScalarFunction
from .parser import parse, parse_expression
from .printer import format, format_expression, format_lambda
from .source import Diagnostic, Source, SourceError
from .traverse import children, rebuild, transform, walk

__all__ = [
    "FUNCTIONS",
    "Diagnostic",
    "ScalarFunction",
    "Source",
    "SourceError",
    "children",
    "format",
    "format_expression",
    "format_lambda",
    "parse",
    "parse_expression",
    "rebuild",
    "transform",
    "walk",
]

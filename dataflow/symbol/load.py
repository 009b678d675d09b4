"""Load symbols from graph files, of MXNet or of `Symbol.save`."""

from __future__ import annotations

from pathlib import Path

from ...errors import GraphError, TofuError
from ...support.checked_argument import path_of
from ...support.opened_files import read_regular
from ...support.strict_documents import JSON_LIMIT_BYTES
from .serialize import read_json
from .symbol import Symbol


def load(path: str | Path) -> Symbol:
    """Load the symbol in a file. Raises GraphError for one that is missing or malformed."""
    try:
        text = read_regular(path_of(path, "path", GraphError), JSON_LIMIT_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise GraphError(f"the graph file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GraphError(f"{path} is not a graph file: {error}") from None
    try:
        return load_json(text)
    except TofuError as error:
        raise error.saying(f"{path}: {error}") from error


def load_json(text: str) -> Symbol:
    """Read a symbol that `tojson` wrote, here or in MXNet. Raises GraphError, OperatorError."""
    symbol = Symbol(read_json(text))
    symbol.list_arguments()
    return symbol

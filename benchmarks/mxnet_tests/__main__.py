"""MXNet's own unit tests on `tofu.mx`: how many pass, and why others do not.

    git clone --depth 1 --branch 1.9.1 https://github.com/apache/mxnet checkout
    pip install pynose scipy
    python -m benchmarks.mxnet_tests checkout [--only operator] [--seconds 20] [--save FILE]

Every test runs in a separate process on the same seeds. `--save` keeps the results in a file, under the
version of the checkout. Tests that the file has already are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import tofu.mx
from benchmarks.machine import described
from benchmarks.outside.apart import Report, Row, apart
from benchmarks.record import keep

from .collection import FILES, Test, collected, version
from .reasons import Reason, reason_of

LENGTH = 160
"""Characters of a message that are kept."""
WAIT = 20
"""A test that waits is stopped after this many times its processor time."""


def examined(test: Test, seconds: float, loud: bool) -> Row:
    """Return the outcome of a test: the reason, and the message if it did not pass."""
    row = apart(_work(test, seconds, loud), WAIT * seconds)
    if "reason" not in row:
        return {"reason": Reason.UNFINISHED.value, "message": row["stopped"]}
    return row


class _TooLong(BaseException):
    """The processor time of a test is used up."""


def _stop(*_: object) -> None:
    raise _TooLong


def _work(test: Test, seconds: float, loud: bool) -> Callable[[Report], None]:
    def work(report: Report) -> None:
        signal.signal(signal.SIGXCPU, _stop)
        limit = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        if not loud:
            os.dup2(silence, 2)
        random.seed(0)
        np.random.seed(0)
        tofu.mx.random.seed(0)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                test.run()
            except _TooLong:
                text = f"over {limit} s of processor time"
                report({"reason": Reason.UNFINISHED.value, "message": text})
            except Exception as error:
                traceback.print_exc()
                report({"reason": reason_of(error).value, "message": _line(error)})
            else:
                report({"reason": Reason.PASSES.value})

    return work


def _line(error: Exception) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:LENGTH]


def table(rows: Iterable[Row]) -> str:
    """Return the number of tests for each reason."""
    counts = Counter(row["reason"] for row in rows)
    lines = [f"{counts[reason.value]:5}  {reason.value}" for reason in Reason if counts[reason.value]]
    return "\n".join([*lines, f"{counts.total():5}  in all"])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mxnet_tests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkout", type=Path, help="folder of MXNet's sources")
    parser.add_argument("--only", choices=FILES, action="append", help="run the tests of this file")
    parser.add_argument("--test", action="append", help="run the test of this name")
    parser.add_argument("--seconds", type=float, default=20, help="stop a test after this processor time")
    parser.add_argument(
        "--traceback", action="store_true", help="show what tests write, and their tracebacks"
    )
    parser.add_argument("--save", type=Path, help="keep the results in this file")
    arguments = parser.parse_args()
    number, path = version(arguments.checkout), arguments.save
    saved = json.loads(path.read_text("utf-8")) if path is not None and path.exists() else {}
    rows: dict[str, Row] = saved.setdefault(number, {**described(), "tests": {}})["tests"]
    for test in collected(arguments.checkout.resolve()):
        name = f"{test.file}.{test.name}"
        chosen = test.file in (arguments.only or FILES) and test.name in (arguments.test or [test.name])
        if not chosen or name in rows:
            continue
        row = rows[name] = examined(test, arguments.seconds, arguments.traceback)
        print(f"{name}: {row['reason']}: {row.get('message', '')}", flush=True)
        keep(saved, path)
    print(table(rows.values()))


if __name__ == "__main__":
    main()

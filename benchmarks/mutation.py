"""How many small faults planted in the analyzer its tests notice.

    python -m benchmarks.mutation --sample 600 --seed 1 --save build/mutation.json

mutmut writes the mutants; this command draws a sample of them, uniformly and the same for the same seed, and
tries each in a forked process: the mutant's code replaces the function's, then the tests that reach its lines
run, quickest first, until one fails. A test that takes ten times its usual processor time kills as well.
What `--save` names is read first: mutants it calls killed are not tried again, so that after tests were
added only survivors are. Needs the extras `mutation` and `audit`.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import coverage
import hypothesis
import pytest

from benchmarks.mutants import ROOT, Mutant, mutants

TESTS = ["tests/analyzer", "tests/operators/audit"]
KILLED = ("failed", "too slow")


@dataclass(frozen=True)
class Reach:
    """The cost of one test: processor seconds, and the lines of each file it runs."""

    seconds: float
    lines: Mapping[str, frozenset[int]]


class Trials:
    """A plugin of pytest: instead of running the tests, tries every mutant against those that reach it."""

    def __init__(self, sample: Sequence[Mutant], seconds: float, done: Callable[[Mutant, str, str], None]):
        self.sample = sample
        self.seconds = seconds
        self.done = done
        self.answer: int | None = None
        self.caches: list[Any] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.caches = _caches()
        answer, ended = self._forked(lambda: self._reach(items.values()))
        if ended:
            pytest.exit(f"without any mutant this failed: {answer}", returncode=2)
        reach = {
            name: Reach(seconds, {path: frozenset(lines) for path, lines in files.items()})
            for name, (seconds, files) in json.loads(answer).items()
        }
        for mutant in self.sample:
            names = self._chosen(mutant, reach)
            killer, ended = self._forked(lambda m=mutant, n=names: self._attempt(m, n, items, reach))
            outcome = "too slow" if ended == signal.SIGPROF else "failed" if ended else "survived"
            self.done(mutant, outcome if names else "not reached", killer)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._end(report.nodeid, 1)

    def _chosen(self, mutant: Mutant, reach: Mapping[str, Reach]) -> list[str]:
        """Tests of the lines changed, else of the function; the quickest, up to `seconds` in sum."""
        for lines in (mutant.lines, mutant.body):
            reached = [name for name in reach if lines & reach[name].lines.get(mutant.path, frozenset())]
            if reached:
                break
        chosen, total = [], 0.0
        for name in sorted(reached, key=lambda name: reach[name].seconds):
            total += reach[name].seconds
            if total <= self.seconds or not chosen:
                chosen.append(name)
        return chosen

    def _forget(self) -> None:
        for cache in self.caches:
            cache.cache_clear()

    def _attempt(
        self,
        mutant: Mutant,
        names: Sequence[str],
        items: Mapping[str, pytest.Item],
        reach: Mapping[str, Reach],
    ) -> str:
        self._forget()
        mutant.install()
        for name in names:
            os.write(self.answer, f"\n{name}".encode())
            signal.setitimer(signal.ITIMER_PROF, 1 + 10 * reach[name].seconds)
            _run(items[name])
        return ""

    def _reach(self, items: Sequence[pytest.Item]) -> str:
        tracer = coverage.Coverage(data_file=None, include=[f"{ROOT}/analyzer/*"])
        tracer.start()
        seconds = {}
        for item in items:
            self._forget()
            tracer.switch_context(item.nodeid)
            start = process_time()
            _run(item)
            seconds[item.nodeid] = process_time() - start
        tracer.stop()
        lines: dict[str, dict[str, list[int]]] = {name: defaultdict(list) for name in seconds}
        data = tracer.get_data()
        for file in data.measured_files():
            path = Path(file).relative_to(ROOT).as_posix()
            for line, names in data.contexts_by_lineno(file).items():
                for name in filter(None, names):
                    lines[name][path].append(line)
        return json.dumps({name: (seconds[name], lines[name]) for name in seconds})

    def _forked(self, work: Callable[[], str]) -> tuple[str, int]:
        """Return the last line that `work` prints in a separate process, and the process's exit status."""
        reading, self.answer = os.pipe()
        child = os.fork()
        if not child:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            try:
                self._end(work(), 0)
            except BaseException as error:
                self._end(f"{type(error).__name__}: {error}"[:200], 1)
        os.close(self.answer)
        with open(reading, encoding="utf-8") as answers:
            said = answers.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return said.rpartition("\n")[2], abs(status)

    def _end(self, answer: str, status: int) -> None:
        if self.answer is None:
            raise RuntimeError(f"{answer} failed before any mutant was tried")
        data = f"\n{answer}".encode()
        while data:
            data = data[os.write(self.answer, data) :]
        os._exit(status)


def _run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _caches() -> list[Any]:
    """Caches that answer one test what another one, or no mutant, computed; none of the language."""
    caches = (known for known in gc.get_objects() if isinstance(known, functools._lru_cache_wrapper))
    modules = ("tofu.analyzer", "tofu.operators")
    return [cache for cache in caches if cache.__module__.startswith(modules)]


def interval(killed: int, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of a rate."""
    z, rate = 1.96, killed / count
    middle = rate + z * z / (2 * count)
    reach = z * (rate * (1 - rate) / count + z * z / (4 * count * count)) ** 0.5
    return (middle - reach) / (1 + z * z / count), (middle + reach) / (1 + z * z / count)


def report(sample: Sequence[Mutant], outcomes: Mapping[str, Sequence[str]]) -> None:
    """Print every survivor with its change, then the kill rate of each file and of all."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for mutant in sorted(sample, key=lambda mutant: mutant.key):
        outcome = outcomes[mutant.key][0]
        for row in (rows[mutant.path], rows["~ all"]):
            row[0] += outcome in KILLED
            row[1] += 1
        if outcome not in KILLED:
            print(f"\n{outcome}: {mutant.key}\n{mutant.change}")
    print("\n| file | mutants | killed | rate |\n|---|---|---|---|")
    for path, (killed, count) in sorted(rows.items()):
        print(f"| {path.removeprefix('~ ')} | {count} | {killed} | {killed / count:.0%} |")
    low, high = interval(*rows["~ all"])
    slow = sum(outcomes[mutant.key][0] == "too slow" for mutant in sample)
    print(f"\n95% interval of the kill rate: {low:.1%} to {high:.1%}; {slow} of the killed were too slow")


def main() -> None:
    parser = argparse.ArgumentParser(description="Plant faults in the analyzer; see which its tests notice.")
    parser.add_argument("--sample", type=int, default=600, help="how many mutants; 0 is all")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="one sample for each")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests, at most, for one mutant")
    parser.add_argument("--save", type=Path, help="read outcomes from this file, and write them there")
    parser.add_argument("tests", nargs="*", default=TESTS, help="where the tests are")
    arguments = parser.parse_args()

    known = [mutant for path in sorted((ROOT / "analyzer").rglob("*.py")) for mutant in mutants(path)]
    samples = {
        seed: sorted(known, key=lambda mutant, seed=seed: mutant.rank(seed))[: arguments.sample or None]
        for seed in arguments.seed
    }
    outcomes: dict[str, Sequence[str]] = {}
    if arguments.save and arguments.save.is_file():
        outcomes = json.loads(arguments.save.read_text("utf-8"))
    drawn = {mutant.key: mutant for sample in samples.values() for mutant in sample}
    left = [mutant for mutant in drawn.values() if outcomes.get(mutant.key, ("",))[0] not in KILLED]
    print(f"{len(known)} mutants, {len(drawn)} drawn, {len(left)} to try", flush=True)

    def done(mutant: Mutant, outcome: str, killer: str) -> None:
        outcomes[mutant.key] = (outcome, killer)
        if outcome not in KILLED:
            print(f"{outcome}: {mutant.key}", flush=True)
        if arguments.save:
            arguments.save.write_text(json.dumps(outcomes, indent=1), "utf-8")

    hypothesis.settings.register_profile(
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    hypothesis.settings.load_profile("mutation")
    if left:
        options = ["-p", "no:cacheprovider", "-s", f"--rootdir={ROOT}"]
        code = pytest.main([*options, *arguments.tests], [Trials(left, arguments.seconds, done)])
        if code:
            sys.exit(int(code))
    for seed, sample in samples.items():
        print(f"\nSample {seed}")
        report(sample, outcomes)


if __name__ == "__main__":
    main()

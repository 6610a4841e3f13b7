"""Runs a project's own tests on each breakage of an environment, and counts the breakages that they notice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pytest_hermes_env.contract.mutation.breakage import Breakage
from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.source.overlay import settings

PASSED, NO_TESTS, USAGE = 0, 5, 4
"""Exit codes of pytest."""

PATIENCE = 10.0
"""How many times as long as on the whole environment the tests may take on a broken one, before they count as hanging."""

MIN_TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the tests said to one breakage. ``how``: "caught", "hung" (which is caught, too) or "survived"."""

    breakage: Breakage
    how: str

    @property
    def is_caught(self) -> bool:
        """Whether the tests noticed."""
        return self.how != "survived"


def try_tests(
    breakages: Sequence[Breakage], arguments: Sequence[str], *, jobs: int = 1, report: Callable[[Trial], None] = lambda _: None
) -> list[Trial]:
    """Return one trial per breakage; ``arguments`` go to pytest, ``report`` gets each trial as soon as it is over.

    Raises: the tests fail, are none, or do not import the environment when it is whole → UsageError.
    """
    with tempfile.TemporaryDirectory(prefix="hermes-env-mutants-") as directory:
        patience_s = _whole(breakages, arguments, Path(directory))

        def one(number: int) -> Trial:
            breakage = breakages[number]
            folder = Path(directory) / str(number)
            folder.mkdir()
            trial = Trial(breakage=breakage, how=_outcome(breakage, arguments, folder, patience_s))
            report(trial)
            return trial

        with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
            return list(pool.map(one, range(len(breakages))))


def score(trials: Sequence[Trial]) -> float:
    """Return the share of breakages that were caught, from 0 to 1."""
    return sum(trial.is_caught for trial in trials) / len(trials)


def _whole(breakages: Sequence[Breakage], arguments: Sequence[str], folder: Path) -> float:
    """Run the tests on the whole environment; return how many seconds they may take on a broken one."""
    files = list(dict.fromkeys(breakage.module.file for breakage in breakages))
    start = time.monotonic()
    for number, file in enumerate(files):
        place = folder / f"whole-{number}"
        place.mkdir()
        run = _start(file, Path(file).read_bytes(), arguments, place)
        output, _ = run.communicate()
        if run.returncode != PASSED:
            raise UsageError(_why_not(run.returncode, arguments, output))
        if not (place / "seen").exists():
            raise UsageError(
                f"the tests never import {file}, so they cannot detect its defects.\n"
                f"  tests     pytest {' '.join(arguments)}\n"
                "  fix       name the tests of this environment after `--`, as for pytest"
            )
    return max(MIN_TIMEOUT_S, PATIENCE * (time.monotonic() - start))


def _why_not(code: int, arguments: Sequence[str], output: str) -> str:
    tail = "\n".join(f"  | {line}" for line in output.strip().splitlines()[-8:])
    command = " ".join(["pytest", *arguments])
    if code == NO_TESTS:
        return f"there are no tests to run: `{command}` collects none.\n{tail}\n  fix       name them after `--`"
    if code == USAGE:
        return f"pytest does not understand `{command}`:\n{tail}"
    return (
        f"the tests fail on the unchanged environment (`{command}` ended with {code}), so their result on a mutant "
        f"would be meaningless.\n{tail}\n  fix       fix the tests first, or leave failing ones out with --deselect after `--`"
    )


def _outcome(breakage: Breakage, arguments: Sequence[str], folder: Path, patience_s: float) -> str:
    run = _start(breakage.module.file, breakage.text, ["-x", *arguments], folder)
    try:
        output, _ = run.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        return "hung"
    if run.returncode in {NO_TESTS, USAGE}:
        raise UsageError(f"pytest ended with {run.returncode} on a breakage: {shorten(output)}")
    return "survived" if run.returncode == PASSED else "caught"


def _start(file: str, text: bytes, arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    (folder / "text.py").write_bytes(text)
    environ = os.environ | settings(file=file, text=str(folder / "text.py"), seen=str(folder / "seen"))
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ)

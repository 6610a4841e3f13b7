"""``hermes-env watch``: play and judge an environment again each time that its files change.

Place in the flow: the command keeps a player process that has loaded atroposlib and hermes, and this process, which has loaded pytest and
the rules; each verdict is a contract run in a fork of this process, on a fork of that one, so that nothing of one run is left for the next.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_hermes_env.contract import rules as _rules  # noqa: F401 - loaded once, before the first fork
from pytest_hermes_env.contract.judge.subject import subjects_of
from pytest_hermes_env.play.hermes_home import HermesHome
from pytest_hermes_env.play.player_process import PlayerProcess

LOOK_S = 0.2
"""Seconds between two looks at the files."""
MOST_FILES = 2000
"""Files below the directory of the environment that are looked at."""
KINDS = frozenset({".py", ".yaml", ".yml", ".toml", ".json", ".jsonl"})


def watch(targets: Sequence[str], flags: Sequence[str], report: Callable[[str], None]) -> int:
    """Judge ``targets`` now and after each change, with further flags of pytest, until Ctrl-C; return 0.

    Raises: a target without a class → BadTarget.
    """
    folders = sorted({os.path.dirname(subject.path) for target in targets for subject in subjects_of(target)})
    home = HermesHome(None)  # one for all runs: hermes keeps where it was when it was imported
    home.enter()
    arguments = [word for target in targets for word in ("--hermes-env", target)]
    arguments += ["--hermes-home", os.environ["HERMES_HOME"], "-p", "no:cacheprovider", "-p", "no:xdist"]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-q", "--no-header", *flags]
    player = PlayerProcess()
    try:
        while True:
            if not player.is_alive():
                player.close()
                player = PlayerProcess()
            seen = _state(folders)
            start = time.monotonic()
            code = _run(arguments, player)
            verdict = {0: "passed", 1: "failed"}.get(code, f"ended with exit code {code}")
            report(f"hermes-env watch: {verdict} after {time.monotonic() - start:.1f} s; save a file, or press Ctrl-C")
            while _state(folders) == seen:
                time.sleep(LOOK_S)
    except KeyboardInterrupt:
        report("")
    finally:
        player.close()
        home.leave()
    return 0


def _run(arguments: list[str], player: PlayerProcess) -> int:
    """Make a contract run in a fork of this process; return its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        code = 3
        with contextlib.suppress(BaseException):
            code = int(pytest.main(arguments, plugins=[player]))  # which the run finds and uses
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    try:
        _, status = os.waitpid(pid, 0)
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        os.waitpid(pid, 0)
        raise
    return os.waitstatus_to_exitcode(status)


def _state(folders: Sequence[str]) -> dict[str, int]:
    """Return the time of the last change of each file that an environment may read."""
    found: dict[str, int] = {}
    for path in _files(folders):
        with contextlib.suppress(OSError):
            found[path] = os.stat(path).st_mtime_ns
        if len(found) == MOST_FILES:
            break
    return found


def _files(folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        for place, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if not name.startswith((".", "__pycache__")))
            yield from (os.path.join(place, name) for name in names if Path(name).suffix in KINDS)

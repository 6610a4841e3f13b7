"""What a pytest run has played: each class once, in one directory of evidence, also where pytest-xdist has many workers.

Place in the flow: the contract session hands in jobs; what was played is read from the parts that the player leaves here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.evidence_file import PlayedClass, keep_evidence, read_evidence
from pytest_hermes_env.play.player import Listener, play_all, play_here
from pytest_hermes_env.play.player_process import PlayerProcess, play_in_fresh_process, play_twice

PREFIX = "hermes-env-evidence-"


class Plays:
    """The evidence of one run. ``run_id`` is that of a run of pytest-xdist, whose workers share one directory; empty elsewhere."""

    def __init__(self, config: pytest.Config, listener: Listener | None, run_id: str) -> None:
        self._config = config
        self._listener = listener
        self._run_id = run_id
        self._directory = ""

    def played(self, jobs: Sequence[Job]) -> list[PlayedClass]:
        """Return what was played for each job; those that no worker has played yet are played now."""
        keys = _keys(jobs)
        with self._alone():
            missing = {key: job for key, job in zip(keys, jobs, strict=True) if not self._parts(key)}
            for in_process in (False, True):
                self._play({key: job for key, job in missing.items() if (job.env_class is not None) is in_process}, in_process)
        return [played for key in keys for played in read_evidence(*self._parts(key))]

    def keep(self, file: str) -> bool:
        """Write what the run has played into ``file``; return whether there was anything. Raises: UsageError."""
        parts = self._parts()
        if parts:
            keep_evidence(file, parts)
        return bool(parts)

    def close(self) -> None:
        """Remove the directory; a worker leaves it to its controller."""
        if os.path.isdir(self._path()) and not hasattr(self._config, "workerinput"):
            shutil.rmtree(self._path(), ignore_errors=True)

    def _play(self, jobs: dict[str, Job], in_process: bool) -> None:
        """Play jobs, and give each part its name, also those that an interruption left."""
        if not jobs:
            return
        directory = tempfile.mkdtemp(dir=self._path())
        kept = next((plugin for plugin in self._config.pluginmanager.get_plugins() if isinstance(plugin, PlayerProcess)), None)
        try:
            if self._config.getoption("hermes_player") == "here":
                for number, job in enumerate(jobs.values()):
                    os.rename(play_here(job, directory, self._listener), os.path.join(directory, f"class-{number}.jsonl"))
            else:
                play = play_all if in_process else kept.play if kept is not None else play_in_fresh_process
                play_twice(play, list(jobs.values()), directory, self._listener)
        finally:
            begun = len(self._parts())
            for number, key in enumerate(jobs):
                part = os.path.join(directory, f"class-{number}.jsonl")
                if os.path.exists(part) and os.path.getsize(part):
                    os.rename(part, os.path.join(self._path(), f"{begun + number:06}-{key}.jsonl"))

    def _parts(self, key: str = "*") -> list[str]:
        """Return the parts with this key, in the order in which they were played."""
        return sorted(glob.glob(os.path.join(glob.escape(self._path()), f"*-{key}.jsonl"))) if self._path() else []

    def _path(self) -> str:
        if self._run_id:
            return os.path.join(tempfile.gettempdir(), PREFIX + self._run_id)
        return self._directory

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the other workers of the run from playing meanwhile."""
        if self._run_id:
            os.makedirs(self._path(), mode=0o700, exist_ok=True)
        else:
            self._directory = self._directory or tempfile.mkdtemp(prefix=PREFIX)
        with open(os.path.join(self._path(), "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _keys(jobs: Sequence[Job]) -> list[str]:
    """Return a name for each job that is the same in all workers: they collect the same tests in the same order."""
    seen: Counter[str] = Counter()
    keys = []
    for job in jobs:
        wanted = [
            value
            for field in dataclasses.fields(job)
            if field.name not in _OF_THIS_PROCESS
            for value in [getattr(job, field.name)]
        ]
        digest = hashlib.sha256(repr(wanted).encode(errors="replace")).hexdigest()[:24]
        keys.append(f"{digest}-{seen[digest]}")
        seen[digest] += 1
    return keys


_OF_THIS_PROCESS = frozenset({"env_class", "cases", "coverage"})

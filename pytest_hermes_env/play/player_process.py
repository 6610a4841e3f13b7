"""A process that has loaded atroposlib and hermes, and forks a child for each class that it is asked to play.

Place in the flow: `play_in_fresh_process` starts it, hands it jobs as one line of JSON, and hears of its progress; `hermes-env watch` keeps
one. Nothing of the user's is imported in it, so that a child begins as a fresh process would. A class is forked from here, and not from
the pytest process, because that one holds what conftest files and other tests loaded, and has threads where xdist is used.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import gc
import importlib
import importlib.machinery
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, Self

from pytest_hermes_env.errors import PlayerStopped, shorten
from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.elsewhere import HASH_SEED, are_in_the_way, has_record, job_elsewhere, join, searches_of
from pytest_hermes_env.play.player import Listener, Played, play_all
from pytest_hermes_env.play.scenario import ELSEWHERE

LOADED = (
    "atroposlib.envs.base",
    "atroposlib.api.server",
    "openai.resources",
    "model_tools",
    "tools.terminal_tool",
    "environments.hermes_base_env",
    "pytest_hermes_env.play.driver",
)
"""What takes seconds to load, and is the same for every class unless something of the user's is found in its place."""


class PlayerProcess:
    """A player process; a context that ends it."""

    def __init__(self, hash_seed: str = "") -> None:
        seeded = {"PYTHONHASHSEED": hash_seed} if hash_seed else {}
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | seeded | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Whether it can play."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and what it plays."""
        self._process.terminate()
        self._process.communicate()

    def play(self, jobs: Sequence[Job], directory: str, listener: Listener | None = None) -> list[str]:
        """Play targets in parallel, and return the parts that they left in ``directory``. Raises: it ended → PlayerStopped."""
        self.ask(jobs, directory)
        return self.answer(listener)

    def ask(self, jobs: Sequence[Job], directory: str) -> None:
        """Begin to play targets; `answer` must follow. One that has ended says so there."""
        wanted = {
            "jobs": [{name: value for name, value in dataclasses.asdict(job).items() if value is not None} for job in jobs],
            "directory": directory,
            "path": sys.path,
            "cwd": os.getcwd(),
            "variables": dict(os.environ),
        }
        with contextlib.suppress(BrokenPipeError):
            self._sent(self._process.stdin, wanted)

    def answer(self, listener: Listener | None = None) -> list[str]:
        """Return the parts of what was asked for. Raises: it ended → PlayerStopped."""
        for line in self._process.stdout or ():
            answer = json.loads(line)
            if "parts" in answer:
                return list(answer["parts"])
            if listener is not None:
                listener(Played(**answer["played"]) if answer["played"] else None)
        _, errors = self._process.communicate()
        last = errors.strip().rpartition("\n")[2]
        raise PlayerStopped(
            f"the process that plays classes ended with exit code {self._process.returncode} before it had played them: {shorten(last)}"
        )

    @staticmethod
    def _sent(stream: IO[str] | None, value: Any) -> None:
        assert stream is not None
        stream.write(json.dumps(value) + "\n")
        stream.flush()


def play_in_fresh_process(jobs: Sequence[Job], directory: str, listener: Listener | None = None) -> list[str]:
    """Play targets in a player process of their own."""
    with PlayerProcess() as process:
        return process.play(jobs, directory, listener)


def play_twice(
    play: Callable[[Sequence[Job], str, Listener | None], list[str]],
    jobs: Sequence[Job],
    directory: str,
    listener: Listener | None = None,
) -> list[str]:
    """Play jobs as ``play`` does, and beside that their searches, and what must be the same elsewhere, and return the parts with all.

    A class that a test has at hand is played elsewhere by its file; one that no other process can import, or whose cases a test holds, in
    a fork of this process. No thread waits meanwhile: a process that forks must have one.
    """
    here = [_without(job, [ELSEWHERE]) for job in jobs]
    searches = [searches_of(job) for job in here]
    rest = [
        _without(job, [name for search in own for name in search.scenarios]) for job, own in zip(here, searches, strict=True)
    ]
    wanted = {number: other for number, job in enumerate(jobs) if (other := job_elsewhere(job)) is not None}
    apart = {number: replace(job, env_class=None) for number, job in wanted.items() if job.cases is None}
    place = tempfile.mkdtemp(dir=directory)
    second = _second_player() if apart else None
    if second is not None:
        second.ask(list(apart.values()), place)
    try:
        parts = play([*rest, *itertools.chain.from_iterable(searches)], directory, listener)
    except BaseException:
        if second is not None:
            second.close()  # its answer would be taken for the next one
        raise
    others: dict[int, str] = {}
    if second is not None:
        with contextlib.suppress(PlayerStopped):  # then nothing was played there, which HE404 says
            others = dict(zip(apart, second.answer(), strict=True))
    at_hand = {n: job for n, job in wanted.items() if job.env_class is not None and not has_record(others.get(n))}
    if at_hand:
        forks = tempfile.mkdtemp(dir=directory)  # parts have numbers for names
        others |= dict(zip(at_hand, play_all(list(at_hand.values()), forks), strict=True))
    found = iter(parts[len(jobs) :])
    for number, own in enumerate(searches):
        beside = list(itertools.islice(found, len(own)))
        if beside and are_in_the_way(parts[number], *beside):
            (alone,) = play([here[number]], tempfile.mkdtemp(dir=directory), listener)
            os.replace(alone, parts[number])
            continue
        for search, part in zip(own, beside, strict=True):
            join(parts[number], part, *search.scenarios)
    for number in wanted:
        join(parts[number], others.get(number))
    return parts[: len(jobs)]


def _without(job: Job, names: Sequence[str]) -> Job:
    return replace(job, scenarios=tuple(name for name in job.scenarios if name not in names))


_second: list[PlayerProcess] = []
"""The player process with another hash seed, as soon as there is one; it is kept, because it takes long to start."""


def _second_player() -> PlayerProcess:
    if not _second or not _second[0].is_alive():
        _second[:] = [PlayerProcess(HASH_SEED)]
        atexit.register(_second[0].close)
    return _second[0]


def _serve() -> None:
    """Play what each line of the input asks for, until it ends. When this process is ended, so are the children that play."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with no_garbage_collection():  # a fifth of the time of loading
        _load(sys.path)
        gc.freeze()  # nothing of it will be garbage: no child has to look through it, and copy its pages by that
    for line in sys.stdin:
        wanted = json.loads(line)
        os.chdir(wanted["cwd"])
        os.environ.clear()
        os.environ.update(wanted["variables"])
        sys.path[:] = wanted["path"]
        jobs = [Job(**{name: _frozen(value) for name, value in job.items()}) for job in wanted["jobs"]]
        _say({"parts": play_all(jobs, wanted["directory"], _tell)})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tell(played: Played | None) -> None:
    _say({"played": dataclasses.asdict(played) if played is not None else None})


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _load(path: list[str]) -> None:
    """Load what takes long, where it is the installed one: a project's own ``tools`` must be found, and explained, in the child."""
    for name in LOADED:
        if all(_is_installed(part, path) for part in _packages(name)):
            importlib.import_module(name)


def _packages(name: str) -> Iterator[str]:
    yield name.partition(".")[0]
    if name.startswith("environments."):
        yield name


def _is_installed(name: str, path: list[str]) -> bool:
    """Whether the first module of that name on the path is the one of the installed distribution, next to this package."""
    folders = path
    if "." in name:
        package, _, name = name.partition(".")
        folders = [os.path.join(folder, package) for folder in path]
    spec = importlib.machinery.PathFinder.find_spec(name, folders)
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        return False
    if spec.origin is None:  # a namespace package, of which each project may have a part
        return True
    own = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    place = os.path.realpath(spec.origin)
    return "site-packages" in place or place.startswith(os.path.realpath(own) + os.sep)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _serve()

"""Plays classes, each in a child process of its own, and writes down what happened there and how it ended.

Place in the flow: whoever judges hands in jobs and reads the parts that they leave. A child is forked from this process, which is the
pytest process for a class that a test has at hand, else a fresh one that has loaded atroposlib and hermes and nothing of the user's
(`player_process`). What an environment does in its child ends that child. Then another one plays what is missing, one family after the
other, so that the next end belongs to the scenario that has begun.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from pytest_hermes_env.play.child import Job, begin, child_main, play
from pytest_hermes_env.play.evidence_file import EvidenceWriter, PlayedClass, read_evidence
from pytest_hermes_env.play.journal import NEVER_RETURNED, Place, Reward
from pytest_hermes_env.play.scenario import Cause, ErrorKind, ProcessEnd, Scenario, Unavailable

POLL_S = 0.1
"""Seconds between two looks at a child that says nothing."""
BLOCKED_S = 2.0
"""Seconds without a sign of life after which a listener hears which line blocks."""
EXIT_S = 5.0
"""Seconds that a process gets to end after its last scenario."""
LATER_S = 5.0
"""Seconds without a sign of life that are enough after one process had to be killed."""
MOST_PROCESSES = 8
"""How many processes of a class may end early before nothing more of it is played."""
MOST_BYTES = 4 << 30
"""Memory of a child beyond that of its parent, or half of the machine's where that is less."""
MOST_LEFT = 64 << 20
"""Longest message of a child that is read at once, in bytes."""

_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.MULTILINE)
_BELOW = re.compile(r"( in child_main\n)(?:  File .*\n)*")
"""The frames of a parent below those of its child."""


@dataclass(frozen=True)
class Played:
    """A job under way: scenarios that have ended, of ``total`` that are needed; what began last, and the line that blocks it."""

    subject: str
    total: int
    ended: int
    scenario: str
    blocked: str = ""


Listener = Callable[[Played | None], None]
"""Hears of each scenario that begins, and None when all jobs have ended."""


def play_all(jobs: Sequence[Job], directory: str, listener: Listener | None = None, processes: int = 0) -> list[str]:
    """Play the jobs in parallel, and return the path of the part that each left in ``directory``.

    Ends all children when it is interrupted.
    """
    parts = [os.path.join(directory, f"class-{number}.jsonl") for number in range(len(jobs))]
    ended = dict.fromkeys(range(len(jobs)), 0)
    total = sum(len(job.scenarios) for job in jobs)

    def told(number: int) -> Listener | None:
        def tell(played: Played | None) -> None:
            if played is not None and listener is not None:
                ended[number] = played.ended
                listener(dataclasses.replace(played, total=total, ended=sum(ended.values())))

        return None if listener is None else tell

    waiting = [_played(job, part, told(number)) for number, (job, part) in enumerate(zip(jobs, parts, strict=True))]
    running: dict[Generator[int], int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (processes or os.cpu_count() or 1):
                generator = waiting.pop(0)
                running[generator] = next(generator)
            readable, _, _ = select.select(list(running.values()), [], [], POLL_S)
            for generator, handle in list(running.items()):
                if handle in readable or not readable:
                    try:
                        running[generator] = next(generator)
                    except StopIteration:
                        del running[generator]
    finally:
        for generator in running:
            generator.close()
        if listener is not None:
            listener(None)
    return parts


def play_here(job: Job, directory: str, listener: Listener | None = None) -> str:
    """Play a job in this process, for a debugger and print; return its part. Nothing protects this process from the environment."""
    handle, part = tempfile.mkstemp(dir=directory, suffix=".jsonl")
    os.close(handle)
    try:
        with EvidenceWriter(part) as writer:
            begin(writer, job)
            play(
                job,
                writer,
                names=job.scenarios,
                is_sequential=True,
                beat=_Progress(part, job, listener).tell,
            )
    finally:
        if listener is not None:
            listener(None)
    return part


class _Progress:
    """How far a part has come, for a listener; each line is read once."""

    def __init__(self, part: str, job: Job, listener: Listener | None) -> None:
        self._part, self._job, self._listener = part, job, listener
        self._read_bytes = 0
        self._last = self._blocked = ""
        self._left = set(job.scenarios)

    def tell(self, child: _Child | None = None) -> None:
        """Say which scenario has begun last, and what blocks it; a child that is silent is asked once."""
        if self._listener is None:
            return
        with open(self._part, "rb") as lines:
            lines.seek(self._read_bytes)
            whole, newline, _ = lines.read().rpartition(b"\n")
        self._read_bytes += len(whole) + len(newline)
        begun = re.findall(rb'^\{"begins": "([^"]*)"', whole, re.MULTILINE)
        ended = re.findall(rb'^\{"scenario": \{"\$": "Scenario", "name": "([^"]*)"', whole, re.MULTILINE)
        self._left -= {name.decode(errors="replace") for name in ended}
        self._last = begun[-1].decode(errors="replace") if begun else self._last
        if child is None or not child.is_silent:
            self._blocked = ""
        elif not self._blocked:
            child.show_stack()
            (first, *_) = (*_places(child.stack, self._job), Place())
            os.truncate(child.stack, 0)
            self._blocked = f"{os.path.basename(first.path)}:{first.line} {first.function}" if first.path else "a call"
        if self._last:
            total = len(self._job.scenarios)
            self._listener(Played(self._job.target, total, total - len(self._left), self._last, self._blocked))


@dataclass
class _Child:
    """A child process: ``handle`` is the reading end of its pipe, ``stack`` the file in which it leaves its stack when asked.

    ``is_done``: it has played its last scenario; ``has_left``: it has also run what was registered for the exit.
    """

    pid: int
    handle: int
    stack: str
    is_done: bool = False
    has_left: bool = False
    is_closed: bool = False
    last_beat_s: float = field(default_factory=time.monotonic)
    busy_s: float = 0.0
    status: int | None = None

    def read(self) -> None:
        """Take in what the child has sent."""
        if self.is_closed or not select.select([self.handle], [], [], 0)[0]:
            return
        data = os.read(self.handle, MOST_LEFT)
        self.is_closed = not data
        if data:
            self.last_beat_s, self.busy_s = time.monotonic(), self._busy_s()
            self.is_done, self.has_left = self.is_done or b"d" in data, self.has_left or b"e" in data

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def is_stuck(self, limit_s: float) -> bool:
        """Whether the loop gave no sign of life for that long. Waiting for a processor on a busy machine does not count."""
        silent_s = time.monotonic() - self.last_beat_s
        if silent_s < limit_s:
            return False
        with contextlib.suppress(psutil.Error):
            if psutil.Process(self.pid).status() == psutil.STATUS_RUNNING:
                return self._busy_s() - self.busy_s >= limit_s / 4
        return True

    def _busy_s(self) -> float:
        try:
            times = psutil.Process(self.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    def memory(self) -> int:
        """Return how much memory the process uses, in bytes."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:
            return 0

    @property
    def is_silent(self) -> bool:
        """Whether the loop has been blocked for a while."""
        return not (self.is_done or self.has_ended()) and time.monotonic() - self.last_beat_s > BLOCKED_S

    def show_stack(self) -> None:
        """Let the process write its stack, from a handler in C that needs no interpreter."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        time.sleep(POLL_S)

    def kill(self) -> None:
        """End the process and what it started in its session."""
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, signal.SIGKILL)
        if self.status is None:
            _, self.status = os.waitpid(self.pid, 0)
        os.close(self.handle)


def _played(job: Job, part: str, listener: Listener | None) -> Generator[int]:
    """Play one job to its end, in as many processes as it takes; yield the handle to wait for."""
    Path(part).touch(mode=0o600)
    with EvidenceWriter(part) as parent:
        begin(parent, job)
        yield from _in_processes(job, part, parent, _Progress(part, job, listener))


def _in_processes(job: Job, part: str, parent: EvidenceWriter, progress: _Progress) -> Generator[int]:
    names, limit_s, is_sequential = frozenset(job.scenarios), job.timeout_s, False
    for number in range(MOST_PROCESSES):
        child = _started(job, part, names, is_sequential=is_sequential)
        end: str | None = None
        try:
            while end is None:
                yield child.handle
                end = _ended(child, limit_s)
                progress.tell(child)
        finally:
            child.kill()
        if end == _WELL:
            Path(child.stack).unlink(missing_ok=True)
            return
        _cut(part)
        played = _read(part)
        place, in_reward = _place(child.stack, job, played)
        Path(child.stack).unlink(missing_ok=True)
        if played.refusal:
            return
        end = f"it raised {played.died}, which ended its event loop" if played.died else end
        if played.collection.cls is None:
            died = ProcessEnd(how=end, place=place)
            parent.write("class", played.collection.without_scenarios(import_error=died))
            return
        if child.is_done or not (names - played.collection.scenarios.keys()):
            parent.write("class", played.collection.without_scenarios(at_exit=ProcessEnd(how=end, place=place)))
            return
        if is_sequential or len({family for _, family in played.unfinished}) == 1:
            for record in _records(played, names, end, place, is_last=number == MOST_PROCESSES - 2, in_reward=in_reward):
                parent.write("scenario", record)
        parent.write("ended", end)
        names -= _read(part).collection.scenarios.keys()
        limit_s, is_sequential = min(limit_s, LATER_S), True
        if not names:  # those that could be played are, and the others have their reason
            return


_BROKEN = 70
"""The exit code of a child whose environment ended the loop."""
_WELL = ""
"""The end of a process that played all and ended by itself."""


def _ended(child: _Child, limit_s: float) -> str | None:
    """Return how a process ended, or why it is to be killed, as the end of a sentence; empty if all is well, None while it goes on."""
    child.read()
    if child.has_ended():
        child.read()
        assert child.status is not None
        code = os.waitstatus_to_exitcode(child.status)
        if child.has_left and code == 0:
            return _WELL
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"it ended its process with exit code {code}"
    if child.is_done:
        if time.monotonic() - child.last_beat_s < EXIT_S:
            return None
        child.show_stack()
        return f"its process did not end within {EXIT_S:g} s after its last scenario"
    if child.memory() > _most_bytes():
        child.show_stack()
        return f"its process used more than {_most_bytes() / (1 << 30):.1f} GiB of memory"
    if child.is_stuck(limit_s):
        child.show_stack()
        return f"it blocked the event loop for {limit_s:g} s and did not return"
    return None


def _most_bytes() -> int:
    return psutil.Process().memory_info().rss + min(MOST_BYTES, psutil.virtual_memory().total // 2)


def _records(
    played: PlayedClass, names: Iterable[str], end: str, place: Place, *, is_last: bool, in_reward: bool
) -> Iterable[Scenario]:
    """Yield a record of the scenario in which a process ended, and of those that cannot be played because of it."""
    from pytest_hermes_env.play.scenarios import families_of  # noqa: PLC0415 - what a parent needs only now

    missing = frozenset(names) - played.collection.scenarios.keys()
    begun, family_of_begun = played.unfinished[-1] if played.unfinished else ("", "")
    families = families_of(missing)
    family = next((family for family in families if family_of_begun in family.scenarios), None)
    own = [name for name in family.scenarios if name in missing] if family is not None else []
    culprit = begun if begun in own else ""  # a step between scenarios, such as a group that fills buffers, is none of them
    is_setup = begun.startswith("setup") or begun == "" or not played.collection.scenarios
    if culprit and not is_setup:
        kind = ErrorKind.NEVER_ENDED if "did not return" in end else ErrorKind.ENDED_PROCESS
        reward = Reward(
            value=None,
            error=NEVER_RETURNED if kind is ErrorKind.NEVER_ENDED else f"did not return: {end}",
            injected=False,
            place=place,
        )
        yield Scenario(name=culprit, error=end, error_kind=kind, error_place=place, events=(reward,) if in_reward else ())
        missing -= {culprit}
        if not is_last:
            missing &= frozenset(own)  # other families are played in the next process
    cause = Cause.EARLIER_FAILURE if not is_setup else Cause.SETUP_FAILED if begun else Cause.CANNOT_BUILD
    for name in missing:
        yield Scenario(name=name, unavailable=Unavailable(cause, end, place))


def _place(stack: str, job: Job, played: PlayedClass) -> tuple[Place, bool]:
    """Return the environment's line in the stack that a process left, and whether it was computing a reward."""
    cls = played.collection.cls
    places = _places(stack, job, cls.place.path if cls is not None else "")
    first = next(iter(places), Place())
    return first, any(place.function == "compute_reward" for place in places) or _is_in_reward(first)


def _places(stack: str, job: Job, file: str = "") -> list[Place]:
    """Return the lines of a stack, the last call first, that stand next to the class."""
    text = Path(stack).read_text(encoding="utf-8", errors="replace") if os.path.exists(stack) else ""
    folder = os.path.dirname(file or os.path.abspath(job.target.rpartition(":")[0] or job.target)) + os.sep
    return [
        Place(path=found["path"], line=int(found["line"]), function=found["function"])
        for found in _FRAME.finditer(_BELOW.sub(r"\1", text))
        if found["path"].startswith(folder)
    ]


def _is_in_reward(place: Place) -> bool:
    """Whether a line stands in compute_reward: a deep recursion hides the frames below it."""
    try:
        tree = ast.parse(Path(place.path).read_bytes())
    except (OSError, SyntaxError):
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == "compute_reward"
        and node.lineno <= place.line <= (node.end_lineno or 0)
        for node in ast.walk(tree)
    )


def _read(part: str) -> PlayedClass:
    (played,) = read_evidence(part)
    return played


def _cut(part: str) -> None:
    """Cut off a last line that a killed process did not finish."""
    data = Path(part).read_bytes()
    os.truncate(part, data.rfind(b"\n") + 1)


def _started(job: Job, part: str, names: frozenset[str], *, is_sequential: bool) -> _Child:
    """Fork a child that plays some scenarios of a job."""
    stack = f"{part}.stack"
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    leave = os._exit  # which is replaced later
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid=pid, handle=reading, stack=stack)
    try:
        os.close(reading)
        child_main(job, part, stack, names, writing, is_sequential=is_sequential)
    finally:
        leave(_BROKEN)  # the frames above belong to the parent

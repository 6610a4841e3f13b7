"""Scores all rollouts of some files again: in parallel processes, resumably, with a summary of what training would have seen.

Each result is a line of the output file as soon as it is there. A later run with the same reward takes what is there, and does the rest.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import math
import multiprocessing
import multiprocessing.util
import os
import re
import signal
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import HermesEnvError, UsageError, shorten
from pytest_hermes_env.records.found import Found
from pytest_hermes_env.records.reading import Line, read_lines

try:
    import fcntl
except ImportError:  # another system
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pytest_hermes_env.records.live_judge import LiveJudge
    from pytest_hermes_env.records.rescoring import Rescored, Rescorer

SAME = 1e-9
SHOWN = 3
"""Rollouts that are named for each thing that was found."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to score again. ``target`` names the environment; see `rescoring.Rescorer` for the rest.

    ``elsewhere``: each reward is computed a second time in a process that computed none before, with another hash seed and time zone; else here.
    """

    target: str
    allowed: tuple[str, ...] = ()
    pass_score: float = 0.5
    settings: tuple[tuple[str, Any], ...] = ()
    workers: int = 1
    live: LiveJudge | None = None
    elsewhere: bool = False

    def rescorer(self) -> Rescorer:
        """Return what scores one rollout."""
        from pytest_hermes_env.records.rescoring import Rescorer  # noqa: PLC0415 - heavy

        return Rescorer(
            self.target, allowed=self.allowed, pass_score=self.pass_score, settings=dict(self.settings), live=self.live
        )


@dataclass(frozen=True, kw_only=True)
class GroupChange:
    """A group whose rollouts were all scored again. ``signs``: rollouts whose advantage has another sign."""

    group: str
    signs: int
    became_constant: bool
    was_constant: bool


@dataclass(kw_only=True)
class Summary:
    """What came of scoring again. ``problems``: lines without a rollout."""

    results: list[Rescored] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Rollouts by status."""
        return Counter(one.status for one in self.results)

    def of(self, status: str) -> list[Rescored]:
        """Return the rollouts with a status."""
        return [one for one in self.results if one.status == status]

    @property
    def share_of_findings(self) -> float:
        """The share of the scored rollouts that moved, flipped, failed or cannot be scored again."""
        scored = [one for one in self.results if one.status != "unscored"]
        return sum(one.status != "unchanged" for one in scored) / len(scored) if scored else float(bool(self.results))

    @property
    def groups(self) -> list[GroupChange]:
        """The groups of several rollouts that were all scored again, in the order of the file."""
        held: dict[tuple[str, str, int], list[Rescored]] = defaultdict(list)
        for one in self.results:
            if one.group is not None and one.status != "unscored":
                held[one.file, one.run, one.group].append(one)
        whole = {key: ones for key, ones in held.items() if len(ones) > 1 and all(one.after is not None for one in ones)}
        return [_change(f"g{key[2]}", ones) for key, ones in whole.items()]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "format": "hermes-rescored/1",
            "counts": dict(self.counts),
            "share_of_findings": self.share_of_findings,
            "groups": [asdict(group) for group in self.groups],
            "rollouts": [asdict(one) for one in self.results],
            "problems": self.problems,
        }


def _change(name: str, ones: Sequence[Rescored]) -> GroupChange:
    before, after = (
        [float(value or 0) for value in column] for column in zip(*((one.before, one.after) for one in ones), strict=True)
    )
    old, new = _signs(before), _signs(after)
    return GroupChange(
        group=name,
        signs=sum(one != other for one, other in zip(old, new, strict=True)),
        became_constant=any(old) and not any(new),
        was_constant=any(new) and not any(old),
    )


def _signs(rewards: Sequence[float]) -> list[int]:
    mean = fmean(rewards)
    return [0 if abs(reward - mean) < 1e-9 else 1 if reward > mean else -1 for reward in rewards]  # noqa: PLR2004


# ---------------------------------------------------------------------- the run


def rescore_files(
    files: Sequence[str | Path],
    settings: Settings,
    *,
    output: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Summary:
    """Score the rollouts of the files again. ``progress`` hears how many are done, and of how many.

    Raises: a file cannot be read → UsageError; the environment cannot be built → BadTarget.
    """
    summary, lines = Summary(), []
    for line in read_lines(files):
        if line.record is None:
            summary.problems.append(f"{line.place}: {line.problem}")
        else:
            lines.append(line)
    mark = _fingerprint(settings)
    done = _done_before(output, mark)
    keys = [_key(str(line.file), line.line, line.record.id if line.record else "") for line in lines]
    left = [line for line, key in zip(lines, keys, strict=True) if key not in done]
    progress(len(lines) - len(left), len(lines))
    is_torn = output is not None and output.exists() and output.read_bytes()[-1:] not in {b"", b"\n"}
    with open(output or os.devnull, "a", encoding="utf-8") as out:
        _lock(out, output)
        out.write("\n" if is_torn else "")
        for count, result in enumerate(_results(left, settings), start=len(lines) - len(left) + 1):
            done[_key(result.file, result.line, result.id)] = result
            out.write(json.dumps({**asdict(result), "reward_code": mark}) + "\n")
            out.flush()
            progress(count, len(lines))
    summary.results = [done[key] for key in keys if key in done]
    return summary


def _lock(out: Any, output: Path | None) -> None:
    """Hold the output for this process. Raises: another one writes it → UsageError."""
    if output is not None and fcntl is not None:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # other errors: a file system without locks
            raise UsageError(
                f"{output} is being written by another process.\n  fix       wait for it, or name another --output"
            ) from None


def _results(lines: Sequence[Line], settings: Settings) -> Iterator[Rescored]:
    """Yield what each rollout earns; with ``elsewhere``, as soon as a second process has said the same, or otherwise."""
    if not lines or not settings.elsewhere:
        yield from _here(lines, settings)
        return
    with _pool(settings, min(settings.workers, len(lines))) as pool:
        with _variables(_ELSEWHERE):  # all processes of the pool start with the first call
            second = {_key(str(one.file), one.line, ""): pool.submit(_one_apart, one) for one in lines}
        waiting: deque[Rescored] = deque()
        for one in _here(lines, settings):
            waiting.append(one)
            while waiting and second[_key(waiting[0].file, waiting[0].line, "")].done():
                yield agreed(waiting[0], second[_key(waiting[0].file, waiting[0].line, "")].result())
                waiting.popleft()
        for one in waiting:
            yield agreed(one, second[_key(one.file, one.line, "")].result())


def agreed(one: Rescored, other: Rescored) -> Rescored:
    """Return what both processes say of a rollout; where they differ, it is not rescorable."""
    if "not rescorable" in {one.status, other.status}:
        return one if one.status == "not rescorable" else other
    if one.after == other.after or (
        None not in {one.after, other.after} and math.isclose(one.after or 0, other.after or 0, abs_tol=SAME)
    ):
        return one
    first, second = ("none" if found.after is None else f"{found.after:g}" for found in (one, other))
    why = f"it gave {first}, and {second} in a new process with another hash seed and time zone: it draws, or keeps, something that no record has"
    return replace(one, status="not rescorable", after=None, why=why)


_ELSEWHERE = {"PYTHONHASHSEED": "20260119", "TZ": "Pacific/Kiritimati"}


@contextlib.contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Give the processes that start in the context other variables."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _pool(settings: Settings, workers: int) -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    """Give processes that score; what waits is dropped where the context ends with an error."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        max(1, workers), mp_context=context, initializer=_begin, initargs=(settings, sys.path)
    ) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _here(lines: Sequence[Line], settings: Settings) -> Iterator[Rescored]:
    """Yield what each rollout earns: in this process, or in ``workers`` as they come to it.

    Each is asked twice; with ``elsewhere`` the first one alone, whose state no other rollout has changed here.
    """
    asked = [(line, not settings.elsewhere or place == 0) for place, line in enumerate(lines)]
    if settings.workers <= 1 or len(lines) < 2:  # noqa: PLR2004
        if lines:
            with settings.rescorer() as rescorer:
                yield from (rescorer.rescore(line, is_asked_twice=twice) for line, twice in asked)
        return
    with _pool(settings, min(settings.workers, len(lines))) as pool:
        for running in concurrent.futures.as_completed([pool.submit(_one, *one) for one in asked]):
            yield running.result()


_workers: list[Any] = []
"""The rescorer of this worker process, once it is there."""


def _begin(settings: Settings, path: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    sys.path[:] = path
    _workers.append(settings)


def _worker() -> Rescorer:
    """Return the rescorer of this worker process, which it keeps until it ends."""
    if isinstance(settings := _workers[0], Settings):
        rescorer = settings.rescorer()
        _workers[0] = rescorer.__enter__()
        multiprocessing.util.Finalize(None, rescorer.__exit__, args=(None, None, None), exitpriority=10)
    found: Rescorer = _workers[0]
    return found


def _one(line: Line, is_asked_twice: bool) -> Rescored:
    return _worker().rescore(line, is_asked_twice=is_asked_twice)


def _one_apart(line: Line) -> Rescored:
    """Score in a child of a process that has set the environment up and scored nothing: nothing is left of other rollouts."""
    rescorer = _worker()
    rescorer.prepare(line)
    if not hasattr(os, "fork"):
        return rescorer.rescore(line, is_asked_twice=False)
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            sending.send(rescorer.rescore(line, is_asked_twice=False))
        except BaseException as error:  # noqa: BLE001 - told by the parent
            sending.send(f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    sending.close()
    try:
        result: Rescored | str = receiving.recv()
    except EOFError:
        result = "it ended, and said nothing"
    finally:
        receiving.close()
        os.waitpid(child, 0)
    if isinstance(result, str):
        raise HermesEnvError(
            f"{line.place} could not be scored a second time.\n"
            "  expected  the reward of a new process, to compare with the first\n"
            f"  seen      {shorten(result)}\n"
            "  fix       leave the process alone in compute_reward: no os._exit, no signals to itself"
        )
    return result


def _key(file: str, line: int, rollout: str) -> str:
    return f"{file}:{line}:{rollout}"


def _fingerprint(settings: Settings) -> str:
    """Return what stands for the reward: the Python files next to the environment's, and the settings."""
    judge = settings.live and (settings.live.provider, settings.live.model, settings.live.base_url)
    told = (settings.target, settings.allowed, settings.pass_score, settings.settings, *([judge] if judge else []))
    digest = hashlib.sha256(repr(told).encode())
    file = Path(settings.target.rpartition(":")[0] or settings.target)
    if not file.suffix:
        file = Path(settings.target)
    for path in sorted(file.parent.glob("*.py")) if file.suffix == ".py" and file.exists() else ():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _done_before(output: Path | None, mark: str) -> dict[str, Any]:
    from pytest_hermes_env.records.rescoring import Rescored  # noqa: PLC0415 - heavy

    done: dict[str, Any] = {}
    if output is not None and output.exists():
        for text in output.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row: Mapping[str, Any] = json.loads(text)
            except ValueError:
                continue
            if isinstance(row, dict) and row.get("reward_code") == mark:
                one = Rescored(**{name: value for name, value in row.items() if name != "reward_code"})
                done[_key(one.file, one.line, one.id)] = one
    return done


# ---------------------------------------------------------------------- as text


def summary_lines(summary: Summary) -> Iterator[str]:
    """Yield the summary for a terminal."""
    counts, total = summary.counts, len(summary.results)
    yield f"{total:,} rollouts scored again"
    for status in ("unchanged", "moved", "flipped", "failed", "not rescorable", "unscored"):
        if counts[status]:
            yield f"  {status:<15}{counts[status]:>7,}{_detail(status, summary.of(status))}"
    changes = summary.groups
    if changes:
        signs = [change for change in changes if change.signs]
        constant = [change.group for change in changes if change.became_constant]
        woken = [change.group for change in changes if change.was_constant]
        yield f"  groups         {len(changes):>7,}   {len(signs)} with an advantage of another sign ({sum(one.signs for one in signs)} rollouts)"
        if constant:
            yield f"                          {len(constant)} became constant, and would train nothing: {_named(constant)}"
        if woken:
            yield f"                          {len(woken)} were constant, and would train now: {_named(woken)}"
    for status in ("flipped", "moved"):
        for one in summary.of(status)[:SHOWN]:
            yield f"  {status:<9}{one.before:g} -> {one.after:g}   {one.where}"
    for title, why, ones in _causes(summary):
        yield f"  {title}: {why}"
        yield f"      {len(ones):,} rollouts: {_named([f'{one.file}:{one.line}' for one in ones])}"
    for problem in summary.problems[:SHOWN]:
        yield f"  left out: {problem}"
    if len(summary.problems) > SHOWN:
        yield f"  left out: {len(summary.problems) - SHOWN} more lines"


def findings(summary: Summary) -> Iterator[Found]:
    """Yield what is not as it was, for a page."""
    for status in ("flipped", "moved"):
        if ones := summary.of(status):
            yield Found(
                title=f"{len(ones):,} {status}", text=_detail(status, ones).strip(), places=[one.where for one in ones[:SHOWN]]
            )
    for title, why, ones in _causes(summary):
        yield Found(title=title, text=f"{why}: {len(ones):,} rollouts", places=[one.where for one in ones[:SHOWN]])
    if summary.problems:
        yield Found(title=f"{len(summary.problems):,} lines left out", places=summary.problems[:SHOWN])


_PASSING = re.compile(r"/\S*?/hermes-\w+-\w+/|(?<=: )it has [\d,]+ bytes, (?=more than)")
"""What differs from one rollout to the next in a reason that is the same: the directory of the sandbox, a file's size."""


def _causes(summary: Summary) -> Iterator[tuple[str, str, list[Rescored]]]:
    """Yield why rollouts have no reward now, the most frequent cause first."""
    for status, title in (("not rescorable", "not stored"), ("failed", "the reward raised"), ("unscored", "no reward then")):
        causes: dict[str, list[Rescored]] = defaultdict(list)
        for one in summary.of(status):
            causes[_PASSING.sub("", one.why)].append(one)
        yield from ((title, why, ones) for why, ones in sorted(causes.items(), key=lambda pair: -len(pair[1]))[:10])


def _detail(status: str, ones: Sequence[Rescored]) -> str:
    if status not in {"moved", "flipped"}:
        return ""
    changes = [(one.after or 0.0) - (one.before or 0.0) for one in ones]
    up = sum(change > 0 for change in changes)
    return f"   {up} up, {len(ones) - up} down, on average {fmean(changes):+.3g}"


def _named(names: Collection[str]) -> str:
    shown = list(names)[:SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

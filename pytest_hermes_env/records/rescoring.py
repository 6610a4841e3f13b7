"""Computes the reward of today on a rollout of yesterday: its sandbox is restored, the verifier's commands run for real, judges answer as recorded.

Place in the flow: `hermes-env rescore`, and the tests marked ``hermes_rollouts``, have a `Rescorer` per process. A reward that reads what
was not stored has no number: `unstored` says what it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import math
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType, SimpleNamespace
from typing import Any, Literal, Self

from hermes_env_shared.rollout_record import Record, World, decode_item
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.inference.steps import say
from pytest_hermes_env.layer import find_class, layer_of
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.builder import EnvironmentBuilder
from pytest_hermes_env.play.hermes_home import HermesHome
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode
from pytest_hermes_env.records.live_judge import LiveJudge
from pytest_hermes_env.records.reading import Line
from pytest_hermes_env.records.recorded_judge import RecordedJudge
from pytest_hermes_env.records.restored import WatchedContext, restored
from pytest_hermes_env.records.unstored import Unstored

PASS = 0.5
"""The reward above which a rollout counts as good, unless the caller says otherwise."""
SAME = 1e-9
_ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SUSPENDS = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
LONGEST_S = 600.0
LONGEST_CPU_S = 60.0
AGAIN_S = 1.0
"""A reward that computes for longer is an endless one, and is told so again each second: it may catch everything."""
Status = Literal["unchanged", "moved", "flipped", "not rescorable", "failed", "unscored"]


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A rollout's reward then and now. ``why``: what is not stored, or what the reward raised. ``place`` and ``line`` find the rollout."""

    place: str
    file: str
    line: int
    id: str
    run: str
    group: int | None
    status: Status
    before: float | None = None
    after: float | None = None
    why: str = ""

    @property
    def where(self) -> str:
        """Where the rollout is, for people."""
        return f"{self.file}:{self.line} ({self.place})"


class Ended(BaseException):
    """The reward did not end, or would have ended the process: no ``except Exception`` of it goes on from there."""


@contextlib.contextmanager
def _made_to_end(cpu_s: float) -> Iterator[list[str]]:
    """End what computes or waits without an end, and what ends its process, with `Ended`; give the reason once there is one.

    Signals reach the main thread alone. Where one comes between two steps of the reward, or while asyncio schedules one, which an
    exception would lose, the task that waits for the reward is cancelled.
    """
    own, task, loop = os.getpid(), asyncio.current_task(), asyncio.get_running_loop()
    reasons: list[str] = []
    limits: dict[signal.Signals, tuple[int, float, str]] = {}
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        limits[signal.SIGPROF] = signal.ITIMER_PROF, cpu_s, f"it did not end within {cpu_s:g} s of CPU time"
        if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
            limits[signal.SIGALRM] = signal.ITIMER_REAL, LONGEST_S, f"it did not end within {LONGEST_S:g} s"

    def end(number: int, frame: FrameType | None) -> None:
        reasons.append(limits[signal.Signals(number)][2])
        if asyncio.current_task() not in {None, task} and not _schedules(frame):
            raise Ended(reasons[0])
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)  # which wakes a loop that waits

    def leave(real: Callable[..., None], *code: object) -> None:
        if os.getpid() != own:
            real(*code)
        raise Ended(f"it would have ended its process by os._exit({', '.join(map(str, code))})")

    before = {number: signal.signal(number, end) or signal.SIG_DFL for number in limits}
    try:
        for timer, seconds, _ in limits.values():
            signal.setitimer(timer, seconds, AGAIN_S)
        with intercept("os._exit", leave):
            yield reasons
    finally:
        for number, (timer, *_) in limits.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _schedules(frame: FrameType | None) -> bool:
    """Whether a function of asyncio runs here, or what the kit puts around it: a callback that it does not get to schedule never comes."""
    while frame is not None and frame.f_code.co_filename.startswith((_ASYNCIO, _OWN)):
        if not frame.f_code.co_flags & _SUSPENDS and frame.f_code.co_filename.startswith(_ASYNCIO):
            return True
        frame = frame.f_back
    return False


async def _answered(reward: Callable[..., Any], *given: Any) -> Any:
    try:
        answer = reward(*given)
        return await answer if inspect.isawaitable(answer) else answer
    except SystemExit as error:  # the loop would end with it
        raise Ended(f"it would have ended its process by SystemExit: {error}") from None


class Rescorer:
    """An environment that was set up to compute rewards. A context manager; one rollout at a time."""

    def __init__(
        self,
        target: str | type,
        *,
        allowed: Collection[str] = (),
        pass_score: float = PASS,
        settings: Mapping[str, Any] | None = None,
        live: LiveJudge | None = None,
    ) -> None:
        self._target, self._allowed, self._pass, self._live = target, frozenset(allowed), pass_score, live
        self._settings = dict(settings or {})
        self._cpu_s = LONGEST_CPU_S
        self._stack = contextlib.ExitStack()
        self._env: Any = None
        self._built: Any = None

    def __enter__(self) -> Self:
        home = HermesHome(None)
        self._stack.callback(home.leave)
        home.enter()
        if isinstance(self._target, str):
            classes = find_class(self._target)
            if len(classes) > 1:
                names = ", ".join(cls.__name__ for cls in classes)
                raise BadTarget(
                    f"{self._target} defines {len(classes)} environments: {names}. Name one: {self._target}:{classes[0].__name__}"
                )
            self._target = classes[0]
        self.env_class = self._target
        self._layer = layer_of(self.env_class)
        self._code = EnvironmentCode(self.env_class, self._layer)
        if folder := os.path.dirname(inspect.getsourcefile(self.env_class) or ""):  # where a script's late imports look
            path = sys.path[:]
            self._stack.callback(lambda: sys.path.__setitem__(slice(None), path))
            sys.path.insert(0, folder)
        self._runner = self._stack.enter_context(asyncio.Runner())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self, line: Line) -> None:
        """Set the environment up for a rollout. Raises: it cannot be → BadTarget."""
        if line.record is not None and not _why_not(line.record):
            self._runner.run(self._environment(line.record))

    def rescore(self, line: Line, *, is_asked_twice: bool = True) -> Rescored:
        """Return the reward of one rollout, then and now. Raises: the environment cannot be set up → BadTarget.

        ``is_asked_twice``: the reward is computed a second time, and has to be the same.
        """
        record = line.record
        if record is None:
            raise TypeError(f"{line.place} has no rollout: {line.problem}")
        where: dict[str, Any] = {
            "place": record.key,
            "file": str(line.file),
            "line": line.line,
            "id": record.id,
            "run": record.run,
        }
        where |= {"group": record.group, "before": record.reward}
        if record.reward is None or not math.isfinite(record.reward):
            return Rescored(**where, status="unscored", why=record.error or record.end or "it has no reward")
        if why := _why_not(record) or self._of_another(record):
            return Rescored(**where, status="not rescorable", why=why)
        unstored = Unstored(self._code, self._allowed)
        self._asked: list[Any] = []
        reward, error = self._runner.run(self._reward(line, record, unstored))
        if unstored.found:
            return Rescored(**where, status="not rescorable", why="; ".join(unstored.found))
        if error or reward is None:
            return Rescored(**where, status="failed", why=error)
        if not math.isfinite(reward):
            return Rescored(**where, status="failed", why=f"compute_reward returned {reward}")
        is_asked_twice |= abs(reward - record.reward) > SAME  # what another rollout left here may be the cause
        again, _ = self._runner.run(self._reward(line, record, unstored)) if is_asked_twice else (reward, "")
        if again is None or abs(again - reward) > SAME:
            second = "none" if again is None else f"{again:g}"
            why = f"it gave {reward:g}, and {second} when it was asked again: it draws, or keeps, something that no record has"
            return Rescored(**where, status="not rescorable", why=why)
        if abs(reward - record.reward) <= SAME:
            return Rescored(**where, status="unchanged", after=reward)
        crosses = (reward >= self._pass) != (record.reward >= self._pass)
        return Rescored(**where, status="flipped" if crosses else "moved", after=reward)

    def _of_another(self, record: Record) -> str:
        """Return that a record is another environment's; empty for a name that the user vouches for."""
        own = {self.env_class.__name__, str(getattr(self.env_class, "name", ""))}
        if not record.environment or record.environment in {*own, *self._allowed}:
            return ""
        return f"it is a rollout of {record.environment}, and this is {self.env_class.__name__}: --allow {record.environment} where it was renamed"

    async def _reward(self, line: Line, record: Record, unstored: Unstored) -> tuple[float | None, str]:
        env = await self._environment(record)
        machine = restored(record.world or World(), line, unstored)
        ctx = WatchedContext.on(machine, record, unstored)
        bound = env.compute_reward
        reward = getattr(bound, "__func__", bound)
        while vars(reward).get("__bridged__") and hasattr(reward, "__wrapped__"):
            reward = reward.__wrapped__
        reward = types.MethodType(reward, bound.__self__) if hasattr(bound, "__self__") else reward
        given = decode_item(copy.deepcopy(record.item)), self._result(record), ctx
        held, env.server = env.server, RecordedJudge(record, unstored, self._live, self._asked)
        reasons: list[str] = []
        try:
            with _made_to_end(self._cpu_s) as reasons, unstored.watching():
                asked = asyncio.create_task(_answered(reward, *given))
                answer = await asyncio.wait_for(asked, LONGEST_S + 2 * AGAIN_S)
            ctx.look()
            return float(answer), ""
        except (Exception, Ended, asyncio.CancelledError) as error:
            ctx.look()
            if isinstance(error, asyncio.CancelledError) and not reasons:  # by somebody else, such as Ctrl-C
                raise
            if reasons:
                self._cpu_s = min(self._cpu_s, max(self._cpu_s / 2, 5.0))  # each of many rollouts may be endless
            own = str(error) if isinstance(error, Ended) else f"{type(error).__name__}: {error}"
            return None, shorten(reasons[0] if reasons else own)
        finally:
            env.server = held
            machine.close()

    async def _environment(self, record: Record) -> Any:
        """Return the environment with the settings of a record, which is kept for the next one."""
        known = self.env_class.env_config_cls.model_fields  # type: ignore[attr-defined]
        stored = {name: value for name, value in record.settings.items() if name in known and name not in _NOT_REBUILT}
        wanted = {**stored, **self._settings}
        if self._env is not None and self._built == wanted:
            return self._env
        builder = EnvironmentBuilder(allow_leftovers=True, allow_unconfined=True)
        self._stack.callback(builder.release)
        env = builder.build(self.env_class, script=[say("no model answers here")], in_process=True, **wanted)
        try:
            await env.setup()
        except Exception as error:
            raise BadTarget(
                f"{self.env_class.__name__} cannot be set up: {type(error).__name__}: {shorten(str(error))}"
            ) from error
        self._env, self._built = env, wanted
        return env

    def _result(self, record: Record) -> Any:
        loop: Any = self._layer.agent_loop
        columns = [
            SimpleNamespace(tokens=one.tokens, masked_tokens=one.masks, logprobs=one.logprobs) for one in record.sequences or ()
        ]
        errors = [
            loop.ToolError(turn=one.turn, tool_name=one.tool, arguments=one.arguments, error=one.error, tool_result=one.result)
            for one in record.tool_errors
        ]
        result = loop.AgentResult(
            messages=copy.deepcopy(record.messages),
            managed_state={"nodes": columns} if columns else None,
            turns_used=record.turns or 0,
            finished_naturally=bool(record.finished),
            reasoning_per_turn=list(record.reasoning),
            tool_errors=errors,
        )
        ends = getattr(loop, "RolloutEnd", ())
        if hasattr(result, "end"):
            result.end = next((one for one in ends if one == record.end), None)  # other formats have other ends
        return result


_NOT_REBUILT = frozenset(
    {
        "terminal_backend",
        "tool_call_parser",
        "max_num_workers",
        "max_eval_workers",
        "share_of_rollouts_saved",
        "world_max_bytes",
    }
)


def _why_not(record: Record) -> str:
    """Return why a record alone cannot be scored again."""
    if record.item_problem:
        return f"its item is not stored: {record.item_problem}"
    if problem := record.extra.get("settings_problem"):
        return f"its settings are not stored: {problem}"
    if record.redacted:
        return f"a secret was removed from {record.redacted} of its texts"
    own = "the evaluation scored it with a function of its own, not with compute_reward"
    return "" if record.scored_by in {"compute_reward", ""} else own

"""A cassette session: replays a cassette, records one, or both; assigns calls to rollouts, and collects problems.

Place in the flow: the plugin opens one session per marked test; `recording` and `replaying` do the same without pytest.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import tenacity

from pytest_hermes_env.atomic_files import exclusive
from pytest_hermes_env.cassette.format import read_tape, save_tape
from pytest_hermes_env.cassette.interception import Exchange, intercepting, is_miss
from pytest_hermes_env.cassette.matching import Matching
from pytest_hermes_env.cassette.player import Player, RecordedTools, as_json
from pytest_hermes_env.cassette.recorder import Recorder, header_of, with_environment
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.replay_errors import (
    Miss,
    ReplayContext,
    changed_rewards,
    missing_call,
    missing_rollout,
    missing_tool_call,
    unused_recordings,
    waiting_for_cancelled_request,
)
from pytest_hermes_env.cassette.rollouts import LiveRollout, RolloutWatch, same_reward
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.errors import BadCassette, CassetteMiss
from pytest_hermes_env.failures import Problem, combined_error
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.redaction.secret_names import secrets_of
from pytest_hermes_env.types import Sandboxes

ToolSource = Literal["recorded", "live", "fake"]
"""The source of tool results in a replay."""


@dataclass(kw_only=True)
class CassetteSession:
    """A cassette in use: a context in which requests are intercepted and environments are observed.

    ``player`` replays the recorded calls, ``recorder`` records new ones: one of them, or both. Messages mention ``name``, the
    cassette and ``record_command``, which records it again.
    ``tools``: the source of tool results in replayed rollouts. ``transports``: classes like httpx' own whose requests are
    intercepted too. ``sent``: the API keys in recorded requests, for the redaction, because a server may repeat them.
    """

    name: str
    record_command: str
    player: Player | None = None
    recorder: Recorder | None = None
    tools: ToolSource = "recorded"
    transports: tuple[type, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    played: int = 0
    sent: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watch = RolloutWatch(self._begin)
        self._open = contextlib.ExitStack()

    # Lifetime

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(intercepting(self, *self.transports))
            stack.enter_context(_no_retries_of_misses())
            stack.callback(self.watch.close)
            self.watch.open()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def serves_tools(self) -> bool:
        """Whether tool calls are answered from the cassette."""
        return self.player is not None and self.tools == "recorded"

    def sandboxes(self, live: Sandboxes | None = None) -> Sandboxes | None:
        """Return the sandboxes that answer tool calls: the cassette, and ``live`` for rollouts that are not in it."""
        if self.player is None or not self.serves_tools:
            return live
        live = live if self.recorder is not None else None
        return RecordedTools(self.watch.of, self.tool_answer, offered=_offered(self.player.tape), live=live)

    def _begin(self, rollout: LiveRollout) -> None:
        """Assign a rollout the number of its recording, or the next free number."""
        if self.player is not None and (number := self.player.claim(rollout.opening)):
            rollout.number, rollout.is_recorded = number, True
        elif self.recorder is not None:
            known = self.player.tape.rollouts if self.player is not None else ()
            new = sum(not each.is_recorded for each in self.watch.rollouts)
            rollout.number = max((each.number for each in known), default=0) + new

    # Requests (see interception.Exchanges)

    def ask(self, exchange: Exchange) -> None:
        """Set the recorded reply of an exchange, or what records its answer. Raises: CassetteMiss."""
        rollout, request = self.watch.current, exchange.request
        if request is None:
            return
        if rollout is not None and rollout.is_looping:
            rollout.turn += 1
        is_new = self.recorder is not None and (rollout is None or not rollout.is_recorded)
        if self.player is not None and (rollout is None or rollout.is_recorded or not is_new):
            found = self._recorded(self.player, request, rollout)
            if isinstance(found, ModelCall):
                self.played += 1
                exchange.reply = found.reply
                return
            if not is_new:
                raise self._miss(rollout, missing_call(found, self._context(rollout)), may_follow=found.uses > 0)
        if self.recorder is not None:
            exchange.request = replace(request, body=copy.deepcopy(request.body))  # its client may modify it
            exchange.record = self.recorder.begin(rollout)
            self.sent.update(exchange.secrets)

    def _recorded(self, player: Player, request: ModelRequest, rollout: LiveRollout | None) -> ModelCall | Miss:
        if rollout is not None and not rollout.is_recorded:
            rollout.number, rollout.is_recorded = player.claim_for(request, rollout.opening), True
            if not rollout.number:
                problem = missing_rollout(player.recorded_with(rollout.opening), self._context(rollout))
                raise self._miss(rollout, problem, may_follow=True)
        return player.model_call(request, 0 if rollout is None else rollout.number)

    def answered(self, exchange: Exchange, reply: ModelReply) -> None:
        """Record the answer of the real server."""
        if exchange.request is not None and exchange.record is not None:
            exchange.record(ModelCall(number=0, request=exchange.request, reply=reply))
            exchange.record = None

    def waited(self, seconds: float, recorded_s: float) -> CassetteMiss:
        """Return the error of a request that was cancelled in the recording, but not in this run."""
        rollout = self.watch.current
        return self._miss(rollout, waiting_for_cancelled_request(seconds, recorded_s, self._context(rollout)))

    # Tool calls

    def tool_answer(self, rollout: LiveRollout | None, name: str, arguments: Mapping[str, Any]) -> RecordedToolCall:
        """Return the recording of a tool call. Raises: CassetteMiss."""
        if self.player is None:
            raise CassetteMiss("this session replays no cassette")
        by_agent = rollout is not None and rollout.is_looping
        request = ModelRequest.of_tool_call(name, as_json(dict(arguments)), by_agent=by_agent)
        found = self.player.tool_call(request, 0 if rollout is None else rollout.number)
        if isinstance(found, Miss):
            raise self._miss(rollout, missing_tool_call(found, self._context(rollout)), may_follow=found.uses > 0)
        self.played += 1
        return found

    def note_tool_call(self, call: Any) -> None:
        """Record a `sandbox.seam.ToolCall` that the cassette did not answer."""
        rollout = self.watch.of(call.task_id)
        if self.recorder is None or (rollout is not None and rollout.is_recorded):
            return
        has_failed = isinstance(call.result, BaseException)
        by_agent = rollout is not None and rollout.is_looping
        self.recorder.begin(rollout)(
            RecordedToolCall(
                number=0,
                name=call.name,
                arguments=as_json(call.arguments),
                result=None if has_failed else as_json(call.result),
                error=f"{type(call.result).__name__}: {call.result}" if has_failed else "",
                turn=(rollout.turn if rollout is not None else 0) if by_agent else 0,
            ),
        )

    # Problems

    def _context(self, rollout: LiveRollout | None) -> ReplayContext:
        context = ReplayContext(cassette=self.name, record_command=self.record_command)
        return context if rollout is None else replace(context, rollout=rollout.describe())

    def _miss(self, rollout: LiveRollout | None, problem: Problem, *, may_follow: bool = False) -> CassetteMiss:
        """Collect the problem, unless an earlier one causes it, and return it as an error.

        That is one of its rollout; or any, for what a retry after a miss looks like: ``may_follow``.
        """
        has_cause = rollout.has_missed if rollout is not None else False
        if not has_cause and not (
            may_follow and any(each.error is CassetteMiss and each.text != problem.text for each in self.problems)
        ):
            self.problems.append(problem)
        if rollout is not None:
            rollout.has_missed = True
        return CassetteMiss(str(problem.exception()))

    def verify_calls(self) -> None:
        """Check what was played so far. Raises: CassetteMiss, RewardChanged."""
        self.verify(allow_leftovers=True)

    def verify(self, *, allow_leftovers: bool = False) -> None:
        """Check that the run matched the recording. Raises: CassetteMiss, RewardChanged, LeftoverRecordings."""
        problems = list(self.problems)
        if self.player is not None:
            if lines := self._changed_rewards(self.player, allows_none=allow_leftovers):
                problems.append(changed_rewards(lines, self._context(None)))
            kinds = (ModelCall, RecordedToolCall) if self.serves_tools else (ModelCall,)
            if not problems and not allow_leftovers and (unused := self.player.unused(*kinds)):
                problems.append(unused_recordings(unused, self._context(None)))
        if error := combined_error(problems, who="the replay"):
            raise error

    def _changed_rewards(self, player: Player, *, allows_none: bool) -> list[str]:
        lines = []
        for rollout in sorted(self.watch.rollouts, key=lambda each: each.number):
            recorded = player.rollouts.get(rollout.number) if rollout.is_recorded else None
            if recorded is None or rollout.has_missed or not player.matching.compares_rewards:
                continue
            if not rollout.has_reward and (allows_none or recorded.reward is None):
                continue
            if recorded.reward_error != rollout.reward_error or not same_reward(recorded.reward, rollout.reward):
                before, now = recorded.reward_error or recorded.reward, rollout.reward_error or rollout.reward
                now = now if rollout.has_reward else "none"
                lines.append(f"rollout {rollout.number}: recorded {before}, now {now}")
        return lines

    # The recording

    def tape(self, header: Header) -> Tape:
        """Return the recorded calls, appended to those of the cassette. Raises: no model was called → BadCassette."""
        if self.recorder is None:
            raise BadCassette(f"{self.name} is only replayed, so there is nothing to write.")
        before = self.player.tape if self.player is not None else None
        if self.recorder.is_empty and before is None:
            raise BadCassette(
                f"nothing was recorded for {self.name}: no request to a model was sent.\n"
                "  expected  a request to an inference server, from the openai client (httpx) or aiohttp\n"
                "  fix       send the test's requests to the fixture recorded_server, or remove the cassette mark"
            )
        environment = next((each.environment for each in self.watch.rollouts if each.environment is not None), None)
        header = with_environment(header, environment) if environment is not None else header
        return self.recorder.tape(header, self.watch.rollouts, before)


def _offered(tape: Tape) -> frozenset[str] | None:
    """Return the names of the tools that the recorded requests offered; None if no request offered any."""
    names: set[str] = set()
    for call in tape.calls:
        if isinstance(call, ModelCall) and isinstance(call.request.body, dict):
            tools = call.request.body.get("tools")
            for tool in tools if isinstance(tools, list) else ():
                function = tool.get("function") if isinstance(tool, dict) else None
                if isinstance(function, dict):
                    names.add(str(function.get("name")))
    return frozenset(names) or None


@contextlib.contextmanager
def _no_retries_of_misses() -> Iterator[None]:
    """Stop tenacity (atroposlib's three layers, a test's own) from retrying a request that is not in the cassette.

    Other errors are retried as usual.
    """

    def once(real: Any, retrying: Any, retry_state: tenacity.RetryCallState) -> Any:
        outcome = retry_state.outcome
        if outcome is not None and outcome.failed and is_miss(outcome.exception()):
            outcome.result()
        return real(retrying, retry_state)

    with intercept("tenacity.BaseRetrying.iter", once), intercept("tenacity.AsyncRetrying.iter", once):
        yield


@contextlib.contextmanager
def recording(path: Path, *, recorded_from: str) -> Iterator[CassetteSession]:
    """Record every request to a model, and write the cassette to ``path`` if the block ends without an exception.

    Raises: nothing was recorded, or the recording contains a secret → BadCassette.
    """
    session = CassetteSession(name=str(path), record_command="record it again", recorder=Recorder())
    with exclusive(path), session:
        yield session
        save_tape(path, session.tape(header_of(recorded_from=recorded_from)), default_redactor().knowing(session.sent))


def default_redactor() -> Redactor:
    """Return a redactor for the secrets in this process' environment, and everything that looks like an API key."""
    return Redactor(known=secrets_of(os.environ))


@contextlib.contextmanager
def replaying(path: Path, *, matching: Matching | None = None, allow_leftovers: bool = False) -> Iterator[CassetteSession]:
    """Answer every request to a model from the cassette at ``path``; verify if the block ends without an exception.

    Raises: an unreadable cassette → BadCassette; a difference → CassetteMiss, RewardChanged, LeftoverRecordings.
    """
    player = Player(read_tape(path), matching, default_redactor())
    with CassetteSession(name=str(path), record_command="record it again", player=player) as session:
        yield session
    session.verify(allow_leftovers=allow_leftovers)

"""Plays a transcript: one real rollout through the agent loop, with the transcript as the model, which gives a `Rung`.

Place in the flow: `item_cases` plays those of an item, and `neighbours` what lies around gold.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pytest_hermes_env.errors import HermesEnvError, shorten
from pytest_hermes_env.inference.steps import Turn, as_turn, say
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER
from pytest_hermes_env.play.buffers import copied
from pytest_hermes_env.play.cases.values import GOLD, Transcript
from pytest_hermes_env.play.journal import Caught, ItemScored, LoopEnded, Reward, UnknownRead, current_rollout
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import Cause, Rung, Scenario, Unavailable
from pytest_hermes_env.play.stage import Policy, Stage
from pytest_hermes_env.play.tool_backend import close_sandbox, files_left, new_sandbox_like, verifier_reads
from pytest_hermes_env.sandbox.machine import Patience, patience

LEAST_S, TIMES = 10.0, 5.0
"""Seconds after which the commands of a case that is not declared are stopped, and how many times what gold took."""
OF_ALL = "/tmp/"  # noqa: S108 - what is looked for
OVER = "(The transcript has ended.)"


@dataclass(frozen=True, kw_only=True)
class PlayedCase:
    """What a case earned, the record of each time that it was played, and the files that were left, as nodes.

    ``runs_programs``: real ones, which take long to start.
    """

    rung: Rung
    records: tuple[Scenario, ...] = ()
    runs_programs: bool = False
    files: Mapping[str, Any] = field(default_factory=dict)
    all_files: Mapping[str, Any] = field(default_factory=dict)
    """Those of the verifier, too."""
    judged: tuple[str, ...] = ()
    """What a judge was asked."""
    was_stopped: bool = False
    failed: int = 0
    """Commands of the agent with another exit code than 0."""
    """Whether its commands took so long that they were stopped before their own timeout."""


class Player:
    """The model of one rollout, and its judge; remembers requests beyond the transcript."""

    def __init__(self, transcript: Transcript, policy: Policy | None = None) -> None:
        self._transcript = transcript
        self._policy = policy
        self.said: list[str] = []
        self.judge_was_asked: list[str] = []
        self.is_asked_too_often = False

    def __call__(self, conversation: Any) -> Any:
        """Answer one request: of the agent, or of a judge."""
        _, phase = current_rollout.get()
        if phase == "reward" or (not phase and not conversation.tools):
            self.judge_was_asked.append("\n".join(str(message.get("content")) for message in conversation.messages))
            return self._judged()
        made = self._next(conversation)
        self.said.append(str(as_turn(made)))
        return made

    def _next(self, conversation: Any) -> Any:
        if self._policy is not None:
            return self._policy(conversation)
        turns = self._transcript.turns
        if conversation.turn < len(turns):
            return turns[conversation.turn]
        self.is_asked_too_often = True
        return say(OVER)

    def _judged(self) -> Any:
        answers = self._transcript.judge
        return answers[min(len(self.judge_was_asked), len(answers)) - 1] if answers else say(JUDGE_ANSWER)

    @property
    def is_judge_guessed(self) -> bool:
        """Whether a judge was asked whose answers are not declared."""
        return bool(self.judge_was_asked) and not self._transcript.judge

    def problem(self, label: str, trouble: str) -> str:
        """Return how a declared transcript differs from the requests that came; empty when it fits.

        ``trouble`` is the error of the rollout or its reward; with an error, missing requests do not count against the transcript.
        """
        if self._policy is not None or trouble:
            return ""
        turns = len(self._transcript.turns)
        if self.is_asked_too_often:
            return f"the agent asked for turn {turns + 1} of {label}, which has {turns}: end it with a say turn"
        if len(self.said) < turns:
            return (
                f"the agent asked for {len(self.said)} of the {turns} turns of {label}: a turn without a call ends the rollout"
            )
        if self.is_judge_guessed:
            return f"a judge was called for {label}, but its answer is not declared: add `judge:` with the text that it returns"
        return ""


async def played(
    stage: Stage, player: Player, item: Any, transcript: Transcript, blank: Rung, *, is_patient: bool = False
) -> PlayedCase:
    """Play one case once, on a copy of the item and a new machine. Commands of an automatic case are stopped unless ``is_patient``."""
    label = f"{blank.name} of {blank.item}"
    stage.sandbox = new_sandbox_like(stage.sandbox)
    is_fake = hasattr(stage.sandbox, "on")
    if transcript.sandbox and is_fake != (transcript.sandbox == "fake"):
        return PlayedCase(rung=replace(blank, unavailable=f"{label} needs --hermes-sandbox {transcript.sandbox}"))
    if transcript.needs_a_fake and not is_fake:
        return PlayedCase(rung=replace(blank, unavailable=f"{label} scripts the sandbox: it needs --hermes-sandbox fake"))
    try:
        prepare_sandbox(stage.sandbox, transcript)
    except HermesEnvError as error:
        return PlayedCase(rung=replace(blank, problem=str(error)))

    async def rollout() -> None:
        await stage.env.collect_trajectory(copied(item))

    asked, began = len(stage.mock.journal), time.monotonic()
    is_limited = blank.is_automatic and stage.gold_s > 0 and not is_patient  # a program that was made wrong may run forever
    given = Patience(ends=began + max(LEAST_S, TIMES * stage.gold_s) if is_limited else math.inf)
    token = patience.set(given)
    record = await stage.play(label, rollout, policy=player, is_compared=False)
    patience.reset(token)
    if blank.name == GOLD:
        stage.gold_s = max(stage.gold_s, time.monotonic() - began)
    refused = () if blank.is_automatic else getattr(stage.sandbox, "refused", ())
    machines = tuple(getattr(stage.sandbox, "rollouts", {}).values())
    runs_programs = not is_fake or any(machine.has_cell for machine in machines)
    everything = files_left(*machines, of_verifier=True)
    files = {path: node for path, node in everything.items() if node.party != "verifier"}
    close_sandbox(stage.sandbox)
    if refused:
        reason = str(Unavailable(Cause.NO_REAL_TOOLS, f"{label} runs {refused[0]}"))
        return PlayedCase(rung=replace(blank, unavailable=reason))
    refused_requests = [one for one in stage.mock.journal[asked:] if one.problem]
    of_agent = shorten(str(next((one.problem for one in refused_requests if one.request.get("tools")), "")))
    of_judge = shorten(str(next((one.problem for one in refused_requests if not one.request.get("tools")), "")))
    reward, trouble = _reward_of(record)
    ended = record.of(LoopEnded)
    calls = [one for one in record.tool_calls if one.by_agent]
    last = max((number for number, one in enumerate(record.tool_calls) if one.by_agent), default=0)
    rung = replace(
        blank,
        reward=None if of_agent else reward,
        error=of_agent or trouble or (of_judge if reward is None else ""),
        problem=(of_judge if reward is not None and not of_agent and not blank.is_automatic else "")
        or player.problem(label, of_agent or trouble or of_judge or record.error),
        turns=ended[-1].turns_used if ended else 0,
        tools=tuple(one.name for one in calls),
        tokens=sum(len(reply.output) for reply in record.sampled)
        or sum(_tokens(one) for one in stage.mock.journal[asked:] if one.kind != "judge"),
        transcript=tuple(player.said),
        tool_errors=tuple(
            f"{one.name}: {refusal.removeprefix(f'{one.name}: ')}" for one in calls if (refusal := _error_of(one.result))
        ),
        reads=verifier_reads(*machines),
        work=tuple(path for path, node in files.items() if node.party == "agent"),
        outside=tuple(_outside(everything, record)),
        asked=tuple(
            f"{one.name}({_brief(one.arguments)}): {_outcome(one.result)}"
            for one in record.tool_calls[last:]
            if not one.by_agent
        ),
        not_found=tuple(stage.sandbox.not_found) if hasattr(stage.sandbox, "rollouts") else (),
        is_judge_guessed=player.is_judge_guessed,
        is_foreign=bool(record.of(UnknownRead)),
        caught=max((one for reward in record.of(Reward) for one in reward.caught), key=_is_telling, default=None),
    )
    return PlayedCase(
        rung=rung,
        records=(replace(record, group=None),),
        runs_programs=runs_programs,
        files=files,
        all_files=everything,
        judged=tuple(player.judge_was_asked),
        was_stopped=given.was_over,
        failed=sum(exit_code_of(one.result) != 0 for one in calls),
    )


def _outside(files: Mapping[str, Any], record: Scenario) -> Iterator[tuple[str, str]]:
    """Yield the files at a place that all rollouts of a machine share and that the verifier or the prompt names, with digests."""
    asked = [str(one.arguments) for one in record.tool_calls if not one.by_agent]
    asked += [str(request.get("messages", ())[:2]) for request in record.requests[:1]]
    for path, node in files.items():
        is_named = path.startswith(OF_ALL) and any("/".join(path.split("/")[:3]) in text for text in asked)
        if is_named and node.party in {"agent", "verifier"}:
            yield path, blake2b(node.data, digest_size=8).hexdigest()


def _is_telling(one: Caught) -> tuple[bool, bool]:
    """Return how much a caught error tells: a mistake most, a text that is no number or no JSON least."""
    return one.is_mistake, not one.error.startswith(("ValueError", "JSONDecodeError"))


def _error_of(result: Any) -> str:
    """Return the error in the result of a tool: an object, as JSON where the agent made the call. Text that is not JSON has none."""
    try:
        value = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        return ""
    return shorten(str(value["error"])) if isinstance(value, dict) and value.get("error") else ""


def output_of(result: Any) -> str:
    """Return what a command printed."""
    return str(_result(result).get("output") or "")


def exit_code_of(result: Any) -> int:
    """Return the exit code of a command; 0 where there is none."""
    code = _result(result).get("exit_code")
    return code if isinstance(code, int) else 0


def _result(result: Any) -> dict[str, Any]:
    try:
        found = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _outcome(result: Any) -> str:
    """Return what a call of the verifier came to, in a few words."""
    found = _result(result)
    if found.get("error"):
        return shorten(str(found["error"]), 80)
    first = str(found.get("output") or "").strip().partition("\n")[0]
    code = f"exit code {found['exit_code']}" if "exit_code" in found else "done"
    return f"{code}, {shorten(first, 60)!r}" if first else code


def prepare_sandbox(sandbox: Any, transcript: Transcript) -> None:
    """Put into a machine in memory what a case declares of it."""
    for path, content in transcript.files.items():
        sandbox.files[path] = content
    for command, answer in transcript.commands:
        sandbox.on(command, answers=None, optional=True, **_as_keywords(answer))
    for name, answer in transcript.tools:
        sandbox.on_tool(name, answer, optional=True)


def _as_keywords(answer: Any) -> dict[str, Any]:
    """Return an answer to a command as the arguments of `FakeSandbox.on`."""
    from pytest_hermes_env.sandbox.answers import as_answer  # noqa: PLC0415 - only where commands are scripted

    made = as_answer(answer)
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


def _reward_of(record: Any) -> tuple[float | None, str]:
    """Return the reward of a rollout, or why there is none."""
    rewards = record.of(Reward)
    if rewards:
        last = rewards[-1]
        number = as_number(last.value)
        if number is not None and math.isfinite(number):
            return number, ""
        return None, last.error or f"compute_reward returned {shorten(repr(last.value))}"
    scored = record.of(ItemScored)
    number = as_number(scored[-1].score) if scored else None
    return number, "" if number is not None else record.error or "compute_reward was not called"


def _tokens(exchange: Any) -> int:
    response = exchange.response
    usage = response.get("usage") if isinstance(response, dict) else None
    return int((usage or {}).get("completion_tokens") or 0)


def _brief(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={shorten(repr(value), 60)}" for name, value in arguments.items())


def scripted(turns: tuple[Turn, ...]) -> Policy:
    """Return the policy that says these turns, and then that they have ended."""

    def policy(conversation: Any) -> Any:
        return turns[conversation.turn] if conversation.turn < len(turns) else say(OVER)

    return policy

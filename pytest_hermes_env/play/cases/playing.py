"""Plays cases: each is one real rollout through the agent loop, with the transcript as the model, and returns a `Rung`.

Place in the flow: the scenario `cases` calls `play_item` for each item.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.errors import HermesEnvError, shorten
from pytest_hermes_env.inference.steps import Call, Say, Turn, as_turn, call, say
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, silent_policy, tool_using_policy
from pytest_hermes_env.play.buffers import copied
from pytest_hermes_env.play.cases.values import (
    AUTOMATIC,
    ECHO,
    GOLD,
    NOTHING,
    OTHER_GOLD,
    TOOLS,
    WRONG_CONTENT,
    WRONG_PLACE,
    Case,
    ItemCases,
    Transcript,
)
from pytest_hermes_env.play.journal import ItemScored, LoopEnded, Reward, UnknownRead, current_rollout
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import Cause, Rung, Scenario, Unavailable
from pytest_hermes_env.play.stage import Policy, Stage
from pytest_hermes_env.play.tool_backend import agents_files, close_sandbox, new_sandbox_like, verifier_reads

OVER = "(The transcript has ended.)"
WRONG = "something else entirely"
_FILE_NAME = re.compile(r"(?<![\w/.-])[\w-][\w./-]*\.[A-Za-z]\w{0,4}\b")
_MOST_FILES = 3
_BODIES = ("content", "new_string", "patch", "text", "code")
"""Arguments that hold content, not a place."""


@dataclass(frozen=True, kw_only=True)
class PlayedCase:
    """What a case earned, and the record of each time that it was played. ``runs_programs``: real ones, which take long to start."""

    rung: Rung
    records: tuple[Scenario, ...] = ()
    runs_programs: bool = False


async def play_item(
    stage: Stage, entry: ItemCases | None, item: Any, label: str, other: Any, *, is_whole: bool = True, is_repeated: bool = True
) -> list[PlayedCase]:
    """Play the cases of ``entry`` on one item, then the automatic ones that it does not replace.

    ``other`` is another item of the entry, None without one. Unless ``is_whole``, gold alone is played, and what is made from it. Declared
    cases are played twice if they are played whole and ``is_repeated``.
    """
    cases = entry.cases if entry is not None else ()
    chosen = cases if is_whole else tuple(case for case in cases if case.name == GOLD)
    played = [await _declared(stage, case, item, label, is_repeated=is_whole and is_repeated) for case in chosen]
    gold, others = _gold_turns(cases, item), _gold_turns(cases, other) if other is not None else ()
    paid = next((one.rung for one in played if one.rung.name == GOLD and one.rung.reward is not None), None)
    policies: dict[str, Policy | None] = {
        TOOLS: tool_using_policy(getattr(stage.env.config, "max_agent_turns", 30)) if is_whole else None,
        WRONG_CONTENT: _scripted(_with_wrong_content(gold)) if gold else _wrong_content,
        WRONG_PLACE: _scripted(misplaced) if paid is not None and (misplaced := _misplaced(gold, paid.work)) else None,
        OTHER_GOLD: _scripted(others) if others and _said(others) != _said(gold) else None,
        ECHO: _echo,
        NOTHING: silent_policy,
    }
    around = entry.around if entry is not None else None
    taken = {case.name for case in cases}
    free = [(name, policy) for name in AUTOMATIC if name not in taken and (policy := policies[name]) is not None]
    return played + [await _automatic(stage, name, policy, item, label, around) for name, policy in free]


async def play_gold(stage: Stage, entry: ItemCases, item: Any, label: str) -> PlayedCase:
    """Play gold alone on one item, once."""
    gold = next(case for case in entry.cases if case.name == GOLD)
    return await _declared(stage, gold, item, label, is_repeated=False)


async def _declared(stage: Stage, case: Case, item: Any, label: str, *, is_repeated: bool = True) -> PlayedCase:
    blank = Rung(name=case.name, item=label, is_automatic=False, path=case.path, line=case.line)
    if case.of is None:
        rung = replace(blank, unavailable=f"{case.name} of {label} is not filled in", is_unfilled=True)
        return PlayedCase(rung=rung)
    try:
        transcript = case.of(item)
    except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
        return PlayedCase(rung=replace(blank, problem=_as_text(error)))
    first = await _played(stage, _Player(transcript), item, transcript, blank)
    if first.rung.reward is None or first.rung.problem or first.rung.is_judge_guessed or not is_repeated:
        return first
    again = await _played(stage, _Player(transcript), item, transcript, blank)
    rung = replace(first.rung, again=again.rung.reward, again_error=again.rung.error)
    return replace(first, rung=rung, records=first.records + again.records)


def _as_text(error: Exception) -> str:
    return str(error) if isinstance(error, HermesEnvError) else f"{type(error).__name__}: {shorten(str(error))}"


async def _automatic(
    stage: Stage,
    name: str,
    policy: Policy,
    item: Any,
    label: str,
    around: Callable[[Any, tuple[Turn, ...]], Transcript] | None,
) -> PlayedCase:
    blank = Rung(name=name, item=label, is_automatic=True)
    try:
        # without the judge's answers: they are about work that the author knows
        transcript = replace(around(item, ()), judge=()) if around is not None else Transcript(turns=())
    except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
        return PlayedCase(rung=replace(blank, problem=_as_text(error)))
    return await _played(stage, _Player(transcript, policy), item, transcript, blank)


class _Player:
    """The model of one rollout, and its judge; remembers requests beyond the transcript."""

    def __init__(self, transcript: Transcript, policy: Policy | None = None) -> None:
        self._transcript = transcript
        self._policy = policy
        self.said: list[str] = []
        self.judge_asked = 0
        self.is_asked_too_often = False

    def __call__(self, conversation: Any) -> Any:
        _, phase = current_rollout.get()
        if phase == "reward" or (not phase and not conversation.tools):
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
        self.judge_asked += 1
        return answers[min(self.judge_asked, len(answers)) - 1] if answers else say(JUDGE_ANSWER)

    @property
    def is_judge_guessed(self) -> bool:
        """Whether a judge was asked whose answers are not declared."""
        return self.judge_asked > 0 and not self._transcript.judge

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


async def _played(stage: Stage, player: _Player, item: Any, transcript: Transcript, blank: Rung) -> PlayedCase:
    """Play one case once, on a copy of the item and a new machine."""
    label = f"{blank.name} of {blank.item}"
    stage.sandbox = new_sandbox_like(stage.sandbox)
    is_fake = hasattr(stage.sandbox, "on")
    if transcript.sandbox and is_fake != (transcript.sandbox == "fake"):
        return PlayedCase(rung=replace(blank, unavailable=f"{label} needs --hermes-sandbox {transcript.sandbox}"))
    if transcript.needs_a_fake and not is_fake:
        return PlayedCase(rung=replace(blank, unavailable=f"{label} scripts the sandbox: it needs --hermes-sandbox fake"))
    try:
        _prepare_sandbox(stage.sandbox, transcript)
    except HermesEnvError as error:
        return PlayedCase(rung=replace(blank, problem=str(error)))

    async def rollout() -> None:
        await stage.env.collect_trajectory(copied(item))

    asked = len(stage.mock.journal)
    record = await stage.play(label, rollout, policy=player)
    refused = () if blank.is_automatic else getattr(stage.sandbox, "refused", ())
    machines = tuple(getattr(stage.sandbox, "rollouts", {}).values())
    runs_programs = not is_fake or any(machine.has_cell for machine in machines)
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
        work=agents_files(*machines),
        asked=tuple(
            f"{one.name}({_brief(one.arguments)}): {_outcome(one.result)}" for one in record.tool_calls if not one.by_agent
        ),
        not_found=tuple(stage.sandbox.not_found) if hasattr(stage.sandbox, "rollouts") else (),
        is_judge_guessed=player.is_judge_guessed,
        is_foreign=bool(record.of(UnknownRead)),
    )
    kept = replace(record, before={}, after={}, group=None)  # no rule compares these of a case, and they are the whole data
    return PlayedCase(rung=rung, records=(kept,), runs_programs=runs_programs)


def _error_of(result: Any) -> str:
    """Return the error in the result of a tool: an object, as JSON where the agent made the call. Text that is not JSON has none."""
    try:
        value = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        return ""
    return shorten(str(value["error"])) if isinstance(value, dict) and value.get("error") else ""


def _outcome(result: Any) -> str:
    """Return what a call of the verifier came to, in a few words."""
    try:
        found = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        found = {}
    found = found if isinstance(found, dict) else {}
    if found.get("error"):
        return shorten(str(found["error"]), 80)
    first = str(found.get("output") or "").strip().partition("\n")[0]
    code = f"exit code {found['exit_code']}" if "exit_code" in found else "done"
    return f"{code}, {shorten(first, 60)!r}" if first else code


def _prepare_sandbox(sandbox: Any, transcript: Transcript) -> None:
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


# The automatic cases


def _gold_turns(cases: tuple[Case, ...], item: Any) -> tuple[Turn, ...]:
    for case in cases:
        if case.name == GOLD and case.of is not None:
            try:
                return case.of(item).turns
            except Exception:  # noqa: BLE001 - the gold case itself reports it
                return ()
    return ()


def _scripted(turns: tuple[Turn, ...]) -> Policy:
    def policy(conversation: Any) -> Any:
        return turns[conversation.turn] if conversation.turn < len(turns) else say(OVER)

    return policy


def _said(turns: tuple[Turn, ...]) -> list[str]:
    return [str(turn) for turn in turns]


def _misplaced(turns: tuple[Turn, ...], paths: tuple[str, ...]) -> tuple[Turn, ...]:
    """Return turns in which these files have other names; nothing where none is named."""
    names = {posixpath.basename(path) for path in paths}
    if not names:
        return ()
    pattern = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, sorted(names)))})(?![\w-])")

    def elsewhere(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(r"misplaced_\1", value)
        if isinstance(value, dict):
            return {key: elsewhere(part) for key, part in value.items()}
        return [elsewhere(part) for part in value] if isinstance(value, list) else value

    def moved(step: Any) -> Any:
        is_valid = isinstance(step, Call) and step.names is not None
        return call(step.tool, **elsewhere(json.loads(step.arguments_text))) if is_valid else step

    made = tuple(Turn(steps=tuple(moved(step) for step in turn.steps)) for turn in turns)
    return made if _said(made) != _said(turns) else ()


def _echo(conversation: Any) -> Any:
    return say(conversation.first_user or NOTHING)


def _with_wrong_content(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return turns of the same form with other content: other files, commands and texts."""
    return tuple(Turn(steps=tuple(_wrong_step(step) for step in turn.steps)) for turn in turns)


def _wrong_step(step: Any) -> Any:
    if isinstance(step, Say):
        return say(WRONG)
    if not isinstance(step, Call) or step.names is None:
        return step
    arguments = json.loads(step.arguments_text)
    if step.tool == "terminal":
        return call(step.tool, **{**arguments, "command": f"echo {WRONG}"})
    return call(step.tool, **{key: WRONG if key in _BODIES else value for key, value in arguments.items()})


def _wrong_content(conversation: Any) -> Any:
    """Write the files that the prompt names, with wrong content; if it names none, give a wrong answer."""
    names = list(dict.fromkeys(_FILE_NAME.findall(conversation.first_user)))[:_MOST_FILES]
    tools = conversation.tools
    if conversation.turn or not names:
        return say(WRONG)
    if "write_file" in tools:
        return [call("write_file", path=name, content=WRONG) for name in names]
    if "terminal" in tools:
        return call("terminal", command="; ".join(f"echo {WRONG} > {name}" for name in names))
    return say(WRONG)

"""Rollouts as a log of Inspect: ``inspect view`` shows it, ``inspect view bundle`` makes a site of it.

An item is a sample, and each rollout of its group is one of its epochs. The rewards are the scores; a rollout without a reward is an
error. Written through Inspect's public API; only here is `inspect_ai` imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.layer import rollout_file

UNKNOWN_MODEL = "unknown"
SCORER = "reward"


def write_log(file: Path, log: Path, *, model: str = "") -> list[str]:
    """Write the rollouts of ``file`` to ``log`` in one step, and return a note for each line that holds none.

    A file of rollouts says no times: its own time of writing is the end of all of them.

    Raises: inspect_ai is not installed, the file has no rollout → UsageError; OSError.
    """
    try:
        from inspect_ai import log as inspect_log  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            f"--inspect requires inspect_ai ({error}).\n  fix       pip install 'pytest-hermes-env[inspect]'"
        ) from error
    groups = list(rollout_file().read_groups(file))
    ended = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    samples = [
        _sample(group.line, epoch, rollout, ended) for group in groups for epoch, rollout in enumerate(group.rollouts, start=1)
    ]
    if not samples:
        raise UsageError(f"{file} has no rollouts.\n  expected  JSON lines, as process and evaluate write them")
    items = list(dict.fromkeys(sample.id for sample in samples))
    rewards = [sample.scores[SCORER].as_float() for sample in samples if sample.scores]
    unfinished = log.with_name(f".{log.stem}.tmp.eval")
    try:
        inspect_log.write_eval_log(
            inspect_log.EvalLog(
                status="success",
                eval=inspect_log.EvalSpec(
                    created=ended,
                    task=file.stem,
                    dataset=inspect_log.EvalDataset(name=file.name, samples=len(items), sample_ids=items),
                    model=model or UNKNOWN_MODEL,
                    config=inspect_log.EvalConfig(epochs=max(sample.epoch for sample in samples)),
                ),
                results=inspect_log.EvalResults(
                    total_samples=len(samples),
                    completed_samples=len(rewards),
                    scores=[_results(inspect_log, rewards)] if rewards else [],
                ),
                stats=inspect_log.EvalStats(started_at=ended, completed_at=ended),
                samples=samples,
            ),
            unfinished,
            format="eval",
        )
        unfinished.replace(log)
    finally:
        unfinished.unlink(missing_ok=True)
    return [f"line {group.line} of {file} is left out: {group.problem}" for group in groups if group.problem]


def _results(inspect_log: Any, rewards: Sequence[float]) -> Any:
    mean = inspect_log.EvalMetric(name="mean", value=fmean(rewards))
    return inspect_log.EvalScore(name=SCORER, scorer=SCORER, scored_samples=len(rewards), metrics={"mean": mean})


def _sample(line: int, epoch: int, rollout: Any, ended: str) -> Any:
    from inspect_ai.log import EvalError, EvalSample  # noqa: PLC0415
    from inspect_ai.model import ModelOutput  # noqa: PLC0415
    from inspect_ai.scorer import Score  # noqa: PLC0415

    messages = [_message(message) for message in rollout.messages]
    answers = [message for message in messages if message.role == "assistant"]
    begin = messages.index(answers[0]) if answers else len(messages)
    facts = {name: value for name, value in rollout.facts.items() if name not in {"messages", "prompt", "score"}}
    error = str(facts.get("error") or rollout.end or "the rollout has no reward")
    return EvalSample(
        id=line,
        epoch=epoch,
        input=messages[:begin],
        target="",
        messages=messages,
        output=ModelOutput.from_message(answers[-1]) if answers else ModelOutput(),
        scores=None if rollout.score is None else {SCORER: Score(value=rollout.score)},
        error=EvalError(message=error, traceback="", traceback_ansi="") if rollout.score is None else None,
        metadata=facts,
        started_at=ended,
        completed_at=ended,
    )


def _message(message: Any) -> Any:
    from inspect_ai.model import (  # noqa: PLC0415
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ContentReasoning,
        ContentText,
    )

    match message.role:
        case "assistant":
            thoughts = [ContentReasoning(reasoning=message.reasoning)] if message.reasoning else []
            content: Any = [*thoughts, ContentText(text=message.content)] if thoughts else message.content
            return ChatMessageAssistant(content=content, tool_calls=_calls(message.calls) or None)
        case "tool":
            return ChatMessageTool(content=message.content, tool_call_id=message.answers or None)
        case "system" | "developer":
            return ChatMessageSystem(content=message.content)
        case "user":
            return ChatMessageUser(content=message.content)
    return ChatMessageUser(content=message.content, metadata={"role": message.role})


def _calls(calls: Iterable[Any]) -> list[Any]:
    from inspect_ai.tool import ToolCall  # noqa: PLC0415

    made = []
    for number, call in enumerate(calls):
        try:
            arguments, problem = json.loads(call.arguments or "{}"), ""
        except ValueError as error:
            arguments, problem = {}, str(error)
        if not problem and not isinstance(arguments, dict):
            arguments, problem = {}, f"expected an object, got {type(arguments).__name__}"
        failure = f"Error parsing the tool call arguments: {problem}\n\n{call.arguments}" if problem else None
        made.append(ToolCall(id=call.id or f"call-{number}", function=call.name, arguments=arguments, parse_error=failure))
    return made

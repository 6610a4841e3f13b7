"""Writes the record of each rollout: a draft while it runs, and whole lines when its group, its sample or its request has ended.

A process that is killed leaves every group that it finished. Nothing is kept where no file is configured.

Place in the flow: `agent_rollout` opens and closes a draft, the wrapper around ``compute_reward`` notes the reward and what it asked a
judge; ``process``, ``serve``, `run_rollout` and evaluations say which rollouts belong together.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.metadata
import itertools
import json
import logging
import math
import os
import platform
import random
import re
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.loop.end import RolloutEnd
from environments.rollout.secret_names import SHORTEST_KEY, is_secret_name
from environments.rollout.world import State, kept_world, state_of
from environments.tokens.answer_checks import TokenModeError
from hermes_env_shared.rollout_record import FORMAT, Record, Unkept, World, encode_item, files_of

# isort: split
from agent import redact

logger = logging.getLogger(__name__)

RUN = uuid.uuid4().hex[:12]
"""Identifies this process in its records."""
PACKAGES = ("atroposlib", "hermes-agent", "pytest-hermes-env")
_SHAPES: tuple[re.Pattern[str], ...] = (redact._PREFIX_RE, redact._PRIVATE_KEY_RE, redact._JWT_RE)
"""Hermes' patterns of keys. Its other ones are for logs: they change ordinary text, such as numbers after a plus sign."""
NOT_SETTINGS = re.compile(
    r"data_(path|dir)_to_save|wandb|rollout_server_url|tokenizer_name|^(group_size|total_steps|batch_size|steps_per_eval)$"
)
"""Settings of a run that say nothing of its rollouts."""


@dataclass
class Draft:
    """A rollout that runs. ``before`` is the sandbox before the agent started; ``store`` takes its files."""

    fields: dict[str, Any]
    store: Path
    before: State = field(default_factory=dict)


@dataclass
class _Group:
    """The rollouts that are written together, or none of them if there is no ``path``."""

    number: int
    source: str
    path: Path | None
    drafts: list[Draft] = field(default_factory=list)
    places: Iterator[int] = field(default_factory=lambda: itertools.count(1))


_group: ContextVar[_Group | None] = ContextVar("hermes_recorded_group", default=None)
_place: ContextVar[int | None] = ContextVar("hermes_recorded_place", default=None)
_judged: ContextVar[Draft | None] = ContextVar("hermes_recorded_reward", default=None)
_numbers = itertools.count(1)


@contextlib.contextmanager
def recorded_group(env: Any, source: str) -> Iterator[None]:
    """Write the rollouts that run in this block when it ends, however it ends; inside of another such block, they are written with its."""
    if _group.get() is not None:
        yield
        return
    path = records_path(env.config, source)
    if source == "serve" and random.random() >= getattr(env.config, "share_of_rollouts_saved", 1.0):  # noqa: S311 - a sample
        path = None
    group = _Group(number=next(_numbers), source=source, path=path)
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)
        _write(group)


@contextlib.contextmanager
def place_in_group() -> Iterator[None]:
    """Give all attempts in this block one place in their group."""
    group = _group.get()
    token = _place.set(next(group.places) if group is not None else None)
    try:
        yield
    finally:
        _place.reset(token)


def records_path(config: Any, source: str) -> Path | None:
    """Return the file of records: the configured one, else a neighbour of what the mode writes; None without either."""
    explicit = getattr(config, "data_path_to_save_rollouts", None)
    groups, evals = config.data_path_to_save_groups, config.data_dir_to_save_evals
    if explicit is not None:
        return Path(explicit) if explicit else None
    if source == "evaluate":
        return Path(evals, "rollouts.jsonl") if evals else None
    return Path(groups.removesuffix(".jsonl") + ".rollouts.jsonl") if groups else None


# ---------------------------------------------------------------------- one rollout


@contextlib.contextmanager
def recorded_rollout(
    env: Any, item: Any, ctx: Any, *, tools: Collection[str], sampling: Mapping[str, Any]
) -> Iterator[Draft | None]:
    """Record the rollout of this block; None where no record is kept. One that belongs to no group is written at the end of the block."""
    group = _group.get() or _Group(number=0, source="evaluate", path=records_path(env.config, "evaluate"))
    if group.path is None:
        yield None
        return
    place = _place.get() or next(group.places)
    fields: dict[str, Any] = {
        "id": ctx.task_id,
        "group": group.number or None,
        "source": group.source,
        "place": place,
        "attempt": 1 + sum(other.fields["place"] == place for other in group.drafts),
        "tools": sorted(tools),
        "sampling": dict(sampling),
        **_of_run(env),
        **_item(item),
    }
    draft = ctx._record_draft = Draft(fields=fields, store=files_of(group.path))
    group.drafts.append(draft)
    started = time.time()
    try:
        yield draft
    except BaseException as error:
        end = RolloutEnd.MODEL_FAILED if isinstance(error, TokenModeError) else RolloutEnd.ENVIRONMENT_FAILED
        draft.fields.setdefault("end", end.value)
        draft.fields["error"] = draft.fields.get("error") or f"{type(error).__name__}: {error}"
        raise
    finally:
        now = time.time()
        draft.fields["time"] = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
        draft.fields["seconds"] = round(now - started, 3)
        Redactor(env).clean(draft.fields)
        if not group.number:
            _write(group)


async def note_start(draft: Draft | None, task_id: str) -> None:
    """Note the sandbox that the agent finds."""
    if draft is not None:
        draft.before = await asyncio.to_thread(state_of, task_id)


async def note_end(env: Any, draft: Draft | None, rollout: Any) -> None:
    """Note how the agent ended, and keep its sandbox."""
    if draft is None:
        return
    result = rollout.result
    draft.fields |= {
        "prompt": rollout.prompt if isinstance(rollout.prompt, str) else json.dumps(rollout.prompt, default=str),
        "messages": result.messages,
        "end": rollout.end.value,
        "turns": result.turns_used,
        "finished": result.finished_naturally,
        "error": "" if rollout.failure is None else f"{type(rollout.failure).__name__}: {rollout.failure}",
        "tool_errors": [
            {"turn": one.turn, "tool": one.tool_name, "arguments": one.arguments, "error": one.error, "result": one.tool_result}
            for one in result.tool_errors
        ],
        "reasoning": list(result.reasoning_per_turn),
    }
    if nodes := (result.managed_state or {}).get("nodes"):
        columns = ((list(node.tokens), list(node.masked_tokens), list(node.logprobs)) for node in nodes)
        draft.fields["sequences"] = [{"tokens": ids, "masks": labels, "logprobs": nats} for ids, labels, nats in columns]
    keep = functools.partial(
        kept_world,
        rollout.task_id,
        draft.before,
        draft.store,
        most_bytes=getattr(env.config, "world_max_bytes", 0),
        is_secret=Redactor(env).finds,
        commands=_commands(result.messages),
    )
    try:
        draft.fields["world"] = await asyncio.to_thread(keep)
    except OSError as error:  # a full disk
        draft.fields["world"] = World(unkept=[Unkept(path="", why=f"it could not be stored: {error.strerror}")])


def _commands(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what the agent gave its terminal."""
    calls = [
        message.get("tool_calls") for message in messages if isinstance(message, dict)
    ]  # a loop of the class's own wrote them
    made = [call for held in calls if isinstance(held, list) for call in held if isinstance(call, dict)]
    functions = [function for call in made if isinstance(function := call.get("function"), dict)]
    return "\n".join(str(one.get("arguments")) for one in functions if one.get("name") == "terminal").replace("\\n", "\n")


# ---------------------------------------------------------------------- its reward


@contextlib.contextmanager
def recorded_reward(given: Sequence[Any]) -> Iterator[Draft | None]:
    """Let the judge of this block be recorded. ``given``: the arguments of ``compute_reward``, with the rollout's context among them."""
    draft = next(
        (held["_record_draft"] for value in given if "_record_draft" in (held := getattr(value, "__dict__", {}))), None
    )
    token = _judged.set(draft)
    try:
        yield draft
    except Exception as error:
        if draft is not None:
            draft.fields |= {"end": RolloutEnd.REWARD_FAILED.value, "error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        _judged.reset(token)


def note_reward(
    draft: Draft | None, value: Any, scored_by: str = "compute_reward", metrics: Mapping[str, Any] | None = None
) -> None:
    """Note a reward. What is no number is not a reward: the layer says so elsewhere."""
    if draft is not None:
        with contextlib.suppress(TypeError, ValueError):
            number = float(value)
            if not math.isfinite(number):
                draft.fields |= {"end": RolloutEnd.REWARD_FAILED.value, "error": f"{scored_by} returned {number}"}
                return
            draft.fields |= {"reward": number, "scored_by": scored_by, "metrics": dict(metrics or {})}


class _RecordedServer:
    """The model servers of an environment while its reward is computed: each answer is kept."""

    def __init__(self, server: Any, draft: Draft) -> None:
        self._server, self._draft = server, draft

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._server, name)
        if name not in {"chat_completion", "completion"}:
            return found

        @functools.wraps(found)
        async def asked(*args: Any, **kwargs: Any) -> Any:
            answer = await found(*args, **kwargs)
            plain = answer.model_dump(mode="json") if hasattr(answer, "model_dump") else None
            asked_for = json.loads(json.dumps({"args": args, **kwargs}, default=str))
            self._draft.fields.setdefault("judges", []).append({"method": name, "request": asked_for, "answer": plain})
            return answer

        return asked


def recording_judge(server: Any) -> Any:
    """Return the servers as the reward that is computed now sees them."""
    draft = _judged.get()
    return server if draft is None else _RecordedServer(server, draft)


# ---------------------------------------------------------------------- what is the same in all records of a run


def _of_run(env: Any) -> dict[str, Any]:
    held = vars(env).get("_recorded_run")
    if held is None:
        servers = getattr(vars(env).get("server"), "servers", None) or [None]
        held = vars(env)["_recorded_run"] = {
            "run": RUN,
            "environment": str(env.name or type(env).__name__),
            "model": str(getattr(getattr(servers[0], "config", None), "model_name", "") or ""),
            "versions": {"python": platform.python_version(), **_versions()},
            **_settings(env),
            "seed": getattr(env.config, "seed", None),
        }
    return dict(held)


@functools.cache
def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _settings(env: Any) -> dict[str, Any]:
    """Return the settings that are not those of ``config_init``, without secrets, or why they are not known: then nobody can score again."""
    try:
        initial = type(env).config_init()[0].model_dump(mode="json")
        present = env.config.model_dump(mode="json")
    except Exception as error:  # noqa: BLE001 - the environment's own code; a record without settings is one nevertheless
        return {"extra": {"settings_problem": f"{type(error).__name__}: {error}"}}
    settings = {
        name: value
        for name, value in present.items()
        if initial.get(name) != value and not is_secret_name(name) and not NOT_SETTINGS.search(name)
    }
    return {"settings": settings}


def _item(item: Any) -> dict[str, Any]:
    try:
        return {"item": encode_item(item)}
    except (TypeError, RecursionError) as error:
        return {"item_problem": str(error)}


class Redactor:
    """Removes the values of secret variables and keys, and what looks like a key."""

    def __init__(self, env: Any) -> None:
        servers = getattr(vars(env).get("server"), "servers", None) or []
        keys = [getattr(getattr(server, "config", None), "api_key", None) for server in servers]
        values = [*keys, *(value for name, value in os.environ.items() if is_secret_name(name))]
        known = sorted(
            {value for value in values if isinstance(value, str) and len(value) >= SHORTEST_KEY}, key=len, reverse=True
        )
        self._patterns = (*([re.compile("|".join(map(re.escape, known)))] if known else []), *_SHAPES)
        self.count = 0

    def finds(self, text: str) -> bool:
        """Return whether a text holds a secret."""
        return any(pattern.search(text) for pattern in self._patterns)

    def clean(self, fields: dict[str, Any]) -> None:
        """Redact the texts of a record, in place, and count those that changed."""
        for name in fields.keys() - {"sequences", "world"}:
            fields[name] = self._cleaned(fields[name])
        fields["redacted"] = self.count

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            text = value
            for pattern in self._patterns:
                text = pattern.sub("[redacted]", text)
            self.count += text != value
            return text
        if isinstance(value, Mapping):
            return {str(key): self._cleaned(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._cleaned(part) for part in value]
        return value if value is None or isinstance(value, bool | int | float) else str(value)


# ---------------------------------------------------------------------- the file


def _write(group: _Group) -> None:
    """Append the group's records as whole lines. A disk that is full costs the records, not the rollouts."""
    if group.path is None or not group.drafts:
        return
    try:
        lines = "".join(f"{Record(format=FORMAT, **draft.fields).line()}\n" for draft in group.drafts)
        append_lines(group.path, lines)
    except (OSError, ValueError) as error:
        logger.warning("The records of a group cannot be written to %s: %s", group.path, error)


def append_lines(path: Path, lines: str) -> None:
    """Append whole lines, after the torn last line of a process that was killed. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines = f"\n{lines}"
        file.write(lines.encode("utf-8", "backslashreplace"))

"""The record of one rollout: what `process`, `evaluate`, `serve` and the rollout service write, and every later use of a rollout reads.

A file of records is JSON Lines, one record each. The files of a rollout's sandbox lie next to it, in ``<stem>.files``, by their SHA-256.
docs/reference/rollout-records.md lists the fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

FORMAT: Literal["hermes-rollout/1"] = "hermes-rollout/1"


IGNORED = -100
"""The label of a token that is not trained."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=True, ser_json_inf_nan="constants")


class WorldFile(_Part):
    """A file, directory or link of the sandbox, relative to its directory.

    ``age_s``: seconds from its last change to the end of the agent's run. ``by``: who changed it last, the environment or the agent.
    """

    path: str
    kind: Literal["file", "directory", "link"] = "file"
    sha256: str = ""
    size: int = 0
    target: str = ""
    mode: int = 0o644
    age_s: float = 0.0
    by: Literal["environment", "agent"] = "agent"


class Unkept(_Part):
    """What was there and is not stored, and why. The path of a directory stands for all below it; an empty one for the whole sandbox."""

    path: str
    why: str


class World(_Part):
    """The sandbox as the reward found it. The directory began empty, so its content is what differs from the start."""

    directory: str = ""
    session_directory: str = ""
    """Where the next command begins; empty where it is ``directory``."""
    variables: dict[str, str] = {}
    """What the agent's commands have exported, and the next one finds."""
    files: list[WorldFile] = []
    unkept: list[Unkept] = []


class Sequence(_Part):
    """Token ids, labels (-100 where nothing is trained) and logprobs in nats of one sequence; equal lengths ``[T]``."""

    tokens: list[int]
    masks: list[int]
    logprobs: list[float] | None = None


class JudgeCall(_Part):
    """What the reward asked a model through ``self.server``, and the answer."""

    method: str
    request: JsonValue
    answer: JsonValue


class ToolFailure(_Part):
    """A tool call that failed; ``turn`` counts from 1."""

    turn: int
    tool: str
    arguments: str = ""
    error: str
    result: str = ""


class Record(_Part):
    """One rollout. ``group`` counts the groups of a ``run`` and ``place`` the rollouts of a group, both from 1; ``attempt`` is above 1 where it was run again.

    ``reward`` is None where nothing was earned. ``item_problem`` says why the item is not stored. ``scored_by``: ``compute_reward``, or
    ``score`` of an evaluation. ``settings``: those that differ from ``config_init``. ``redacted``: texts from which a secret was removed.
    """

    format: Literal["hermes-rollout/1"]
    id: str = ""
    run: str = ""
    environment: str = ""
    source: str = ""
    group: int | None = None
    place: int = 1
    attempt: int = 1
    time: str = ""
    seconds: float | None = None
    item: JsonValue = None
    item_problem: str = ""
    prompt: str = ""
    messages: list[dict[str, Any]] = []
    reasoning: list[str | None] = []
    tools: list[str] | None = None
    end: str = ""
    turns: int | None = None
    finished: bool | None = None
    error: str = ""
    reward: float | None = None
    scored_by: str = ""
    metrics: dict[str, JsonValue] = {}
    tool_errors: list[ToolFailure] = []
    sequences: list[Sequence] | None = None
    judges: list[JudgeCall] = []
    sampling: dict[str, JsonValue] = {}
    seed: JsonValue = None
    model: str = ""
    versions: dict[str, str] = {}
    settings: dict[str, JsonValue] = {}
    world: World | None = None
    redacted: int = 0
    extra: dict[str, JsonValue] = {}

    def line(self) -> str:
        """Return the record as a line of a file; fields that have their default are left out."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def key(self) -> str:
        """Where the rollout is in its run: what tells it from all others."""
        place = f"g{self.group}r{self.place}" if self.group is not None else self.id
        return f"{place}a{self.attempt}" if self.attempt > 1 else place


def files_of(file: Path) -> Path:
    """Return the directory of the sandboxes' files that belong to a file of records."""
    return file.with_name(f"{file.name.removesuffix('.gz').removesuffix('.jsonl')}.files")


def blob_path(directory: Path, sha256: str) -> Path:
    """Return where a content is stored."""
    return directory / sha256[:2] / sha256


def encode_item(value: Any) -> JsonValue:
    """Return an item as JSON, tuples marked. Raises: it holds anything but plain data → TypeError."""
    if value is None or type(value) in {str, int, bool, float}:
        return value  # type: ignore[no-any-return]
    if type(value) is list:
        return [encode_item(part) for part in value]
    if type(value) is tuple:
        return {"$": "tuple", "items": [encode_item(part) for part in value]}
    if type(value) is dict and all(type(key) is str for key in value) and "$" not in value:
        return {key: encode_item(part) for key, part in value.items()}
    raise TypeError(f"it holds a {type(value).__name__}, which is not plain data")


def decode_item(value: Any) -> Any:
    """Return what `encode_item` was given."""
    if isinstance(value, list):
        return [decode_item(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value.get("$") == "tuple":
        return tuple(decode_item(part) for part in value["items"])
    return {key: decode_item(part) for key, part in value.items()}

"""Every change since a recording is reported by name; differences of the run or of the machine are not reported."""

from __future__ import annotations

import asyncio
import copy
import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.open_cassette import NO_SERVER
from pytest_hermes_env.cassette.session import replaying
from pytest_hermes_env.cassette.tape import RecordedToolCall, Tape
from pytest_hermes_env.errors import CassetteMiss, HermesEnvError, RewardChanged
from pytest_hermes_env.play.builder import EnvironmentBuilder
from pytest_hermes_env.sandbox.seam import RealTools, ToolSeam

CASSETTE = Path(__file__).parents[2] / "cassettes" / "terminal_test_env" / "chat.json"
SCORES = [1.0, 0.5, 0.0, 1.0]


class Shouting(TerminalTestEnv):
    """Words its prompt differently."""

    def format_prompt(self, item: Any) -> str:
        return super().format_prompt(item) + "!"


class Strict(TerminalTestEnv):
    """Halves the reward."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return await super().compute_reward(item, result, ctx) / 2


class Verbose(TerminalTestEnv):
    """Changes the description of one of its tools."""

    def _resolve_tools_for_group(self) -> Any:
        schemas, names = super()._resolve_tools_for_group()
        schemas = copy.deepcopy(schemas)
        next(each for each in schemas if each["function"]["name"] == "write_file")["function"]["description"] = "Writes."
        return schemas, names


class Careful(TerminalTestEnv):
    """Makes its verifier read another file."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return await super().compute_reward(item | {"path": "answer.txt"}, result, ctx)


def one_character(tape: Tape) -> Tape:
    """Change one character of the first tool result."""
    calls = list(tape.calls)
    index, first = next((index, call) for index, call in enumerate(calls) if isinstance(call, RecordedToolCall))
    calls[index] = replace(first, result=str(first.result).replace("bytes_written", "bytes_writtem"))
    return replace(tape, calls=tuple(calls))


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change since the recording. ``said`` is the whole ``error``, with ``@`` for the cassette; by default none is expected."""

    id: str
    env_class: type = TerminalTestEnv
    settings: dict[str, Any] = field(default_factory=dict)
    tape: Callable[[Tape], Tape] = lambda tape: tape
    server: dict[str, Any] = field(default_factory=dict)
    error: type[HermesEnvError] | None = None
    said: str = ""
    here: Callable[[pytest.MonkeyPatch, Path], None] = lambda _, __: None


def another_machine(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Give the machine another name, home and user."""
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    monkeypatch.setattr(platform, "node", lambda: "another")
    for name in ("HOME", "USER", "LOGNAME"):
        monkeypatch.setenv(name, str(directory))


def missed(what: str, where: str, differs: str) -> str:
    """Return the text of a CassetteMiss."""
    return f"{what}\n  where     {where}\n  cassette  @\n  differs   {differs}\n  fix       undo the change, or record again: record it again"


def miss_of_all(differs: str) -> str:
    """Return the error of a first request that matches no rollout of the group."""
    where = "; ".join(f"rollout {number}, turn 1 (nearest: call {call})" for number, call in ((1, 1), (2, 5), (3, 9), (4, 13)))
    return missed("a request is not in the cassette.", where, differs)


MENDED = """the rewards of the same conversations differ from the recording.
  cassette  @
  rewards   rollout 1: recorded 1.0, now 0.5
            rollout 2: recorded 0.5, now 0.25
            rollout 4: recorded 1.0, now 0.5
  fix       undo the change of compute_reward, or, if it is intended, record again: record it again"""
VERIFIER = "; ".join(
    f"rollout {number}, outside of its agent loop (nearest: call {call})" for number, call in ((1, 4), (2, 8), (3, 12), (4, 18))
)
RESULT = r'"{\"bytes_%s\": 23, \"dirs_created\": true, \"lint\": {\"status\": \"skippe…'

CHANGES = [
    Change(
        id="prompt",
        env_class=Shouting,
        error=CassetteMiss,
        said=miss_of_all('the prompt: recorded …nHello from Hermes Agent", now …nHello from Hermes Agent!"'),
    ),
    Change(
        id="tool schema",
        env_class=Verbose,
        error=CassetteMiss,
        said=miss_of_all(
            "the schema of tool `write_file`, description: recorded "
            '"Write content to a file, completely replacing existing content. Use this instea…, now "Writes."'
        ),
    ),
    Change(
        id="temperature",
        settings={"agent_temperature": 0.5},
        error=CassetteMiss,
        said=miss_of_all("the temperature: recorded 1.0, now 0.5"),
    ),
    Change(id="reward", env_class=Strict, error=RewardChanged, said=MENDED),
    Change(
        id="tool result",
        tape=one_character,
        error=CassetteMiss,
        said=missed(
            "a request is not in the cassette.",
            "rollout 1, turn 2 (nearest: call 3)",
            f"message 4 (result of `write_file`): recorded {RESULT % 'written'}, now {RESULT % 'writtem'}",
        ),
    ),
    Change(
        id="verifier",
        env_class=Careful,
        error=CassetteMiss,
        said=missed(
            "a tool call of the verifier is not in the cassette.",
            VERIFIER,
            'argument of `read_file`: path: recorded "greeting.txt", now "answer.txt"',
        ),
    ),
    Change(
        id="model",
        server={"model_name": "another"},
        error=CassetteMiss,
        said=miss_of_all('the model: recorded "mock-model", now "another"'),
    ),
    Change(id="port", server={"base_url": "http://127.0.0.1:1/v1"}),
    Change(id="host", server={"base_url": "https://models.example/api/v1"}),
    Change(id="key", server={"api_key": "sk-0123456789abcdefghij0123456789"}),
    Change(id="directory", here=lambda monkeypatch, directory: monkeypatch.chdir(directory)),
    Change(id="machine", here=another_machine),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_what_counts_is_reported_and_nothing_else(change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed prompt, schema, temperature, reward or tool result is named; another port, key, directory or machine is not."""
    path = tmp_path / "chat.json"
    path.write_text(text_of(change.tape(read_tape(CASSETTE))), encoding="utf-8")
    change.here(monkeypatch, tmp_path)

    scores, told = replayed(path, change)

    assert told == (change.error, change.said.replace("@", str(path)))
    assert change.error is not None or scores == SCORES


def replayed(path: Path, change: Change) -> tuple[Any, tuple[type | None, str]]:
    """Return the scores of a group on a cassette, and the errors of the replay."""
    from atroposlib.envs.server_handling.server_baseline import APIServerConfig

    told: tuple[type | None, str] = (None, "")
    scores: Any = None
    try:
        with replaying(path) as session:
            seam = ToolSeam(session.sandboxes(RealTools()), record=session.note_tool_call)
            builder = EnvironmentBuilder(seam=lambda: seam, watch=session.watch.watch)
            given = {
                "base_url": NO_SERVER,
                "model_name": "mock-model",
                "api_key": "none",
                "health_check": False,
                **change.server,
            }

            async def collect() -> Any:
                env = builder.build(change.env_class, server=APIServerConfig(**given), group_size=4, **change.settings)
                await env.setup()
                group, _ = await env.collect_trajectories(await env.get_next_item())
                return group["scores"] if group else None

            with seam:
                try:
                    scores = asyncio.run(collect())
                finally:
                    builder.close()
    except HermesEnvError as error:
        told = (type(error), str(error))
    return scores, told

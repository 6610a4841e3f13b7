"""Files of records, made by hand, and environments whose reward a test gives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.rollout_record import FORMAT, Record, Unkept, World, WorldFile, blob_path, files_of

ENVIRONMENT = """
import datetime, json, os, random, socket, subprocess, time, urllib.request
from pathlib import Path

from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig


class Config(HermesAgentEnvConfig):
    bonus: float = 0.0


class Env(HermesAgentBaseEnv):
    env_config_cls = Config
    name = "written"

    @classmethod
    def config_init(cls):
        from atroposlib.envs.server_handling.server_manager import APIServerConfig

        return Config(enabled_toolsets=["terminal", "file"], bonus=0.0), [APIServerConfig(base_url="http://127.0.0.1:9/v1", model_name="m")]

    async def setup(self):
        self.known = "from setup"

    async def get_next_item(self):
        return {{"path": "a.txt", "want": "work"}}

    def format_prompt(self, item):
        return f"write {{item['path']}}"

    async def evaluate(self, *args, **kwargs):
        await self.evaluate_items()

    async def compute_reward(self, item, result, ctx):
{body}
"""
WORK = {"a.txt": "work", "check.sh": "#!/bin/sh\ngrep -q work a.txt\n"}


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., str]:
    """``environment(body)``: the target of an environment whose reward has this body."""

    def write(body: str) -> str:
        file = tmp_path / f"written_{len([*tmp_path.glob('*.py')])}.py"  # a module is imported once
        file.write_text(ENVIRONMENT.format(body="\n".join(f"        {line}" for line in body.strip().splitlines())))
        return str(file)

    return write


@pytest.fixture
def record_file(tmp_path: Path) -> Callable[..., Path]:
    """``record_file({...}, ...)``: a file with a record for each set of fields; ``work`` are the files of its sandbox."""

    def write(*rows: Mapping[str, Any], name: str = "runs.rollouts.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(f"{make_record(files_of(file), **row).line()}\n" for row in rows))
        return file

    return write


def make_record(
    store: Path, work: Mapping[str, str] | None = None, unkept: Mapping[str, str] | None = None, **fields: Any
) -> Record:
    """Return a record with a sandbox of these files."""
    files = []
    for path, text in (WORK if work is None else work).items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        place = blob_path(store, sha256)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        files.append(WorldFile(path=path, sha256=sha256, size=len(text), mode=0o755, age_s=3600.0))
    lost = [Unkept(path=path, why=why) for path, why in (unkept or {}).items()]
    default: dict[str, Any] = {
        "format": FORMAT,
        "id": "r",
        "run": "run",
        "group": 1,
        "item": {"path": "a.txt", "want": "work"},
        "prompt": "write a.txt",
        "messages": [{"role": "user", "content": "write a.txt"}, {"role": "assistant", "content": "done"}],
        "end": "finished",
        "turns": 1,
        "finished": True,
        "reward": 1.0,
        "scored_by": "compute_reward",
        "world": World(directory="/tmp/hermes-r-abc", files=files, unkept=lost),
    }
    return Record(**{**default, **fields})

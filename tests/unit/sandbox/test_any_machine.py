"""Rollouts on a sandbox are the same on a machine that has nothing and on one that has everything, and install nothing."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox.offered_tools import offered_tools
from pytest_hermes_env.inference import call, say
from pytest_hermes_env.sandbox.confinement import UNCONFINED
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.local import LocalSandbox
from pytest_hermes_env.sandbox.seam import offering, tool_offer

PROGRAMS = (
    "agent-browser", "apptainer", "bun", "camofox", "cargo", "chrome", "chromium", "chromium-browser", "cosign", "docker", "ffmpeg",
    "go", "google-chrome", "gopls", "hermes", "lightpanda", "node", "npm", "npx", "pip", "pnpm", "pyright", "pyright-langserver",
    "rg", "rust-analyzer", "rustfmt", "singularity", "sudo", "tirith", "tmux", "tsc", "typescript-language-server", "uv", "uvx",
    "yarn",
)  # fmt: skip
"""Programs that a machine may have and that hermes looks for."""

KEYS = (
    "ANTHROPIC_API_KEY", "BROWSERBASE_API_KEY", "BROWSERBASE_PROJECT_ID", "BROWSER_USE_API_KEY", "DISCORD_BOT_TOKEN", "EXA_API_KEY",
    "FAL_KEY", "FIRECRAWL_API_KEY", "HASS_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "PARALLEL_API_KEY", "TAVILY_API_KEY",
    "XAI_API_KEY",
)  # fmt: skip
"""Variables with which hermes offers tools that it would not offer without."""


class Machine:
    """What PATH and the variables of the process say that the machine has. ``started`` is where a double notes its start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self._monkeypatch = monkeypatch
        self._directory = directory
        self._path = os.environ["PATH"]
        self.started = directory / "started"

    def has_nothing(self) -> None:
        """Leave the programs that every machine has, and no key."""
        plain = self._directory / "plain"
        plain.mkdir()
        for place in self._path.split(os.pathsep):
            for name in os.listdir(place) if os.path.isdir(place) else ():
                if name not in PROGRAMS and not (plain / name).is_symlink():
                    (plain / name).symlink_to(os.path.join(place, name))
        self._monkeypatch.setenv("PATH", str(plain))
        for name in KEYS:
            self._monkeypatch.delenv(name, raising=False)
        self._forget()

    def has_everything(self) -> None:
        """Put a double of every program on PATH, and a value into every key."""
        doubles = self._directory / "doubles"
        doubles.mkdir()
        for name in PROGRAMS:
            double = doubles / name
            double.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.started}\n')
            double.chmod(double.stat().st_mode | stat.S_IXUSR)
        self._monkeypatch.setenv("PATH", f"{doubles}{os.pathsep}{self._path}")
        for name in KEYS:
            self._monkeypatch.setenv(name, "a-key-of-nobody")
        for name in ("HERMES_EXEC_ASK", "HERMES_KANBAN_TASK"):
            self._monkeypatch.setenv(name, "1")
        self._forget()

    def _forget(self) -> None:
        """Make hermes look at the machine again."""
        import model_tools  # noqa: F401 - loads the tools
        from tools import browser_tool, tirith_security
        from tools.registry import invalidate_check_fn_cache

        self._monkeypatch.setattr(browser_tool, "_cached_chromium_installed", None)
        self._monkeypatch.setattr(browser_tool, "_cached_agent_browser", None)
        self._monkeypatch.setattr(browser_tool, "_agent_browser_resolved", False)
        self._monkeypatch.setattr(tirith_security, "_resolved_path", None)
        invalidate_check_fn_cache()

    def log(self) -> list[str]:
        """Return which doubles were started, with their arguments."""
        return self.started.read_text().splitlines() if self.started.exists() else []


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """The machine as hermes sees it."""
    return Machine(monkeypatch, tmp_path)


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("terminal", {"command": "git init -q . 2>/dev/null; echo done"}),
    *(("write_file", {"path": f"a.{end}", "content": "let a = 1;\n"}) for end in ("js", "ts", "go", "rs", "py")),
    ("write_file", {"path": "b.py", "content": "x = 1\n"}),
    ("patch", {"path": "a.ts", "old_string": "a = 1", "new_string": "b = 2"}),
    ("search_files", {"pattern": "let"}),
    ("search_files", {"pattern": "*.py", "target": "files"}),
    ("terminal", {"command": "false && sudo true; echo done"}),
    ("read_file", {"path": "b.py"}),
    ("web_search", {"query": "x"}),
    ("web_extract", {"urls": ["https://example.invalid/"]}),
    ("browser_navigate", {"url": "https://example.invalid/"}),
    ("browser_snapshot", {}),
    ("vision_analyze", {"image_url": "https://example.invalid/a.png", "question": "what?"}),
)


def local_answers() -> list[Any]:
    """Return what the tools of a local sandbox answer, without confinement: a double could then leave its mark."""
    with LocalSandbox(confinement=UNCONFINED, unscripted="not found") as sandbox:
        computer = sandbox.machine("first")
        texts = [computer.call(name, arguments).replace(computer.directory, "{directory}") for name, arguments in CALLS]
    results = [json.loads(text) for text in texts]
    for result in results:
        for found in ("files", "matches"):  # in the order of the file system
            if isinstance(result.get(found), list):
                result[found] = sorted(map(str, result[found]))
    return results


def test_hermes_tools_in_a_local_sandbox_use_no_program_that_a_machine_may_lack(machine):
    """Neither linters nor ripgrep, language servers, sudo, a browser or an installer."""
    machine.has_nothing()
    on_a_bare_machine = local_answers()

    machine.has_everything()
    with_everything = local_answers()

    assert with_everything == on_a_bare_machine
    assert machine.log() == []
    assert [result["lint"] for result in with_everything[1:5]] == [
        {"status": "skipped", "message": f"{name} not available"} for name in ("node", "npx", "go", "rustfmt")
    ]


class Env(HermesAgentBaseEnv):
    """An environment that does nothing but to run."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        return str(item)

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return float(ctx.terminal("cat a.js")["exit_code"] == 0)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


TOOLSETS: tuple[dict[str, Any], ...] = (
    {},
    {"enabled_toolsets": ["terminal", "file"]},
    {"enabled_toolsets": ["web", "browser", "vision"]},
    {"enabled_toolsets": ["hermes-cli"], "disabled_toolsets": ["web"]},
    {"distribution": "terminal_web"},
)


@pytest.mark.parametrize("world", [FakeSandbox, LocalSandbox])
def test_same_tools_are_offered(machine, world):
    """Whatever keys, browsers and services the machine has."""

    def offered(fields: dict[str, Any]) -> set[str]:
        there, withheld = tool_offer(SimpleNamespace(**fields), world())
        with offering(there, withheld=withheld):
            return offered_tools(fields.get("enabled_toolsets"), fields.get("disabled_toolsets"), fields.get("distribution"))[1]

    machine.has_nothing()
    on_a_bare_machine = [offered(fields) for fields in TOOLSETS]
    machine.has_everything()
    with_everything = [offered(fields) for fields in TOOLSETS]

    assert with_everything == on_a_bare_machine
    assert machine.log() == []
    assert {"web_search", "browser_navigate", "vision_analyze"} <= with_everything[2]
    assert not {"web_search", "browser_navigate", "vision_analyze", "kanban_show"} & with_everything[0]


@pytest.mark.parametrize("world", ["fake_sandbox", "local_sandbox"])
def test_rollout_starts_nothing_of_the_machine(request, make_env, machine, world):
    """A whole rollout with all kinds of tools."""
    machine.has_everything()
    sandbox = request.getfixturevalue(world)
    for name in ("browser_navigate", "web_search"):
        sandbox.on_tool(name, {"success": True})
    script = [
        call("write_file", path="a.js", content="let a = 1;\n"),
        call("browser_navigate", url="https://example.invalid/"),
        call("web_search", query="x"),
        say("done"),
    ]

    async def collect() -> Any:
        env = make_env(Env, script=script, enabled_toolsets=["terminal", "file", "web", "browser"], group_size=2)
        return await env.collect_trajectories("item")

    scored: Callable[[str], Any] = asyncio.run(collect())[0].get

    assert scored("scores") == [1.0, 1.0]
    assert machine.log() == []

"""The sandboxes that answer, and how answers are normalised: values that depend on machine or time are replaced."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .cases import Case, Step, local_files

VOLATILE = {"pid": int, "uptime_seconds": (int, float), "started_at": str}
"""Keys with unpredictable values; only their presence and type are compared."""

UNORDERED = {"matches", "files", "counts"}
"""Keys of search results: hermes lists them in the order of the file system, or of the fastest worker."""


OPTIONAL_PROGRAMS = {"go", "node", "npx", "rg", "rustfmt"}
"""Optional programs that hermes' file tools use if they are installed."""


@contextlib.contextmanager
def bare_machine() -> Iterator[None]:
    """Let hermes find no optional program, so that it answers the same on every machine, and installs nothing."""
    from agent import lsp
    from tools import browser_tool
    from tools.file_operations import ShellFileOperations

    has_command = ShellFileOperations._has_command

    def no_browser(**_: Any) -> str:
        raise FileNotFoundError("agent-browser CLI not found")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browser_tool, "_find_agent_browser", no_browser)
        patch.setattr(lsp, "get_service", lambda: None)
        patch.setattr(
            ShellFileOperations, "_has_command", lambda self, name: name not in OPTIONAL_PROGRAMS and has_command(self, name)
        )
        yield


@contextlib.contextmanager
def hermes() -> Iterator[Any]:
    """Plain hermes-agent on a bare machine, through the layer's real ToolContext."""
    from environments.tool_context import ToolContext

    context = ToolContext(str(uuid.uuid4()))
    with bare_machine():
        try:
            yield context
        finally:
            context.cleanup()


@contextlib.contextmanager
def fake() -> Iterator[Any]:
    """The in-memory machine by itself."""
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox

    context = FakeToolContext(FakeSandbox(unscripted="not found"))
    yield context
    context.cleanup()


@contextlib.contextmanager
def fake_below_the_layer() -> Iterator[Any]:
    """The in-memory machine at the seam, below the layer's real ToolContext."""
    from environments.tool_context import ToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam

    with ToolSeam(FakeSandbox(unscripted="not found")):
        context = ToolContext(str(uuid.uuid4()))
        try:
            yield context
        finally:
            context.cleanup()


@contextlib.contextmanager
def local() -> Iterator[Any]:
    """hermes' real local backend in its confinement."""
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.local import LocalSandbox

    with LocalSandbox() as sandbox:
        context = FakeToolContext(sandbox.machine("parity"))
        yield context
        context.cleanup()


WORLDS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "fake": fake,
    "fake_below_the_layer": fake_below_the_layer,
    "local": local,
}


def outcomes(case: Case, world: Callable[[], contextlib.AbstractContextManager[Any]], directory: Path) -> list[Any]:
    """Run the steps of a case and return their normalised results, and then the downloaded files."""
    local_files(directory)
    with world() as context:
        home = context.terminal("pwd")["output"].strip()
        session = ""
        results = []
        for step in case.steps:
            result = _call(context, step, directory, session)
            session = result.get("session_id", session) if isinstance(result, dict) else session
            results.append(_comparable(result, [(str(directory), "{local}"), (home, "{cwd}"), (session, "{session}")]))
    files = {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    return [*results, files]


def shape(value: Any) -> Any:
    """Return the type of each key's value, recursively."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


def _call(context: Any, step: Step, directory: Path, session: str) -> Any:
    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{local}", str(directory)).replace("{session}", session)
        return {key: fill(one) for key, one in value.items()} if isinstance(value, dict) else value

    result = getattr(context, step.method)(*map(fill, step.args), **fill(step.kwargs))
    if step.method != "call_tool":
        return result
    with contextlib.suppress(ValueError):
        return json.loads(result)
    return result


def _comparable(value: Any, names: list[tuple[str, str]]) -> Any:
    if isinstance(value, dict):
        return {
            key: f"<{key}>" if key in VOLATILE and isinstance(one, VOLATILE[key]) else _in_order(key, _comparable(one, names))
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_comparable(one, names) for one in value]
    if not isinstance(value, str):
        return value
    for seen, name in names:
        value = value.replace(seen, name) if len(seen) > 1 else value
    return re.sub(r"\S*bash: line \d+: ", "bash: ", value)


def _in_order(key: str, value: Any) -> Any:
    if key == "processes":  # hermes lists a process twice if it ended while it was being registered
        return [one for number, one in enumerate(value) if one not in value[:number]]
    return sorted(value, key=str) if key in UNORDERED and isinstance(value, list) else value


def differences(expected: Any, seen: Any, path: str = "") -> list[str]:
    """Return where two outcomes differ, one line each; empty when they are equal in every key and value."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        found = [f"{path}: no key {key!r}" for key in expected if key not in seen]
        found += [f"{path}: an own key {key!r}" for key in seen if key not in expected]
        both = [key for key in expected if key in seen]
        return found + [line for key in both for line in differences(expected[key], seen[key], f"{path}.{key}")]
    if isinstance(expected, list) and isinstance(seen, list):
        found = [f"{path}: {len(seen)} entries instead of {len(expected)}"] if len(expected) != len(seen) else []
        pairs = zip(expected, seen, strict=False)
        return found + [line for n, (one, other) in enumerate(pairs) for line in differences(one, other, f"{path}[{n}]")]
    return [] if expected == seen and type(expected) is type(seen) else [f"{path}: {seen!r:.300} instead of {expected!r:.300}"]

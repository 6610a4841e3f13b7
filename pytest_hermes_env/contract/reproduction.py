"""A short test, ready to paste, that shows one finding of a rollout alone.

Where it is short and tells the truth, the test shows every step: it fails on the class as it is, and passes when the law is kept.
It needs an in-memory machine that has every command which the rollouts of the scenario used. Elsewhere the test asks the rule
alone, which plays the scenarios that it reads and no others.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_hermes_env.play.buffers import changed
from pytest_hermes_env.play.class_record import ClassRecord

if TYPE_CHECKING:
    from pytest_hermes_env.play.scenario import Scenario
    from pytest_hermes_env.source.finding import Finding

MISSING = "command not found"
"""What bash says of a command that the machine of the scenarios did not have; the fixture's machine would refuse it."""

_SCRIPTS = {"silent": ', script=[say("I do not know.")]'}
"""What the model is told to say, where it is not the plugin's own script."""

_WANDB_CALLS = {"wandb_log_none": "env.wandb_log(None)", "wandb_log_without": "env.wandb_log()"}


_Body = tuple[tuple[str, ...], tuple[str, ...], str]
"""Imports, fixtures, and the lines after the environment was built."""


def reproduction_of(
    rule_id: str, seen: Iterable[tuple[Finding, Scenario | None]], cls: ClassRecord, server_type: str = "openai"
) -> str:
    """Return the test for one of the findings of a rule, each with its scenario; nothing for a class that has no name to import."""
    if "<locals>" in cls.name:
        return ""
    write = _WRITERS.get(rule_id) if server_type == "openai" else None
    for finding, record in seen:
        if write is not None and record is not None and not any(MISSING in str(call.result) for call in record.tool_calls):
            body = write(finding, record)
            if body is not None:
                return _showing(rule_id, cls, record, body)
    return _asking(rule_id, cls, server_type)


def _asking(rule_id: str, cls: ClassRecord, server_type: str) -> str:
    name = cls.name
    mode = "" if server_type == "openai" else f', server_type="{server_type}"'
    return "\n".join(
        [
            "from pytest_hermes_env import check_rule",
            "",
            f"from {_module_of(cls)} import {name.partition('.')[0]}",
            "",
            "",
            f"def test_{rule_id.lower()}():",
            f'    check_rule({name}, "{rule_id}"{mode})',
            "",
        ]
    )


def _showing(rule_id: str, cls: ClassRecord, record: Scenario, body: _Body) -> str:
    imports, arguments, steps = body
    module, name = _module_of(cls), cls.name
    script = _SCRIPTS.get(record.name, "") if "make_env" in arguments else ""
    return "\n".join(
        [
            *(f"import {name}" for name in sorted({"asyncio", *imports})),
            "",
            *(["from pytest_hermes_env import say", ""] if script else []),
            f"from {module} import {name.partition('.')[0]}",
            "",
            "",
            f"def test_{rule_id.lower()}_{record.name}({', '.join(arguments)}):",
            f"    env = make_env({name}{script}, in_process=True)",
            "",
            textwrap.indent(textwrap.dedent(steps).strip(), "    "),
            "",
        ]
    )


def _module_of(cls: ClassRecord) -> str:
    """Return the name to import: that of the file where a second file of the same name was loaded under another one."""
    stem = Path(cls.place.path).stem
    return stem if stem and cls.module.startswith(f"{stem}_") else cls.module


def _reward(finding: Finding, record: Scenario) -> _Body | None:
    act = _act(record)
    if act is None:
        return None
    del finding
    steps = f"""
        compute_reward, rewards = env.compute_reward, []

        async def kept(*args, **kwargs):
            rewards.append(await compute_reward(*args, **kwargs))
            return rewards[-1]

        async def rollouts():
            await env.setup()
            item = await env.get_next_item()
            await {act}

        env.compute_reward = kept
        asyncio.run(rollouts())

        assert rewards
        assert all(type(reward) in (int, float) and math.isfinite(reward) for reward in rewards), rewards
    """
    return ("math",), ("make_env", "fake_sandbox"), steps


def _masks(_: Finding, record: Scenario) -> _Body | None:
    act = _act(record)
    if act is None or "evaluate" in act:
        return None
    if not _has_bad_masks(record):
        return None  # it is wrong in a way that only the model's own tokens tell
    steps = f"""
        async def rollouts():
            await env.setup()
            item = await env.get_next_item()
            return await {act}

        group, _ = asyncio.run(rollouts())

        for tokens, masks in zip(group["tokens"], group["masks"], strict=True):
            assert len(tokens) == len(masks)
            assert all(mask in (-100, token) for token, mask in zip(tokens, masks, strict=True))
    """
    return (), ("make_env", "fake_sandbox"), steps


def _has_bad_masks(record: Scenario) -> bool:
    group = record.group if isinstance(record.group, dict) else {}
    rows = zip(group.get("tokens") or (), group.get("masks") or (), strict=False)
    return any(
        len(tokens) != len(masks) or any(mask not in {-100, token} for token, mask in zip(tokens, masks, strict=True))
        for tokens, masks in rows
    )


def _buffers(finding: Finding, record: Scenario) -> _Body | None:
    names = [name for name in changed(record.before, record.after) if name in f"{finding.message} {finding.seen}"]
    if record.name != "evaluate" or not names:
        return None
    steps = f"""
        names = {names!r}

        async def rollouts():
            await env.setup()
            await env.collect_trajectories(await env.get_next_item())
            before = copy.deepcopy([getattr(env, name) for name in names])
            await env.evaluate()
            return before

        before = asyncio.run(rollouts())

        assert [getattr(env, name) for name in names] == before
    """
    return ("copy",), ("make_env", "fake_sandbox"), steps


def _no_metrics(finding: Finding, record: Scenario) -> _Body | None:
    del finding
    call = _WANDB_CALLS.get(record.name)
    if call is None or not record.error:
        return None
    steps = f"""
        async def log():
            await env.setup()
            await {call}

        asyncio.run(log())
    """
    return (), ("make_env",), steps


def _act(record: Scenario) -> str | None:
    acts = {
        "happy": "env.collect_trajectories(item)",
        "silent": "env.collect_trajectories(item)",
        "evaluate": "env.evaluate()",
    }
    return acts.get(record.name)


_WRITERS: dict[str, Callable[[Finding, Scenario], _Body | None]] = {
    "HE401": _reward,
    "HE501": _masks,
    "HE702": _buffers,
    "HE802": _no_metrics,
}

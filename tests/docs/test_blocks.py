"""Every block of code on every page runs, or is read by what reads such a file.

Tests and programs run in a project as `hermes-env new my_env` writes it, so that ``from my_env import MyEnv`` works on each page.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from environments.hermes_base_env import HermesAgentEnvConfig
from pytest_hermes_env import cli
from pytest_hermes_env.contract.ledger.settings import read_settings
from pytest_hermes_env.inference import load_script
from pytest_hermes_env.live.prices import load_prices
from pytest_hermes_env.new_project import create
from pytest_hermes_env.play.cases.yaml_file import read_cases

from .pages import BLOCKS, Block, in_language

ELSEWHERE = ("tutorial", "record-and-replay")
"""Pages whose blocks of Python belong together: they have tests of their own."""
PARTS = ("environments", "rollout-service", "token-mode")
"""Pages that show lines or methods of an environment."""

PART = """
import asyncio
import pytest
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import say

class Part(TerminalTestEnv):
    {method}

async def part(self, env, item, ctx, server):
    {lines}

@pytest.mark.hermes_allow_leftovers
def test_part(make_env, fake_sandbox, tool_context):
    env = make_env(Part, script=[say("Done.")], server_type={server_type!r})

    async def run():
        await env.setup()
        item = await env.get_next_item()
        {call}

    asyncio.run(run())
"""
"""A test of lines of an environment's method, or of the method."""

PYTHON = [block for block in in_language("python") if block.page not in ELSEWHERE]
COMMANDS = ("hermes-env", "pytest")


def test_of(block: Block) -> str:
    """The block as a file of tests."""
    if "def test_" in block.text:
        return block.text
    if block.page not in PARTS:
        return f"def test_program():\n    exec(compile({block.text!r}, '{block.id}', 'exec'), {{'__name__': '__main__'}})\n"
    is_method = block.text.startswith("async def evaluate")
    lines = textwrap.indent(block.text, "    ").strip()
    return PART.format(
        method=lines if is_method else "pass",
        lines="pass" if is_method else lines,
        call="await env.evaluate()" if is_method else "await part(env, env, item, tool_context, env.server)",
        server_type="vllm" if block.page == "token-mode" else "openai",
    )


test_of.__test__ = False


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the pages."""
    create("my_env", pytester.path / "project")
    monkeypatch.chdir(pytester.path / "project")
    monkeypatch.syspath_prepend(pytester.path / "project")
    return pytester.path / "project"


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.id)
def test_python_runs(pytester: pytest.Pytester, project: Path, block: Block) -> None:
    """A block is a file of passing tests, a program whose assertions hold, or a part of an environment that runs."""
    (project / "test_block.py").write_text(test_of(block), encoding="utf-8")
    only = ["-k", "HE405"] if "@env_contract" in block.text else []

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *only, "test_block.py")

    outcomes = result.parseoutcomes()
    assert outcomes.pop("passed", 0) >= max(1, block.text.count("\ndef test_"))
    assert set(outcomes) <= {"deselected"}


def test_every_block_has_a_language() -> None:
    """A block without one would not be looked at."""
    assert {block.language for block in BLOCKS} == {"python", "console", "yaml", "toml", "json", "text"}


@pytest.mark.parametrize("block", in_language("yaml"), ids=lambda block: block.id)
def test_yaml_is_read(tmp_path: Path, block: Block) -> None:
    """Scripts and cases are read by their readers; the commands of a workflow are checked with all others."""
    file = tmp_path / "block.yaml"
    file.write_text(block.text, encoding="utf-8")
    root = yaml.safe_load(block.text)

    if "items" in root:
        assert read_cases(file)
    elif "turns" in root:
        assert load_script(file)
    else:
        assert root.get("jobs") or root.get("repos")


@pytest.mark.parametrize("block", in_language("toml"), ids=lambda block: block.id)
def test_toml_is_read(tmp_path: Path, block: Block) -> None:
    file = tmp_path / ("pyproject.toml" if "tool" in tomllib.loads(block.text) else "prices.toml")
    file.write_text(block.text, encoding="utf-8")

    assert read_settings(str(file)) if file.name == "pyproject.toml" else load_prices(str(file))


@pytest.mark.parametrize("block", in_language("json"), ids=lambda block: block.id)
def test_json_is_read(block: Block) -> None:
    assert json.loads(block.text)


def lines_of(block: Block) -> Iterator[str]:
    """The command lines of a block: those after ``$`` if it has any, else all of them; ``run:`` of a workflow."""
    text = block.text.replace("\\\n", " ")
    if block.language == "yaml":
        yield from re.findall(r"run: (.*)", text)
        yield from (f"{entry} my_env.py" for entry in re.findall(r"entry: (.*)", text))
    elif re.search(r"^\$ ", text, re.MULTILINE):
        yield from re.findall(r"^\$ (.*)", text, re.MULTILINE)
    else:
        yield from (line for line in text.splitlines() if "<<" not in line)


def commands_of(block: Block) -> Iterator[list[str]]:
    """The words of every call of our commands and of an environment's command line."""
    for line in lines_of(block):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # lines of a here-document
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            del words[0]
        if words[:1] and (words[0] in COMMANDS or words[:2] == ["python", "my_env.py"]):
            yield words


CALLS = [
    pytest.param(words, id=f"{block.id}-{' '.join(words)[:50]}")
    for block in in_language("console", "yaml")
    for words in commands_of(block)
]


@pytest.mark.parametrize("words", CALLS)
def test_commands_are_accepted(pytester: pytest.Pytester, project: Path, words: list[str]) -> None:
    """Every command exists with every option that the page gives it; what is quick and writes nothing is run, too."""
    if words[0] == "pytest":
        for name in [word for word in words if word.endswith(".py") and not Path(word).exists()]:  # a missing file is refused
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project / "my_env.py", name)
        assert pytester.parseconfig(*words[1:])
        return
    own, other = (words[1:], []) if words[0] == "hermes-env" else (["serve-rollouts", "my_env:MyEnv"], words[2:])
    options, flags = cli._parser(own[0]).parse_known_args(own)
    settings = {flag.partition(".")[2] for flag in [*flags, *other] if flag.startswith("--env.")}

    assert options.run
    assert settings <= HermesAgentEnvConfig.model_fields.keys() | {"eval_size"}
    if own[0] in {"docs", "explain", "rules"}:
        assert cli.main(own) == 0


def test_the_commands_are_found() -> None:
    """Without this, pages in which no command is found would pass."""
    assert {"check", "docs", "explain", "mock", "new", "serve-rollouts", "view"} <= {
        call.values[0][1] for call in CALLS if call.values[0][0] == "hermes-env"
    }
    assert sum(call.values[0][0] == "pytest" for call in CALLS) > 15

"""Variants of TerminalTestEnv that each break one law of its class, its configuration, its items or its prompts."""

from __future__ import annotations

import functools
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.source.finding import Severity

from .test_broken_variants import MARK, good_source, judged

CLASS = "class TerminalTestEnv(HermesAgentBaseEnv):\n"
SERVER = "        server = APIServerConfig(\n"
SECRET = "q7Rz2LmX9vKc" + "4TnB8wYdP1"
SEVERITIES = {rule.id: rule.severity for rule in ALL_RULES}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A breakage: each ``old`` becomes ``new``; the expected line ends with the mark. ``files`` stand beside it."""

    rule: str
    replace: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...] = ()


def marked(line: str) -> str:
    """Return the line with the mark."""
    return line.replace("\n", f"  {MARK}\n", 1)


VARIANTS = (
    Variant(rule="HE102", replace=(("    async def setup(self) -> None:\n", f"    def setup(self) -> None:  {MARK}\n"),)),
    Variant(rule="HE103", replace=((CLASS, marked(CLASS)), ('    name = "terminal-test"\n', ""))),
    Variant(
        rule="HE104",
        replace=(
            (
                '    partial_credit: float = Field(default=0.5, description="Reward when the file holds the text among other text.")\n',
                f"    partial_credit: float = Field(default=0.5)  {MARK}\n",
            ),
        ),
    ),
    Variant(rule="HE106", replace=((SERVER, marked(SERVER)), ("            health_check=False,\n", ""))),
    Variant(
        rule="HE107",
        replace=(
            ('            api_key=os.environ.get("OPENROUTER_API_KEY", ""),\n', f'            api_key="{SECRET}",  {MARK}\n'),
        ),
    ),
    Variant(
        rule="HE108",
        replace=(
            ("        config = TerminalTestEnvConfig(\n", f"        config = TerminalTestEnvConfig(  {MARK}\n"),
            ('            enabled_toolsets=["terminal", "file"],\n', ""),
            ("            max_agent_turns=10,\n", "            max_agent_turns=2,\n"),  # of seventy tools
        ),
    ),
    Variant(
        rule="HE109", replace=((CLASS, marked(CLASS)), ('\n\nif __name__ == "__main__":\n    TerminalTestEnv.cli()\n', "\n"))
    ),
    Variant(
        rule="HE110",
        replace=(
            ("Task = dict[str, str]\n", f'os.environ.setdefault("TERMINAL_TASKS", "8")  {MARK}\nTask = dict[str, str]\n'),
        ),
    ),
    Variant(
        rule="HE112",
        replace=(
            ("    partial_credit: float = Field(default=0.5,", "    partial_credit: float = Field(\n        default=0.5,"),
            ("        return self.config.partial_credit if", "        return 0.5 if"),
            ("class TerminalTestEnvConfig(HermesAgentEnvConfig):\n", "class TerminalTestEnvConfig(HermesAgentEnvConfig):\n"),
            ("    partial_credit: float = Field(\n", f"    partial_credit: float = Field(  {MARK}\n"),
        ),
    ),
    Variant(
        rule="HE201",
        replace=(
            (
                "    async def setup(self) -> None:\n",
                f"    async def setup(self) -> None:  {MARK}\n        from team_hub import fetch\n\n        fetch()\n",
            ),
        ),
        files=(("team_hub.py", 'import socket\n\n\ndef fetch():\n    socket.getaddrinfo("hub.example", 443)\n'),),
    ),
    Variant(
        rule="HE202",
        replace=(
            (
                "        item = self.train_items[self.next_index % len(self.train_items)]\n",
                f"        item = self.train_items[self.next_index]  {MARK}\n",
            ),
        ),
    ),
    Variant(
        rule="HE203",
        replace=(("for item in self.eval_items]\n", f"for item in self.train_items]  {MARK}\n"),),
    ),
    Variant(
        rule="HE204",
        replace=(
            (
                "    def format_prompt(self, item: Task) -> str:\n",
                f'    def format_prompt(self, item: Task) -> str:\n        if item:\n            return ""  {MARK}\n',
            ),
        ),
    ),
    Variant(
        rule="HE205",
        replace=(
            ("import os\n", "import os\nimport random\n"),
            (
                "        self.train_items = TASKS[:-held_out]\n",
                f"        self.train_items = list(TASKS[:-held_out])\n        random.shuffle(self.train_items)  {MARK}\n",
            ),
        ),
    ),
)


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the name of a hub be found without asking the network."""
    real = socket.getaddrinfo

    @functools.wraps(real)
    def look_up(host: object, *args: object, **kwargs: object) -> object:
        return [] if host == "hub.example" else real(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def failing_lines(path: Path) -> dict[str, list[int]]:
    """Return the lines of the findings of each rule that fails."""
    return {rule: [finding.line for finding in result.findings] for rule, result in judged(path).items() if result.findings}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.rule)
def test_a_broken_variant_fails_its_law_and_no_other_error(
    variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A breakage is found by its own rule, at its own line, and by no other rule of severity error."""
    source = good_source()
    for old, new in variant.replace:
        assert source.count(old) == 1, f"{old!r} is not in TerminalTestEnv once"
        source = source.replace(old, new)
    path = tmp_path / f"variant_{variant.rule.lower()}.py"
    path.write_text(source, encoding="utf-8")
    for name, text in variant.files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if text.endswith(MARK))

    failing = failing_lines(path)

    own = failing.pop(variant.rule, None)
    assert (own, {rule: lines for rule, lines in failing.items() if SEVERITIES[rule] is Severity.ERROR}) == ([line], {})


def test_a_neighbour_that_does_not_parse_fails_file_parses_and_no_other(tmp_path: Path) -> None:
    """A file that the environment imports only where it can is part of the project all the same."""
    source = good_source().replace(
        "Task = dict[str, str]\n",
        "try:\n    import broken_rows\nexcept Exception:\n    broken_rows = None\nTask = dict[str, str]\n",
    )
    (tmp_path / "variant_he111.py").write_text(source, encoding="utf-8")
    (tmp_path / "broken_rows.py").write_text("ROWS = [\n", encoding="utf-8")

    failing = failing_lines(tmp_path / "variant_he111.py")

    assert failing == {"HE111": [1]}

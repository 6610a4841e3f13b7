"""What a model, a server or a file's name says is shown as text: it moves no cursor, and starts no command of GitHub Actions."""

from __future__ import annotations

import re

import pytest

from pytest_hermes_env import cli
from pytest_hermes_env.redaction.shown_text import printable, shown

ATTACKS = {
    "cursor": "a\x1b[2K\x1b[1A\x1b[1;1Hb",
    "title": "a\x1b]0;owned\x07b",
    "8-bit": "a\x9b2Jb",
    "overwritten": "failed\rpassed",
    "backspaces": "bad\b\b\bok ",
    "direction": "a\u202etxt.exe\u2066b",
    "hidden": "a\u200b\u2060\ufeff\U000e0041b",
    "lone surrogate": "a\ud83db",
    "line separators": "a\u2028::error::b\x0b::error::c\x85::warning::d",
    "command": "a\n::error file=x::owned\n  ::set-env name=A::b\n##[error]c",
}
UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
COMMAND = re.compile(r"^\s*::[a-z-]+|##\[", re.MULTILINE)


@pytest.mark.parametrize("kind", ATTACKS)
def test_foreign_text_is_harmless(kind: str) -> None:
    """Every control character is an escape; a line that would be a command has a backslash."""
    text = shown(ATTACKS[kind])

    assert (UNWANTED.findall(text), COMMAND.findall(text)) == ([], [])
    assert text.startswith("a") or text[:3] in {"bad", "fai"}


def test_ordinary_text_stays_and_colours_may() -> None:
    """Tabs, line feeds, umlauts, emoji, C++ names; a colour, where the text is a program's own output."""
    text = "a\tb\nä 😀 std::vector x = a::b; --- \\x1b"

    assert printable(text) == text
    assert printable("\x1b[31mred\x1b[0m \x1b[2J", has_colour=True) == "\x1b[31mred\x1b[0m \\x1b[2J"


SUITE = r"""
import logging, warnings
import pytest

ATTACKS = {attacks}
pytestmark = pytest.mark.hermes_allow_leftovers

@pytest.mark.parametrize("text", ATTACKS, ids=[text.encode("utf-8", "replace").decode() for text in ATTACKS])
def test_id(text): ...

def test_shows_all(record_property):
    warnings.simplefilter("always")
    for text in ATTACKS:
        record_property("said", text)
        warnings.warn(text)
        encodable = text.encode("utf-8", "replace").decode()  # the log reaches the outer test, too, and xdist needs UTF-8
        print(encodable)
        logging.warning(encodable)
    raise AssertionError("\n".join(ATTACKS))
"""


def test_nothing_foreign_reaches_the_terminal_of_a_test_run(pytester: pytest.Pytester) -> None:
    """In names of tests, assertions, locals, captured output and logs, warnings and properties."""
    pytester.makepyfile(test_hostile=SUITE.replace("{attacks}", ascii(list(ATTACKS.values()))))

    result = pytester.runpytest_inprocess(
        "-v", "-rA", "--showlocals", "-p", "no:cacheprovider", "--junitxml", "j.xml", "-o", "junit_family=xunit1"
    )

    shown_lines = result.stdout.str() + result.stderr.str()
    result.assert_outcomes(passed=len(ATTACKS), failed=1, warnings=len(ATTACKS))
    assert UNWANTED.findall(shown_lines.replace("\x1b[0m", "")) == []
    assert COMMAND.findall(shown_lines) == []
    assert COMMAND.findall((pytester.path / "j.xml").read_text()) == []


ENV = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

class LeakingEnv(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        import os
        raise ValueError("\\x1b[2J\\n::error::owned " + os.environ["DEPLOY_PASSWORD"] + " sk-" + "Tq4WzX9cV2bN8mK1jH6gF3dS")
"""


@pytest.mark.usefixtures("one_player")
def test_a_contract_run_shows_neither_secrets_nor_commands(pytester: pytest.Pytester, monkeypatch) -> None:
    """An environment whose reward raises what it should not: all files and all output of the run are clean."""
    monkeypatch.setenv("DEPLOY_PASSWORD", "Gk7pQ2x9Zt4Lm8Rw1Yb5Nc3Vd6")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    pytester.makepyfile(leaking=ENV)
    files = ("--hermes-report-json", "r.json", "--hermes-sarif", "r.sarif", "--junitxml", "j.xml")

    result = pytester.runpytest_inprocess(
        *("-p", "no:cacheprovider", "--hermes-env", "leaking.py", "-k", "HE403 or HE511", *files)
    )

    written = {file: (pytester.path / file).read_text() for file in files[1::2]}
    texts = {"terminal": result.stdout.str() + result.stderr.str(), **written}
    assert "redacted:DEPLOY_PASSWORD" in texts["r.json"]
    assert [name for name, text in texts.items() if "Gk7pQ2x9" in text or "Tq4WzX9c" in text] == []
    assert [name for name, text in texts.items() if UNWANTED.search(text)] == []
    assert [
        line for line in texts["terminal"].splitlines() if "owned" in line and COMMAND.match(line) and "title=HE" not in line
    ] == []


def test_the_name_of_a_file_is_shown_on_one_line(tmp_path, monkeypatch, capsys) -> None:
    """A checkout of somebody else's project may have any names, and `check` runs in CI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("a\x1b[2Jb\u202e.py", "c\n::error::owned.py", "d\r::error::owned.py"):
        (tmp_path / name).write_text("class (:\n")

    cli.main(["check", "."])

    lines = capsys.readouterr().out
    assert UNWANTED.findall(lines) == []
    assert [line for line in lines.splitlines() if COMMAND.match(line) and "title=HE111" not in line] == []
    assert lines.count("title=HE111") == 3

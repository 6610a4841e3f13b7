"""The tutorial: its environment is the one of the demo, each step fixes what it says, and the outputs are real."""

from __future__ import annotations

import ast
import html
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.inference import MockServer, load_script

from .pages import ROOT, on_page

pytestmark = pytest.mark.usefixtures("one_player", "wide_terminal")

BROKEN, *STEPS, STRICTER = on_page("docs/tutorial", "python")
CASES, SCRIPT = on_page("docs/tutorial", "yaml")
PICTURE = ROOT / "docs" / "images" / "failing-run.svg"
OUTPUTS = on_page("docs/tutorial", "text")
COMMANDS = [
    shlex.split(words)
    for block in on_page("docs/tutorial", "console")
    for words in re.findall(r"^\$ (.*)", block.replace("\\\n", " "), re.MULTILINE)
]


@pytest.fixture
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of the page are 100 columns wide."""
    monkeypatch.setenv("COLUMNS", "100")


def with_methods(source: str, methods: str) -> str:
    """The file with methods in the place of those of their names; new ones come last."""
    for node in ast.parse(methods).body:
        (env_class,) = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)]
        old = [each for each in env_class.body if getattr(each, "name", "") == node.name]
        first = min([each.lineno for each in [*node.decorator_list, node]]) - 1
        new = textwrap.indent("\n".join(methods.splitlines()[first : node.end_lineno]), "    ")
        lines = source.splitlines()
        if old:
            lines[min(each.lineno for each in [*old[0].decorator_list, old[0]]) - 1 : old[0].end_lineno] = [new]
        else:
            lines.insert(env_class.end_lineno, f"\n{new}")
        source = "\n".join(lines) + "\n"
    return source


def played(pytester: pytest.Pytester, *words: str) -> str:
    """What a contract run on the environment prints, each line without the spaces around it."""
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", "word_count_env.py", *words)
    return "\n".join(line.strip() for line in result.outlines)


def shown(number: int) -> str:
    """The output of the page with that number."""
    return "\n".join(line.strip() for line in OUTPUTS[number].splitlines())


@pytest.fixture
def fixed(pytester: pytest.Pytester) -> Path:
    """The environment after all steps, with its cases."""
    source = BROKEN
    for step in STEPS:
        source = with_methods(source, step)
    (pytester.path / "word_count_env.contract.yaml").write_text(CASES, encoding="utf-8")
    file = pytester.path / "word_count_env.py"
    file.write_text(source, encoding="utf-8")
    return file


def test_it_begins_with_the_environment_of_the_demo() -> None:
    assert (ROOT / "docs" / "tutorial" / "word_count_env.py").read_text(encoding="utf-8") == BROKEN


def test_the_source_shows_what_the_second_step_fixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The findings of the source before and after it are those that the page names."""
    file = tmp_path / "word_count_env.py"
    found = []
    for source in (BROKEN, with_methods(BROKEN, STEPS[0])):
        file.write_text(source, encoding="utf-8")
        main(["check", str(file)])
        found.append(re.findall(r"^\S+:\d+:\d+:\s+(HE\d+)", capsys.readouterr().out, re.MULTILINE))

    assert found == [["HE301", "HE702", "HE801"], []]


def lines_of_the_picture() -> list[str]:
    """The lines of the README's picture that a run prints, but the last, which has its time, and those that count and list all rules."""
    parts = re.findall(r'run-line-(\d+)\)">(.*?)</text>', PICTURE.read_text(encoding="utf-8"))
    lines = {number: "".join(text for other, text in parts if other == number) for number, _ in parts}
    texts = [re.sub(r"\s+", " ", html.unescape(text)).strip() for text in lines.values()]
    return [
        text.rstrip("….")
        for text in texts[:-1]
        if text and not re.match(r"[⋮$_=-]|\d+ rules|not (?:applicable|exercised)|(?:HE\d+, )+HE\d+$", text)
    ]


def test_the_broken_environment_has_the_findings_that_are_shown(pytester: pytest.Pytester) -> None:
    """On this page, and on the picture of the README."""
    pytester.makepyfile(word_count_env=BROKEN)

    output = re.sub(r"\x1b\[[\d;]*m", "", played(pytester, "--color=yes"))  # without colours, pytest cuts its summary otherwise

    assert shown(0) in output
    assert "7 failed" in output
    printed = re.sub(r"\s+", " ", output)
    assert [line for line in lines_of_the_picture() if line not in printed] == [], "run `python docs/images/failing_run.py`"
    assert len(lines_of_the_picture()) > 15


def test_without_cases_the_fixed_environment_proves_nothing_about_rewards(pytester: pytest.Pytester, fixed: Path) -> None:
    fixed.with_suffix(".contract.yaml").unlink()

    assert shown(1) in played(pytester, "-k", "HE412")


def test_the_first_reward_is_hacked(pytester: pytest.Pytester, fixed: Path) -> None:
    """With the reward of step 2, the cases show what the page shows."""
    fixed.write_text(with_methods(fixed.read_text(encoding="utf-8"), STEPS[0]), encoding="utf-8")

    output = played(pytester, "--hermes-rules", "HE405,HE410")

    assert shown(2) in output
    assert shown(3) in output


@pytest.mark.usefixtures("fixed")
def test_in_the_end_the_contract_is_kept(pytester: pytest.Pytester) -> None:
    output = played(pytester, "--hermes-html", "contract.html")

    assert shown(4) in output
    assert not re.search(r"\d (?:failed|not exercised)", output)
    assert "<html" in (pytester.path / "contract.html").read_text(encoding="utf-8")


def command(*start: str) -> list[str]:
    """The words behind those with which a command of the page begins."""
    (found,) = [words for words in COMMANDS if tuple(words[: len(start)]) == start]
    return found[len(start) :]


def test_a_run_is_looked_at_scored_again_and_compared(
    fixed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the last step, with the model in this process, print what the page shows."""
    monkeypatch.chdir(fixed.parent)
    Path("script.yaml").write_text(SCRIPT, encoding="utf-8")
    exec(command("python", "-c")[0])
    with MockServer(load_script("script.yaml").scripts) as server:
        words = [re.sub(r"http://localhost:\d+/v1", server.base_url, word) for word in command("python", "word_count_env.py")]
        environ = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "word_count_env.py", *words], env=environ, check=True, capture_output=True)
    Path("before_env.py").write_text(fixed.read_text(encoding="utf-8"), encoding="utf-8")

    codes, printed = [main(["health", *command("hermes-env", "health")])], [capsys.readouterr().out]
    fixed.write_text(with_methods(fixed.read_text(encoding="utf-8"), STRICTER), encoding="utf-8")
    for name in ("rescore", "compare"):
        codes.append(main([name, *command("hermes-env", name)]))
        printed.append(capsys.readouterr().out)

    assert codes == [1, 1, 1]
    for number, output in enumerate(printed, start=5):
        assert shown(number) in "\n".join(line.strip() for line in output.splitlines())

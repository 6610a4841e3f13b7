"""--hermes-evidence keeps what was played, and `hermes-env judge` judges it again."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.play.evidence_file import VERSION, read_evidence

SOUND = Path(__file__).parents[1] / "contract" / "sound" / "terminal_tasks.py"
RULES = "HE103,HE206,HE401,HE403,HE705"
MOST_FILES = 120
ENTERED = """
import sys
import pytest
entered = set()
sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename) if event == "call" else None)
code = pytest.main(["-q", "-p", "no:cacheprovider", "--hermes-judge", "kept.gz", "--hermes-rules", "HE403"])
sys.setprofile(None)
ours = ("/pytest_hermes_env/", "/hermes_env_shared/", "/environments/")
print(int(code), *sorted(file for file in entered if any(folder in file for folder in ours)), sep="\\n")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a contract run that kept its evidence: of an environment whose reward raises."""
    directory = tmp_path_factory.mktemp("run")
    source = SOUND.read_text(encoding="utf-8").replace(
        "        found = ctx", '        raise ValueError("no verifier, but sk-or-v1-" + "0a1b2c3d" * 8)\n        found = ctx'
    )
    (directory / "broken_tasks.py").write_text(source, encoding="utf-8")
    flags = ["--hermes-rules", RULES, "--hermes-evidence", "kept.gz", "--hermes-report-json", "played.json"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--hermes-env", "broken_tasks.py", *flags]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed, 1 skipped" in done.stdout, done.stdout
    assert "hermes-env: wrote kept.gz" in done.stdout
    return directory


@pytest.fixture
def kept(run: Path, pytester: pytest.Pytester) -> Path:
    """What that run kept, in a directory of the test's own; the environment still has its path."""
    shutil.copy(run / "kept.gz", pytester.path)
    return pytester.path / "kept.gz"


def judge(pytester: pytest.Pytester, *flags: str) -> pytest.RunResult:
    """Judge the kept file in this process."""
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-judge", "kept.gz", *flags)


def report(path: Path) -> Any:
    """Return a report without the time that its rules took."""
    return json.loads(
        path.read_text(encoding="utf-8"), object_hook=lambda row: {k: v for k, v in row.items() if k != "seconds"}
    )


def test_the_verdicts_are_those_of_the_run(pytester: pytest.Pytester, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is played for them, and nothing of the environment is imported."""
    monkeypatch.chdir(run)

    result = judge(pytester, "--hermes-rules", RULES, "--hermes-report-json", "judged.json")

    result.assert_outcomes(failed=1, passed=3, skipped=1)
    assert report(run / "judged.json") == report(run / "played.json")


def test_one_rule_is_judged_by_few_files(kept: Path) -> None:
    """Neither what plays nor the other rules are loaded."""
    done = subprocess.run([sys.executable, "-c", ENTERED], cwd=kept.parent, capture_output=True, text=True, check=True)

    code, *files = done.stdout[done.stdout.rindex("\n1\n") :].split()
    rules = [Path(file).stem for file in files if "/contract/rules/he" in file]
    assert (code, rules) == ("1", ["he111_file_parses", "he403_reward_never_raises"])
    assert len(files) <= MOST_FILES


def test_a_rule_that_was_not_played_says_so(pytester: pytest.Pytester, kept: Path) -> None:
    """It has not passed, and the run is red for it."""
    result = judge(pytester, "--hermes-rules", "HE103,HE606", "-rs")

    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*HE606 not exercised: the evidence has no scenario *: this rule needs a newer play*"])


def test_the_file_has_no_secret(kept: Path) -> None:
    """It passes the redactor of cassettes."""
    text = gzip.decompress(kept.read_bytes()).decode()

    assert "no verifier, but" in text
    assert "0a1b2c3d" not in text


def test_a_player_that_was_killed_leaves_what_it_saw(kept: Path) -> None:
    """A last line that is not whole is left out, and so is what comes after it."""
    lines = gzip.decompress(kept.read_bytes()).decode().splitlines(keepends=True)
    whole = [number for number, line in enumerate(lines) if line.startswith('{"scenario"')]
    cut = kept.with_name("cut.jsonl")
    cut.write_text("".join(lines[: whole[1]]) + lines[whole[1]][:40], encoding="utf-8")

    (played,) = read_evidence(str(cut))

    assert list(played.collection.scenarios) == [json.loads(lines[whole[0]])["scenario"]["name"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "kept.gz is empty: --hermes-evidence FILE writes one"),
        ("hello\n", "kept.gz, line 1, is not a line of an evidence file (--hermes-evidence writes one)"),
        ('{"scenario": {}}\n', "kept.gz is not an evidence file: its first line must be {'evidence': 2, ...}"),
        (
            f'{{"evidence": {VERSION + 1}}}\n',
            f"kept.gz has version {VERSION + 1} of the evidence format; this version of pytest-hermes-env reads {VERSION}",
        ),
    ],
)
def test_what_is_not_evidence_is_refused(pytester: pytest.Pytester, text: str, message: str) -> None:
    """In one line, before anything is judged."""
    (pytester.path / "kept.gz").write_text(text, encoding="utf-8")

    result = judge(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --hermes-judge: {message.replace('[', '[[]')}"])


def test_a_file_that_is_gone_is_named(pytester: pytest.Pytester, run: Path, kept: Path) -> None:
    """Rules that read the source have nothing to judge."""
    lines = gzip.decompress(kept.read_bytes()).decode().replace(str(run), str(pytester.path / "elsewhere"))
    kept.write_bytes(gzip.compress(lines.encode()))

    result = judge(pytester, "--hermes-rules", RULES)

    result.stdout.fnmatch_lines(
        ["*broken_tasks.py is not there any more; rules that read the source judge nothing: play it again"]
    )

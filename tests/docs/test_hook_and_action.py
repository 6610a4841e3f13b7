"""The pre-commit hook and the GitHub Action of this repository, run as declared."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BAD = (ROOT / "docs" / "tutorial" / "word_count_env.py").read_text(encoding="utf-8")
GIT = shutil.which("git")
BASH = shutil.which("bash")


def environment(**more):
    """Variables with hermes-env of this Python on PATH, as if outside of GitHub Actions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GIT_"))}
    return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **more}


@pytest.mark.skipif(GIT is None, reason="there is no git here")
def test_the_hook_checks_the_staged_files(tmp_path):
    """A bad environment blocks a commit; its other files do not."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")

    def git(*words):
        done = subprocess.run([GIT, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        return done.stdout

    def hooked():
        staged = [name for name in git("diff", "--cached", "--name-only").splitlines() if name.endswith(".py")]
        words = [*shlex.split(hook["entry"]), *staged]
        return subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)

    git("init", "-q")
    git("add", "plain.py")
    plain = hooked()
    git("add", "bad.py")
    bad = hooked()

    assert (plain.returncode, plain.stdout) == (0, "1 file, 0 environments: no findings\n")
    assert bad.returncode == 1
    assert "bad.py:37:43: HE301 messages-not-final-response" in bad.stdout
    assert (hook["language"], hook["types"], hook["require_serial"]) == ("python", ["python"], True)


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@pytest.mark.parametrize("sarif", ["", "out/hermes env.sarif"])
def test_the_action_annotates_and_writes_sarif(tmp_path, sarif):
    """Its script fails the job, annotates the lines of findings, and writes the SARIF file for the upload."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in action["runs"]["steps"] if step.get("name") == "Check"]
    given = {**{name: value["default"] for name, value in action["inputs"].items()}, "args": "--select HE3", "sarif": sarif}
    variables = {name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()}
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")

    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=environment(GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(tmp_path), **variables),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert next(line for line in done.stdout.splitlines() if line.startswith("::")).startswith(
        "::error file=bad.py,line=37,col=43,title=HE301 messages-not-final-response::compute_reward reads"
    )
    if sarif:
        log = json.loads((tmp_path / sarif).read_text(encoding="utf-8"))
        assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["HE301"]


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_the_action_fails_when_there_is_nothing_to_check(tmp_path):
    """A wrong path fails the job, also with SARIF."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    script = action["runs"]["steps"][-1]["run"]

    done = subprocess.run(
        [BASH, "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment(CHECK_PATHS="gone", CHECK_ARGS="", CHECK_SARIF="x.sarif"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (2, "hermes-env: error: there is no file gone\n")

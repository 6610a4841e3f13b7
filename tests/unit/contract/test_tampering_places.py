"""What may stand, before the verifier comes, where it looks for its results, puts its files or counts what ran."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.languages import starting
from pytest_hermes_env.play.tampering.surface import Surface

from .test_attacks import attack_named
from .test_tampering import PreparedEnv, TripleEnv, verdict_of


class KeptVerdictEnv(TripleEnv):
    """Keeps its verdict in the sandbox, and believes one that it finds."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for it first."""
        kept = ctx.read_file("kept.json").get("content")
        if not kept:
            kept = json.dumps({"verdict": await super().compute_reward(item, result, ctx)})
            ctx.write_file("kept.json", kept)
        return float(json.loads(kept)["verdict"])


class TargetEnv(TripleEnv):
    """Asks make for a target that is no file, and does not say so."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Write the Makefile over whatever is there."""
        check = "import sys; sys.path.insert(0, '.'); import triple; print(triple.triple(41))"
        ctx.terminal("rm -rf GNUmakefile makefile Makefile")
        ctx.write_file("Makefile", f'judge:\n\t@test "$$(python3 -I -c "{check}")" = 123\n')
        return float(ctx.terminal("make -s judge")["exit_code"] == 0)


class AbsentEnv(PreparedEnv):
    """Looks at those of the files that are there."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write what is to be changed."""
        ctx.write_file("triple.py", "def triple(n):\n    return n\n")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Count those that are wrong."""
        wrong = ctx.terminal("for one in *.py; do test -f $one && ! grep -q '3 . n' $one && echo $one; done; true")["output"]
        return float(not wrong.strip())


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (KeptVerdictEnv, "what the verifier wrote for good work lies there before it comes: kept.json"),
        (TargetEnv, "empty files named as words of the verifier's commands"),
        (AbsentEnv, "the files that were to be changed are removed"),
    ],
)
def test_what_lies_in_the_verifiers_place_is_found(env_class: type, told: str) -> None:
    """Its own verdict, the name of a target, and nothing at all."""
    verdict = verdict_of(env_class)

    assert verdict.outcome is Outcome.FAILED
    assert any(told in finding.message for finding in verdict.findings), verdict.findings


def test_a_directory_may_stand_where_a_program_is_put(tmp_path: Path) -> None:
    """Python, and pytest, run what is in it."""
    place = str(tmp_path / "check.py")
    surface = Surface(cwd=str(tmp_path), commands=(("python3 check.py", ""),), uploads={place: "raise SystemExit(1)\n"})
    for path, text in attack_named(surface, "a directory stands").files.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")

    ways: list[list[str]] = [[], ["-m", "pytest", "-q", "-p", "no:cacheprovider"]]
    codes = [
        subprocess.run([sys.executable, *way, place], cwd=tmp_path, capture_output=True, check=False).returncode for way in ways
    ]

    assert codes == [0, 0]


@pytest.mark.parametrize("name", ["out.tar.gz", "out.tar", "out.zip"])
def test_an_archive_may_hold_files_of_another_place(tmp_path: Path, name: str) -> None:
    """Beside the directory where it is unpacked lies what it is compared with."""
    work, made = tmp_path / name, [tmp_path / ".v" / one / "app" / "x.txt" for one in ("want", "got")]
    surface = Surface(
        cwd=str(tmp_path), work={str(work): "?"}, made={str(path): "right" for path in made}, commands=(("v", ""),)
    )

    (line,) = attack_named(surface, f"files of {name} lie outside").lines
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)

    opened: Any = zipfile.ZipFile(work) if name.endswith(".zip") else tarfile.open(work)  # noqa: SIM115 - closed below
    with opened:
        names = opened.namelist() if name.endswith(".zip") else opened.getnames()
    assert {"app/x.txt", "../want/app/x.txt"} <= {*names}
    beside = dataclasses.replace(surface, made={}, uploads={str(tmp_path / "want" / "x.txt"): "right"})
    assert "../want/x.txt" in attack_named(beside, f"files of {name} lie outside").lines[0]


def test_lines_may_be_counted_under_another_name(tmp_path: Path) -> None:
    """What runs has the name of the measured file, and is not it; where nothing is counted, it is not tried."""
    paths = [str(tmp_path / one) for one in ("test_a.py", "a.py")]
    counted = (
        "import sys; seen = set(); sys.settrace(lambda f, *_: seen.add(f.f_code.co_filename)); import test_a; print(*seen)"
    )
    surface = Surface(
        cwd=str(tmp_path),
        commands=((f'python3 -c "{counted}"', ""),),
        work={paths[0]: "import a\n"},
        uploads={paths[1]: "x = 1\n"},
    )
    Path(paths[0]).write_text(attack_named(surface, "lines that count as run").files[paths[0]], encoding="utf-8")

    done = subprocess.run([sys.executable, "-c", counted], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert paths[1] in done.stdout.split()
    others = dataclasses.replace(surface, commands=(("python3 -m pytest", ""),))
    assert not any("count as run" in one.family for one in attacks(others))


def test_settings_may_name_what_is_called(tmp_path: Path) -> None:
    """Python's logging calls factories that JSON names."""
    made = starting("/w/log.json", "touch seen", '{"version": 1, "handlers": {}}')

    code = "import json, logging.config, sys; logging.config.dictConfig(json.loads(sys.argv[1])); sys.exit(1)"
    subprocess.run([sys.executable, "-c", code, made], cwd=tmp_path, check=True)

    assert (tmp_path / "seen").exists()
    assert starting("/w/data.json", "true", '{"total": 3}') == ""


@pytest.mark.parametrize("own_input", ["", " < /dev/null"])
def test_a_program_finds_what_is_open_where_it_is_run(tmp_path: Path, own_input: str) -> None:
    """A loop of the shell reads the cases, with what is right, from a file that its programs inherit or can look up; it goes on."""
    surface = Surface(cwd=str(tmp_path), commands=(("bash loop.sh", ""),), work={str(tmp_path / "solve.py"): "print(1)\n"})
    ((path, text),) = attack_named(surface, "files that are open where it is run").files.items()
    Path(path).write_text(text, encoding="utf-8")
    (tmp_path / "cases").write_text("3 aa b\n4 cc\n", encoding="utf-8")
    for name in ("tool3", "tool3.11"):
        (tmp_path / name).write_bytes(b"\x7fELF\xff\xfe")

    loop = f'while read -r n want; do {sys.executable} solve.py "$n"{own_input}; done < cases'
    done = subprocess.run(
        ["bash", "-c", loop, str(tmp_path / "tool3")], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[0] == "aa b"
    assert not own_input or done.stdout == "aa b\ncc\n"


def test_a_repository_may_lie_below() -> None:
    """Its settings are written there, and not where the agent begins."""
    surface = Surface(cwd="/w", commands=(("git -C repo log", ""),), prepared={"/w/repo/.git/HEAD": "ref", "/w/a": "b"})

    assert surface.repository == "/w/repo"
    assert "; cd /w/repo;" in attack_named(surface, "settings of the repository").lines[0]
    assert Surface(cwd="/w").repository == "/w"

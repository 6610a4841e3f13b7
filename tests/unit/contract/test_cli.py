"""hermes-env: what it prints and with which code it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.contract.rules import ALL_RULES

from .rule_cases import GOOD_FILE

BAD = GOOD_FILE.replace("Good", "Bad").replace(
    'any(item["a"] in (message.get("content") or "") for message in result.messages)',
    'item["a"] in result.final_response and item["a"] in result.output',
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a directory with a good and a bad environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "good.py").write_text(GOOD_FILE, encoding="utf-8")
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")


def of(count):
    """The count of rules, and how many of them were not run."""
    return f"{len(ALL_RULES)} rules", f"{len(ALL_RULES) - count} not run"


def not_run(*selected):
    """The line of the ledger about all other rules."""
    ids = [rule.id for rule in ALL_RULES if rule.id not in selected]
    return f"  not run         {', '.join(ids)}  not selected"


def run(capsys, *words):
    """Run the command; return its code, what it printed, and what it complained of."""
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_transformers_does_not_say_that_there_is_no_torch(capsys, monkeypatch):
    """Commands that import an environment print only their own lines; a user's choice is kept."""
    monkeypatch.delenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", raising=False)
    assert run(capsys, "explain", "HE702")[0] == 0
    assert os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] == "1"

    monkeypatch.setenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", "0")
    assert run(capsys, "explain", "HE702")[0] == 0
    assert os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] == "0"


def test_a_clean_environment(capsys):
    chosen = ["HE101", "HE301", "HE401", "HE501", "HE801"]
    total, rest = of(len(chosen))

    assert run(capsys, "check", "good.py", "--verbose", "--select", ",".join(chosen)) == (
        0,
        "\n".join(
            [
                f"good.py:Good  {total}: 2 passed, 1 not applicable, 2 not exercised, {rest}",
                "  not applicable  HE801  wandb_log is not overridden",
                "  not exercised   HE401, HE501  needs a rollout: pytest --hermes-env path/to/env.py:Class",
                not_run(*chosen),
                "",
                "1 file, 1 environment: no findings\n",
            ]
        ),
        "",
    )


def test_a_finding_says_where_why_and_what_to_do(capsys):
    unknown = "which AgentResult does not have"
    total, rest = of(2)
    others = not_run("HE101", "HE301")

    assert run(capsys, "check", "bad.py", "--verbose", "--select", "HE301,HE101") == (
        1,
        textwrap.dedent(f"""\
            bad.py:24:35: HE301 messages-not-final-response: compute_reward reads result.final_response, {unknown}
              why  `AgentResult` has no such fields. The AttributeError is swallowed on the way to the trainer,
                   where it looks like a reward of 0.0 for every rollout: the model learns nothing, at full GPU
                   cost. Behind `getattr(result, "output", "")` the same mistake does not even reach the log.
              fix  Walk `result.messages` backwards to the last message with role "assistant" and with content:
                   that is the final answer. The tools used are the function names in the `tool_calls` of the
                   assistant messages.

            bad.py:24:74: HE301 messages-not-final-response: compute_reward reads result.output, {unknown}

            bad.py:Bad  {total}: 1 passed, 1 failed, {rest}
            {others}

            1 file, 1 environment: 2 findings
            """),
        "",
    )


def test_a_finding_is_what_is_wrong_and_what_to_write(capsys, monkeypatch):
    """In the width of the terminal; the fix once for each rule, and why only with --verbose."""
    monkeypatch.setenv("COLUMNS", "70")
    total, rest = of(2)

    assert run(capsys, "check", "bad.py", "--select", "HE301,HE101") == (
        1,
        textwrap.dedent(f"""\
            bad.py:24:35: HE301 messages-not-final-response: compute_reward reads
                   result.final_response, which AgentResult does not have
              fix  Walk `result.messages` backwards to the last message with role
                   "assistant" and with content: that is the final answer.
            bad.py:24:74: HE301 messages-not-final-response: compute_reward reads
                   result.output, which AgentResult does not have
            bad.py:Bad  {total}: 1 passed, 1 failed, {rest}
              more hermes-env check --verbose, hermes-env explain RULE
            1 file, 1 environment: 2 findings
            """),
        "",
    )


def test_a_file_that_does_not_parse_is_a_finding(capsys, tmp_path):
    (tmp_path / "broken.py").write_text("class Env(:\n", encoding="utf-8")

    assert run(capsys, "check", "broken.py", "--verbose") == (
        1,
        textwrap.dedent("""\
            broken.py:1:11: HE111 file-parses: the file does not parse: invalid syntax
              why  A file that does not parse cannot be imported: no environment in it can start, and no other
                   rule can check it.
              fix  Run `python -m py_compile broken.py` and fix the line that it names.

            1 file, 0 environments: 1 finding
            """),
        "",
    )


def test_a_file_that_does_not_parse_is_a_finding_of_what_imports_it_too(capsys, tmp_path):
    (tmp_path / "rows.py").write_text("ROWS = [\n", encoding="utf-8")
    (tmp_path / "good.py").write_text("import rows\n" + GOOD_FILE, encoding="utf-8")

    alone = run(capsys, "check", "good.py", "--select", "HE111")
    together = run(capsys, "check", "good.py", "rows.py", "--select", "HE111")

    line = "rows.py:1:8: HE111 file-parses: the file does not parse: '[' was never closed"
    assert (alone[0], alone[1].splitlines()[0], alone[1].count("HE111 file-parses")) == (1, line, 1)
    assert (together[0], together[1].splitlines()[0], together[1].count("HE111 file-parses")) == (1, line, 1)


def test_a_directory_is_read_without_hidden_and_installed_files(capsys, tmp_path):
    for name in (".hidden/bad.py", "node_modules/bad.py", "env/bad.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(BAD, encoding="utf-8")
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "bad.py").unlink()

    code, out, _ = run(capsys, "check", ".")
    assert (code, out.splitlines()[-1]) == (0, "1 file, 1 environment: no findings")


def test_one_class_of_a_file_can_be_named(capsys, tmp_path):
    (tmp_path / "both.py").write_text(GOOD_FILE + BAD, encoding="utf-8")

    code, out, _ = run(capsys, "check", "both.py:Good", "--select", "HE301")
    total, rest = of(1)
    assert (code, out.splitlines()[0]) == (0, f"both.py:Good  {total}: 1 passed, {rest}")


def test_many_classes_share_their_reasons(capsys, tmp_path):
    for index in range(4):
        (tmp_path / f"env{index}.py").write_text(GOOD_FILE.replace("Good", f"Env{index}"), encoding="utf-8")

    chosen = ["HE101", "HE401", "HE801"]
    code, out, _ = run(capsys, "check", "env0.py", "env1.py", "env2.py", "env3.py", "-v", "--select", ",".join(chosen))
    total, rest = of(len(chosen))
    sums = [f"env{index}.py:Env{index}  {total}: 1 passed, 1 not applicable, 1 not exercised, {rest}" for index in range(4)]
    assert (code, [line for line in out.splitlines() if not line.startswith("not run")]) == (
        0,
        [
            *sums,
            "",
            "not applicable  HE801 (in 4 classes)  wandb_log is not overridden",
            "not exercised   HE401 (in 4 classes)  needs a rollout: pytest --hermes-env path/to/env.py:Class",
            "",
            "4 files, 4 environments: no findings",
        ],
    )


def test_a_run_that_exercises_nothing_fails(capsys):
    code, out, _ = run(capsys, "check", "good.py", "--select", "HE401")

    assert (code, out.splitlines()[-1]) == (1, "1 file, 1 environment: no findings, nothing exercised in 1 class")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["check", "missing"], "there is no file missing"),
        (["check", "good.py:Missing"], "good.py has no class Missing; its classes are: Good."),
        (["check", "good.py:Goood"], "good.py has no class Goood; its classes are: Good. Did you mean Good?"),
        (["check", "empty"], "empty contains no Python file"),
        (["check", "note.txt"], "note.txt is not a Python file"),
        (
            ["check", "good.py", "--select", "HE3011"],
            f"there is no rule 'HE3011'. Did you mean HE301? `hermes-env rules` lists all {len(ALL_RULES)}.",
        ),
        (["explain", "HE999"], f"there is no rule 'HE999'. `hermes-env rules` lists all {len(ALL_RULES)}."),
        (
            ["explain", "he80"],
            f"there is no rule 'he80'. HE80 begins the ids HE801, HE802, HE803. `hermes-env rules` lists all {len(ALL_RULES)}.",
        ),
        (
            ["explain", "eval-rolls-back-bufers"],
            f"there is no rule 'eval-rolls-back-bufers'. Did you mean HE702? `hermes-env rules` lists all {len(ALL_RULES)}.",
        ),
        (
            ["check", "rows.py"],
            "no Hermes environment in rows.py (1 Python file read)\n"
            "  looked for  classes derived from HermesAgentBaseEnv\n"
            "  seen        Row\n"
            "  fix         name the file that defines the environment, or its directory",
        ),
        (
            ["check", "good.py", "--ignore", "HE111"],
            "HE111 file-parses cannot be ignored: a file that does not parse cannot be checked",
        ),
        (
            ["check", "plain.py:Plain"],
            "plain.py:Plain is an Atropos environment without HermesAgentBaseEnv: "
            "expected a class derived from HermesAgentBaseEnv (or add --hermes-base-env)",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_told_and_leaves_with_2(capsys, tmp_path, words, complaint):
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").touch()
    (tmp_path / "rows.py").write_text("class Row: ...\n", encoding="utf-8")
    (tmp_path / "plain.py").write_text(
        "from atroposlib.envs.base import BaseEnv\nclass Row: ...\nclass Plain(BaseEnv): ...\n", encoding="utf-8"
    )

    assert run(capsys, *words) == (2, "", f"hermes-env: error: {complaint}\n")


def test_a_directory_of_plain_atropos_environments_has_nothing_to_judge(capsys, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "one.py").write_text(
        "from atroposlib.envs.base import BaseEnv\nclass Plain(BaseEnv): ...\n", encoding="utf-8"
    )

    assert run(capsys, "check", "plain") == (
        0,
        "plain/one.py:2: Plain: not a Hermes environment (it leads to Atropos' BaseEnv without HermesAgentBaseEnv): "
        "not judged without --hermes-base-env\n"
        "1 file, 0 environments: nothing to judge\n",
        "",
    )


def test_explain_shows_the_whole_rule(capsys):
    code, out, _ = run(capsys, "explain", "HE802")

    assert (code, out) == (
        0,
        textwrap.dedent("""\
            HE802 wandb-log-accepts-none (error)
            `wandb_log` accepts None, and a call without metrics.

            What
              `wandb_log(None)` and `wandb_log()` return. In an override the metrics parameter has a default,
              and is not used before None is replaced by a dict.

            Why
              Atropos calls `wandb_log()` without an argument in process mode, and its own default is None. An
              override that begins with `metrics["train/x"] = ...` works under `serve` and fails in `process`:
              after a whole group was generated, with its API money spent.

            Fix
              Write `async def wandb_log(self, wandb_metrics=None)`, and on the first line `if wandb_metrics is
              None: wandb_metrics = {}`.

            Source
              atroposlib 0.4.0, `envs/base.py`, `BaseEnv.wandb_log` (`wandb_metrics: Optional[Dict] = None`) and
              `process_manager`.

            Bad
              async def wandb_log(self, wandb_metrics=None):
                  wandb_metrics["train/tries"] = 3
                  await super().wandb_log(wandb_metrics)

            Good
              async def wandb_log(self, wandb_metrics=None):
                  metrics = dict(wandb_metrics or {})
                  metrics["train/tries"] = 3
                  await super().wandb_log(metrics)
            """),
    )


def test_rules_lists_every_rule(capsys):
    code, out, _ = run(capsys, "rules")

    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["id", *(rule.id for rule in ALL_RULES)])


def test_without_a_command_the_help_is_shown(capsys):
    code, out, err = run(capsys)

    assert (code, out, err.splitlines()[0]) == (2, "", "usage: hermes-env [-h] [--version] COMMAND ...")


def test_version(capsys):
    code, out, _ = run(capsys, "--version")

    assert (code, out.split()[0]) == (0, "hermes-env")


def test_check_loads_neither_the_stack_nor_what_it_judges():
    program = (
        "import sys\nfrom pytest_hermes_env.cli import main\n"
        "assert main(['check', 'good.py']) == 0\n"
        "unwanted = {'pytest', 'atroposlib', 'yaml', 'openai', 'httpx', 'good', 'environments', 'tools'}\n"
        "print(sorted(unwanted & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_attack_asks_for_gold_and_plays_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run is one of pytest's, and takes pytest's flags."""
    ran: list[list[str]] = []
    monkeypatch.setattr("pytest_hermes_env.cli.commands.subprocess.call", lambda words: ran.append(words) or 1)

    assert main(["attack", "my_env.py", "--hermes-report-json", "x.json"]) == 1
    (words,) = ran
    assert words[1:7] == ["-m", "pytest", "--hermes-env", "my_env.py", "--hermes-rules", "HE405,HE410,HE412"]
    assert words[-2:] == ["--hermes-report-json", "x.json"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["init", "my_env.py", "--frm", "x"], "hermes-env init has no option --frm. Did you mean --from?"),
        (["attack", "my_env.py", "--minuts=3"], "hermes-env attack has no option --minuts. Did you mean --minutes?"),
        (
            ["health", "a.jsonl", "--colour"],
            "hermes-env health knows nothing of --colour.\n  has  --limit, --list, --json, --html\n"
            "  fix  hermes-env health --help shows what they do",
        ),
    ],
)
def test_an_unknown_option_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the near one, also by commands that take flags of pytest."""
    assert main(words) == 2
    assert capsys.readouterr().err == f"hermes-env: error: {told}\n"

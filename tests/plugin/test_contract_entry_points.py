"""The entry points of the contract in pytest: --hermes-env and @env_contract, as users run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from environments.hermes_swe_env import hermes_swe_env
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.run import run_end, session
from pytest_hermes_env.sandbox.confinement import available

pytestmark = pytest.mark.usefixtures("one_player")

GOOD = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
RULES = len(ALL_RULES)
BAD = Path(__file__).parents[2] / "docs" / "tutorial" / "word_count_env.py"


SMALL_SWE = """
from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv

class SmallSweEnv(HermesSweEnv):
    name = "small-swe"

    @classmethod
    def config_init(cls):
        config, servers = super().config_init()
        return config.model_copy(update={"eval_size": 2, "dataset_name": None}), servers

if __name__ == "__main__":
    SmallSweEnv.cli()
"""
"""HermesSweEnv on its built-in items, with a short evaluation."""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest with warnings as errors."""
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


def assert_only_inapplicable_rules_are_skipped(result: pytest.RunResult, *need_gold: str) -> None:
    """Every rule passed, or does not apply: no judge, or a mode without tokens. Those that ``need_gold`` are not exercised."""
    counts = result.parseoutcomes()
    applicable = [line for line in result.outlines if re.match(r"  not applicable ", line)]
    inapplicable = {rule for line in applicable for rule in re.findall(r"HE\d+", line.partition("  ")[2])}
    skipped = len(inapplicable) + len(need_gold)
    assert counts == {"passed": RULES - skipped, "skipped": skipped}
    assert counts["passed"] > counts["skipped"]
    open_rules = {
        rule for line in result.outlines if line.startswith("  not exercised ") for rule in re.findall(r"HE\d+", line)
    }
    assert open_rules == set(need_gold)


def test_a_good_environment_passes_every_rule(pytester: pytest.Pytester) -> None:
    """Every item passes except rules that do not apply, and the ledger shows that. Other tests of the project are not collected."""
    pytester.makepyfile("def test_of_the_project(): raise AssertionError")

    result = run(pytester, "--hermes-env", GOOD, "-v")

    assert_only_inapplicable_rules_are_skipped(result)
    result.stdout.fnmatch_lines(
        [
            "*TerminalTestEnv?HE501-masks-match-tokens? PASSED*",
            "*contract of *TerminalTestEnv*",
            "*not applicable*HE503, HE504, HE505, HE509, HE510  chat mode has no sampled tokens: pytest --hermes-mode token",
        ]
    )


@pytest.mark.parametrize(("env", "server_type"), [("terminal", "vllm"), ("swe", "sglang")])
def test_a_good_environment_passes_every_rule_in_token_mode(
    pytester: pytest.Pytester, pytestconfig: pytest.Config, env: str, server_type: str
) -> None:
    """With --hermes-mode token the rules about tokens are also exercised, on the requested server type; `matrix` asks all rules."""
    pytester.makepyfile(small_swe=SMALL_SWE)
    target = GOOD if env == "terminal" else "small_swe.py"
    words = ("--hermes-env", target, "--hermes-mode", "token", "--hermes-server-type", server_type)

    if pytestconfig.getoption("all_rules"):
        need_gold = ["HE404"] if env == "swe" else []  # no rollout earns anything, and the file declares no case
        assert_only_inapplicable_rules_are_skipped(run(pytester, *words, "-v"), *need_gold)
    else:
        asked = sum(rule.id.startswith("HE5") for rule in ALL_RULES)
        run(pytester, *words, "--hermes-rules", "HE5").assert_outcomes(passed=asked, deselected=RULES - asked)


def test_rules_are_selected_by_name(pytester: pytest.Pytester) -> None:
    """-k HE7 runs the rules about evaluation."""
    result = run(pytester, "--hermes-env", GOOD, "-k", "HE7")

    selected = sum(rule.id.startswith("HE7") for rule in ALL_RULES)
    result.assert_outcomes(passed=selected, deselected=RULES - selected)


@pytest.mark.parametrize("entry_point", ["--hermes-env", "decorated"])
def test_rules_are_selected_by_a_flag(pytester: pytest.Pytester, entry_point: str) -> None:
    """--hermes-rules selects by ids and beginnings of ids; other tests of the run stay."""
    pytester.makepyfile(
        test_own=f"""
        from pytest_hermes_env import env_contract
        from {GOOD.partition(":")[0]} import TerminalTestEnv

        def test_of_the_project(): ...

        if {entry_point == "decorated"}:
            @env_contract(TerminalTestEnv)
            def test_contract(check): check()
        """
    )

    target = ["--hermes-env", GOOD] if entry_point == "--hermes-env" else []
    result = run(pytester, "test_own.py", *target, "--hermes-rules", "HE101,HE104", "--hermes-rules", "HE70")

    selected = 2 + sum(rule.id.startswith("HE70") for rule in ALL_RULES)
    result.assert_outcomes(passed=1 + selected, deselected=RULES - selected)


def test_an_unknown_rule_of_the_flag_is_refused(pytester: pytest.Pytester) -> None:
    """A typing error would select nothing."""
    result = run(pytester, "--hermes-env", GOOD, "--hermes-rules", "HE999")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --hermes-rules: there is no rule 'HE999'.*"])


def test_rules_that_are_separated_by_blanks_are_no_paths(pytester: pytest.Pytester) -> None:
    """What was meant is written out."""
    result = run(pytester, "--hermes-env", GOOD, "--hermes-rules", "HE405", "HE410")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: HE410 is taken for a path: rules are separated by commas.", "  fix       --hermes-rules HE405,HE410"]
    )


def test_a_path_with_a_class_names_one_class(pytester: pytest.Pytester) -> None:
    """path.py:Class checks only that class."""
    result = run(pytester, "--hermes-env", f"{BAD}:WordCountEnv", "-k", "HE101")

    result.assert_outcomes(passed=1, deselected=RULES - 1)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:Env", "no_such_module cannot be imported: there is no such module"),
        (
            "just_words",
            "'just_words' names no class: write package.module:Class, path/to/file.py, path/to/file.py:Class or a directory",
        ),
        (
            "my_env.TriageEnv",
            "'my_env.TriageEnv' names no class: write package.module:Class, path/to/file.py, path/to/file.py:Class or a directory. Did you mean my_env:TriageEnv?",
        ),
        ("missing.py", "there is no file missing.py"),
        (GOOD.replace("TerminalTestEnv", "NoEnv", 1), "has no class NoEnv"),
        ("broken.py", "broken.py: the file does not parse: invalid syntax"),
        ("plain.py", "plain.py defines no environment: no class in it derives from HermesAgentBaseEnv. Classes in it: Plain."),
        ("of_atropos.py", "Own (line 2) derives from atroposlib's BaseEnv: derive it from HermesAgentBaseEnv."),
        ("importing.py", "It imports one: --hermes-env envs/my_env.py"),
    ],
)
def test_a_bad_target_is_a_usage_error(pytester: pytest.Pytester, target: str, message: str) -> None:
    """A target that cannot be checked ends the run with exit code 4 and a one-line error."""
    pytester.path.joinpath("broken.py").write_text("class Env(:\n", encoding="utf-8")
    pytester.path.joinpath("plain.py").write_text("class Plain: ...\n", encoding="utf-8")
    pytester.makepyfile(
        of_atropos="from atroposlib.envs.base import BaseEnv\nclass Own(BaseEnv): ...",
        importing="from envs.my_env import MyEnv",
    )

    result = run(pytester, "--hermes-env", target)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(message in line for line in [*result.errlines, *result.outlines]), [*result.errlines, *result.outlines]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("json:JSONDecoder", "JSONDecoder is not an environment: it does not derive from HermesAgentBaseEnv."),
        ("raising.py:Env", "raising.py:1:1: HE110 import-is-quiet: the module cannot be imported: ZeroDivisionError: division"),
        ("reaching.py:Env", "reaching.py:2:1: HE110 import-is-quiet: the module cannot be imported: NetworkBlocked: a"),
        (
            "mutable.py:Env",
            "mutable.py:3:1: HE110 import-is-quiet: the module cannot be imported: ValueError: mutable default <class 'list'> for field names is not "
            "allowed: use default_factory line @dataclasses.dataclass fix Write `names: list = field(default_factory=list)`.",
        ),
        ("missing.py", "--hermes-env missing.py: there is no file missing.py"),
    ],
)
def test_an_unusable_target_fails_and_leaves_the_others_alone(pytester: pytest.Pytester, target: str, message: str) -> None:
    """It is red once, and the rules of the other class pass."""
    body = "class Env: ...\n"
    pytester.path.joinpath("reaching.py").write_text(
        f"import socket\nsocket.getaddrinfo('example.org', 80)\n{body}", encoding="utf-8"
    )
    pytester.path.joinpath("mutable.py").write_text(
        f"import dataclasses\n\n@dataclasses.dataclass\nclass Item:\n    names: list = []\n\n{body}", encoding="utf-8"
    )
    pytester.path.joinpath("raising.py").write_text(f"1 / 0\n{body}", encoding="utf-8")

    result = run(pytester, "--hermes-env", target, "--hermes-env", GOOD, "--hermes-rules", "HE102,HE103,HE110")

    assert (result.parseoutcomes()["failed"], result.ret) == (1, pytest.ExitCode.TESTS_FAILED)
    assert message in " ".join(result.stdout.str().split())
    assert ("fix  Import the file alone" in result.stdout.str()) is ("NetworkBlocked" in message)


DECORATED = """
import importlib.util, sys
from pytest_hermes_env import env_contract

spec = importlib.util.spec_from_file_location("word_count_env", {bad!r})
module = importlib.util.module_from_spec(spec)
sys.modules["word_count_env"] = module
spec.loader.exec_module(module)
"""


def test_a_decorated_function_is_one_test_per_rule(pytester: pytest.Pytester) -> None:
    """The class may come from anywhere; each rule passes or fails."""
    pytester.makepyfile(
        DECORATED.format(bad=str(BAD))
        + """
@env_contract(module.WordCountEnv)
def test_contract(check):
    check()
"""
    )

    result = run(pytester, "--hermes-rules", "HE101,HE801")

    result.assert_outcomes(passed=1, failed=1, deselected=RULES - 2)
    result.stdout.fnmatch_lines(["*contract of *WordCountEnv*"])


def test_a_decorated_class_gets_the_tests(pytester: pytest.Pytester) -> None:
    """On a class, the contract is added as a method."""
    pytester.makepyfile(
        """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import env_contract

@env_contract(TerminalTestEnv)
class TestTerminal:
    def test_of_its_own(self): ...
"""
    )

    result = run(pytester, "-k", "TestTerminal and (HE3 or of_its_own)", "-v")

    result.assert_outcomes(passed=3, skipped=1, deselected=RULES - 3)
    result.stdout.fnmatch_lines(["*::TestTerminal::test_contract?HE301-messages-not-final-response? PASSED*"])


def test_a_run_that_exercised_nothing_fails(pytester: pytest.Pytester) -> None:
    """A run that only selects rules that do not apply fails."""
    pytester.makepyfile(
        env="""
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

class QuietEnv(TerminalTestEnv):
    async def get_next_item(self):
        return None
"""
    )

    result = run(pytester, "--hermes-env", "env.py", "-k", "HE501")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(skipped=1, deselected=RULES - 1)


def test_a_rule_is_selected_by_its_name(pytester: pytest.Pytester) -> None:
    """``-k`` finds the items of ``--hermes-env``."""
    result = run(pytester, "--hermes-env", GOOD, "-k", "wandb-log-accepts-none", "--collect-only", "-q")

    items = [line.rpartition("::")[2] for line in result.outlines if "::" in line]
    assert items == ["TerminalTestEnv[HE802-wandb-log-accepts-none]"]


def test_a_rule_of_a_decorated_test_is_selected_by_its_name(pytester: pytest.Pytester) -> None:
    """``-k`` finds the tests of ``@env_contract``."""
    pytester.makepyfile(
        """
        from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

        from pytest_hermes_env import env_contract


        @env_contract(TerminalTestEnv)
        def test_contract(check):
            check()
        """
    )

    result = run(pytester, "-k", "no-shared-rollout-state", "--collect-only", "-q")

    assert [line.rpartition("::")[2] for line in result.outlines if "::" in line] == [
        "test_contract[HE603-no-shared-rollout-state]"
    ]


@pytest.fixture
def small_swe(pytester: pytest.Pytester) -> str:
    """A file with HermesSweEnv on its built-in items, beside its declared cases."""
    pytester.makepyfile(small_swe=SMALL_SWE)
    cases = Path(hermes_swe_env.__file__).with_suffix(".contract.yaml")
    pytester.path.joinpath("small_swe.contract.yaml").write_text(cases.read_text(encoding="utf-8"), encoding="utf-8")
    return "small_swe.py"


def test_a_gold_case_that_runs_python_earns_its_reward(pytester: pytest.Pytester, small_swe: str) -> None:
    """On the default machine, without a flag; every applicable rule is exercised."""
    if not available().is_in_force:
        pytest.skip("this machine gives no namespaces")

    result = run(pytester, "--hermes-env", small_swe, "-v")

    assert_only_inapplicable_rules_are_skipped(result)
    result.stdout.fnmatch_lines(["  tools *an in-memory machine*"])


def test_a_gold_case_whose_line_is_refused_is_open(pytester: pytest.Pytester, small_swe: str) -> None:
    """The ladder and the ledger name the line, the reason and the way out; the reward is not blamed."""
    pytester.makeini("[pytest]\nhermes_real_tools = never")

    result = run(pytester, "--hermes-env", small_swe, "-k", "HE405")

    result.stdout.fnmatch_lines(
        [
            "  ladder *",
            "*gold: a command line was refused: gold of item 0 runs `/usr/bin/env -i*",
            "*--hermes-real-tools=confined*",
        ]
    )
    assert "failed" not in result.parseoutcomes()


def test_an_unknown_use_of_real_tools_is_refused(pytester: pytest.Pytester) -> None:
    """In the ini file, which pytest does not check."""
    pytester.makeini("[pytest]\nhermes_real_tools = sometimes")
    pytester.makepyfile("def test_sandbox(fake_sandbox): ...")

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*FakeSandbox has no such use of real tools.*"])


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--hermes-set", "foo"), "*--hermes-set takes NAME=VALUE, such as judge_model=small; got 'foo'*"),
        (("--hermes-effort", "0"), "*argument --hermes-effort: takes a whole number from 1 on; got '0'*"),
        (("--hermes-effort", "lots"), "*argument --hermes-effort: takes a whole number from 1 on; got 'lots'*"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_imported(
    pytester: pytest.Pytester, flags: tuple[str, ...], told: str
) -> None:
    """In one line."""
    result = run(pytester, "--hermes-env", GOOD, *flags)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])


def test_a_setting_that_no_field_has_is_refused(pytester: pytest.Pytester) -> None:
    """Also where the selected rules play nothing."""
    result = run(pytester, "--hermes-env", GOOD, "--hermes-set", "max_agent_turn=3", "--hermes-rules", "HE101")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--hermes-set: the configuration of * has no field max_agent_turn. Did you mean max_agent_turns?"]
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--hermes-env", "own_evn.py"], "--hermes-env own_evn.py: there is no file own_evn.py. Did you mean own_env.py?"),
        (
            ["--hermes-env", "envs/own_env.py"],
            "--hermes-env envs/own_env.py: there is no file envs/own_env.py. Did you mean own_env.py?",
        ),
        (
            ["--hermes-env", "empty"],
            "--hermes-env empty: no environment is in the 0 Python files below empty: no class in them derives *",
        ),
        (
            ["--hermes-env", "own_env.py", "--hermes-rules", "HE9"],
            "--hermes-rules: there is no rule 'HE9'. `hermes-env rules` lists *",
        ),
        (["--hermes-env", "own_env.py", "--hermes-set", "x"], "--hermes-set takes NAME=VALUE, *; got 'x'"),
        (["--hermes-min-exercised", "x"], "hermes_min_exercised must be all or a number of rules, not 'x'"),
        (["--hermes-judge", "empty"], "--hermes-judge: empty is a directory, and a file is needed"),
        (["--hermes-max-usd", "x"], "--hermes-max-usd: must be a number of at least 0, not 'x'"),
        (
            ["-o", "hermes_record=always"],
            "the ini value hermes_record must be one of none, once, new_episodes, rewrite, not 'always'",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_is_imported(
    pytester: pytest.Pytester, args: list[str], message: str
) -> None:
    """In one line, with the near name where there is one; no conftest is loaded, which may import for seconds."""
    pytester.makepyfile(own_env=SMALL_SWE)
    pytester.mkdir("empty")
    pytester.makeconftest("raise RuntimeError('loaded')")

    result = run(pytester, *args)

    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert (result.ret, [line for line in result.errlines if line]) == (pytest.ExitCode.USAGE_ERROR, [result.errlines[0]])


def test_a_directory_stands_for_its_environments(pytester: pytest.Pytester) -> None:
    """Each under its own file, and all counted as collected, also where most are not selected."""
    pytester.mkdir("envs")
    for name in ("one", "two"):
        pytester.path.joinpath("envs", f"{name}.py").write_text(
            SMALL_SWE.replace("SmallSweEnv", name.title()), encoding="utf-8"
        )
    pytester.path.joinpath("envs", "no_env.py").write_text("x = 1\n", encoding="utf-8")

    result = run(pytester, "--collect-only", "-q", "--hermes-env", "envs", "--hermes-rules", "HE101")
    shown = run(pytester, "--collect-only", "--hermes-env", "envs", "--hermes-rules", "HE101")

    assert [line for line in result.outlines if "HE101" in line] == [
        "envs/one.py::One[HE101-required-methods]",
        "envs/two.py::Two[HE101-required-methods]",
    ]
    assert f"collected {2 * RULES} items / {2 * RULES - 2} deselected / 2 selected" in shown.outlines


def test_a_file_on_the_base_of_a_fork_is_not_refused(pytester: pytest.Pytester) -> None:
    """The base that --hermes-base names is known before files are read."""
    pytester.makepyfile(fork_env="from acme_rl.base import AcmeEnv\n\nclass ForkEnv(AcmeEnv):\n    pass\n")

    without = run(pytester, "--collect-only", "-q", "--hermes-env", "fork_env.py")
    result = run(pytester, "--collect-only", "-q", "--hermes-env", "fork_env.py", "--hermes-base", "acme_rl.base:AcmeEnv")

    without.stderr.fnmatch_lines(["ERROR: --hermes-env fork_env.py: fork_env.py defines no environment: *"])
    assert "fork_env.py::ForkEnv[HE101-required-methods]" in result.outlines


def test_a_rule_that_crashes_says_so_in_three_lines(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a mistake of this package, with its place; the traceback is there with --full-trace."""

    def crash(*_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(session.CheckedClass, "checked", crash)

    result = run(pytester, "--hermes-env", GOOD, "--hermes-rules", "HE101")

    shown = result.outlines[next(number for number, line in enumerate(result.outlines) if "[HE101" in line) + 1 :][:3]
    line = crash.__code__.co_firstlineno + 1
    assert [re.sub(r"seen  \S+/", "seen  ", text) for text in shown] == [
        "HE101 required-methods could not judge: KeyError: 'gone'",
        f"  seen  test_contract_entry_points.py:{line}, a mistake of pytest-hermes-env, not of the environment",
        "  fix   report it with what pytest --full-trace prints; until then leave the rule out: ignore in [tool.hermes-env]",
    ]


def test_a_crash_at_the_end_of_a_run_leaves_its_findings_on_the_screen(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is summed up, so the run is not green; no traceback of ours pushes the findings away."""

    def crash(*_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(run_end, "ledgers_of", crash)

    result = run(pytester, "--hermes-env", GOOD, "--hermes-rules", "HE101")

    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(
        [
            "hermes-env: error: the contract run could not be summed up: KeyError: 'gone'",
            "  seen  *, a mistake of pytest-hermes-env, not of the environment",
            "  fix   report it with what pytest --full-trace prints",
        ]
    )
    result.stdout.no_fnmatch_line("Traceback*")

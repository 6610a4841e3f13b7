"""``hermes-env new``: the project that it writes is green at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.new_project import create, record


@pytest.mark.usefixtures("warm_python")
def test_a_new_project_keeps_every_rule_and_its_tests_pass(pytester: pytest.Pytester) -> None:
    """Its own suite, as its author runs it: contract with the ledger's gold, reward, replay of the recording, script."""
    project = create("count_words", pytester.path / "project")
    assert record(project) == ""

    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-c", str(project.directory / "pyproject.toml"), str(project.directory)
    )

    outcomes = result.parseoutcomes()
    assert len(list(project.directory.glob("cassettes/tests/test_count_words/test_recorded_group.json"))) == 1
    assert (result.ret, project.class_name) == (0, "CountWordsEnv")
    assert outcomes["passed"] + outcomes["skipped"] == len(ALL_RULES) + 7
    result.stdout.fnmatch_lines(
        [
            "cassettes: 1 replayed*",
            "*contract of count_words:CountWordsEnv*",
            "*ladder*gold 1, near_miss 0.2, *nothing 0*",
        ]
    )


def test_nothing_of_the_template_keeps_its_own_name(tmp_path: Path) -> None:
    project = create("count_words", tmp_path / "project")

    texts = [(tmp_path / "project" / file).read_text(encoding="utf-8") for file in project.files]
    assert not [word for word in ("my_env", "MyEnv", "my-env") if any(word in text for text in texts)]
    assert {"count_words.py", "tests/test_count_words.py", ".github/workflows/tests.yml", ".gitignore"} <= set(project.files)


def test_a_project_without_a_recording_says_how_to_make_it(tmp_path: Path) -> None:
    project = create("count_words", tmp_path / "project")
    (project.directory / "tests" / "conftest.py").write_text("import no_such_module", encoding="utf-8")

    command = "pytest --hermes-record=once tests/test_count_words.py::test_recorded_group"
    assert record(project) == f"nothing could be recorded; see {command}"


@pytest.mark.parametrize("name", ["utils", "json", "tools", "My-Env", "class", "", "1env", "a/b", "environments"])
def test_a_name_that_cannot_be_imported_or_hides_a_module_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name an environment"):
        create(name, tmp_path / "project")

    assert not list(tmp_path.iterdir())


def test_a_directory_with_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")

    assert main(["new", "count_words", "--output", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert "is not empty" in capsys.readouterr().err

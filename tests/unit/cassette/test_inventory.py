import hashlib
import json
from datetime import UTC, datetime
from importlib.metadata import version

import pytest

from pytest_hermes_env import cli
from pytest_hermes_env.atomic_files import replace_file
from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.inventory import inventory_lines, inventory_of
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.errors import UsageError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = b"class MyEnv: ...\n"
TESTS = """
import pytest

class Base:
    def test_inherited(self): ...

class TestIt(Base):
    def test_own(self): ...

if True:
    @pytest.mark.hermes_cassette("given/name")
    def test_named(x): ...

async def test_one(a): ...
"""
VERSIONS = {name: version(name) for name in ("atroposlib", "hermes-agent", "pytest-hermes-env")}
CALLS = (
    ModelCall(number=1, request=ModelRequest(method="GET", path="/models"), reply=ModelReply()),
    RecordedToolCall(number=2, name="terminal", arguments={}),
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "my_env.py").write_bytes(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_my_env.py").write_text(TESTS)
    (tmp_path / "tests" / "test_broken.py").write_text("def test_one(:")
    return tmp_path


def _record(project, name, test, **header):
    said = {
        "recorded_at": "2026-02-01T12:00:00+00:00",
        "recorded_from": "a mock server in place of a provider",
        "model": "m",
        "provider": "openrouter",
        "environment": "my_env:MyEnv",
        "source_hash": hashlib.sha256(SOURCE).hexdigest(),
        "versions": VERSIONS,
    }
    tape = Tape(header=Header(test=test, **(said | header)), calls=CALLS)
    replace_file(project / "cassettes" / name, text_of(tape).encode())


def test_a_cassette_that_is_used_and_true_has_no_finding(project):
    """Age, size, what it holds and where it comes from are told; nothing else is."""
    _record(project, "tests/test_my_env/test_one.json", "tests/test_my_env.py::test_one")

    inventory = inventory_of([], project, NOW)

    assert not inventory[0].has_finding
    assert inventory_lines(inventory) == [
        "cassettes/tests/test_my_env/test_one.json",
        f"  holds     2 calls, 1 of them to a model; {inventory[0].size} B, 28 days old",
        "  from      m, openrouter: a mock server in place of a provider",
        "  test      tests/test_my_env.py::test_one",
        f"1 cassette, {inventory[0].size} B: 0 unreadable, 0 drifted, 0 that no test uses",
    ]


@pytest.mark.parametrize(
    ("name", "test", "orphan"),
    [
        ("given/name.json", "tests/test_my_env.py::TestIt::test_own[1]", ""),
        ("tests/test_broken/test_one.json", "tests/test_broken.py::test_one", ""),
        ("a.json", "", "it names no test"),
        ("a.json", "tests/test_gone.py::test_one", "there is no file tests/test_gone.py"),
        ("a.json", "tests/test_my_env.py::test_two[1]", "tests/test_my_env.py has no test test_two"),
        ("a.json", "tests/test_my_env.py::TestIt::test_two", "tests/test_my_env.py has no test test_two"),
    ],
)
def test_a_cassette_that_no_test_uses_is_an_orphan(project, name, test, orphan):
    """The test is looked up in its file, which is read and not imported; a file that cannot be parsed proves nothing."""
    _record(project, name, test)

    inventory = inventory_of([], project, NOW)

    assert [entry.orphan for entry in inventory] == [orphan]


def test_what_has_changed_since_is_drift(project):
    """Versions that differ or are not told, and sources that differ or are gone, are each a line."""
    test = "tests/test_my_env.py::test_one"
    changed = {"versions": {**VERSIONS, "atroposlib": "0.3.0"}, "source_hash": "0"}
    _record(project, "a/tests/test_my_env/test_one.json", test, **changed)
    _record(
        project,
        "b/tests/test_my_env/test_one.json",
        test,
        versions={name: VERSIONS[name] for name in ("atroposlib", "pytest-hermes-env")},
        environment="gone:E",
    )
    _record(project, "c/tests/test_my_env/test_one.json", test, versions={}, source_hash="", recorded_at="?")

    inventory = inventory_of([], project, NOW)

    assert [entry.drift for entry in inventory] == [
        (f"atroposlib was 0.3.0, is {VERSIONS['atroposlib']}", "the source of my_env:MyEnv has changed"),
        (
            "the version of hermes-agent was not recorded",
            f"the source of gone:E was not found below {project} or on sys.path",
        ),
        tuple(f"the version of {name} was not recorded" for name in VERSIONS),
    ]
    assert inventory[2].days is None


def test_an_environment_that_is_installed_is_found(project):
    """A source need not be below the project: one that Python imports from somewhere else is compared as well."""
    test = "tests/test_my_env.py::test_one"
    _record(project, "tests/test_my_env/test_one.json", test, environment="hypothesis.core:E", source_hash="0")

    (entry,) = inventory_of([], project, NOW)

    assert entry.drift == ("the source of hypothesis.core:E has changed",)


def test_the_command_says_what_it_found(project, monkeypatch, capsys):
    """Text for readers, JSON for programs, a broken cassette with its error, and an exit code of 1."""
    _record(project, "tests/test_my_env/test_one.json", "tests/test_my_env.py::test_one")
    (project / "cassettes" / "broken.json").write_text("{")
    monkeypatch.chdir(project)

    codes = [cli.main(["cassettes"]), cli.main(["cassettes", "cassettes/tests", "--format", "json"])]

    text, _, values = capsys.readouterr().out.partition("\n{")
    assert codes == [1, 0]
    assert text.split("\n")[:4] == [
        "cassettes/broken.json",
        "  error     cassettes/broken.json, line 1: this cassette is damaged: it ends too early: part of the file is missing.",
        "  seen      {",
        "  fix       git checkout -- cassettes/broken.json, or record it again: pytest --hermes-record=rewrite TEST",
    ]
    assert [entry["path"] for entry in json.loads("{" + values)["cassettes"]] == ["cassettes/tests/test_my_env/test_one.json"]


def test_a_directory_without_cassettes_is_wrong_use(project):
    """Nothing found is never nothing wrong."""
    (project / "cassettes").mkdir()

    with pytest.raises(UsageError) as empty:
        inventory_of([], project, NOW)
    with pytest.raises(UsageError) as missing:
        inventory_of(["nowhere"], project, NOW)

    assert str(empty.value) == (
        f"there is no cassette below {project}/cassettes: no .json file.\n"
        "  fix       pass another directory, or record a cassette: pytest --hermes-record=once"
    )
    assert str(missing.value) == (
        "the cassette directory nowhere does not exist.\n"
        "  fix       pass the directories with cassettes: hermes-env cassettes DIR, or record one:\n"
        "            pytest --hermes-record=once"
    )

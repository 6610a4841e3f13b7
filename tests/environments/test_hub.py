"""The fixture hub: tables of a test as datasets of the hub, and datasets that cannot be reached."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from datasets import get_dataset_split_names, load_dataset

from environments.web_research_env.web_research_env import WebResearchEnv
from pytest_hermes_env.errors import UsageError

ROWS = [{"question": "2 + 2?", "answer": "4", "tags": ["sum"]}, {"question": "3 + 3?", "answer": "6", "tags": []}]


def test_rows_are_a_dataset(hub):
    """By its name, whatever the configuration and the revision; its split as usual."""
    hub.add("any/name", ROWS)

    assert list(load_dataset("any/name", split="train")) == ROWS
    assert list(load_dataset("any/name", "main", revision="abc", split="train[:1]")) == ROWS[:1]
    assert hub.loaded == ["any/name", "any/name"]


def test_splits_streams_and_names(hub):
    """Every split of a mapping; streaming gives the same rows; a name without an owner is one."""
    hub.add("name", {"train": ROWS, "validation_seen": ROWS[1:]})

    assert {split: len(rows) for split, rows in load_dataset("name").items()} == {"train": 2, "validation_seen": 1}
    assert list(load_dataset("name", split="validation_seen", streaming=True)) == ROWS[1:]
    assert get_dataset_split_names("name") == ["train", "validation_seen"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_files_are_datasets(hub, tmp_path, suffix):
    """A JSONL or a Parquet file of the test."""
    path = tmp_path / f"rows.{suffix}"
    hub.add("any/source", ROWS)
    source = load_dataset("any/source", split="train")
    source.to_parquet(path) if suffix == "parquet" else source.to_json(path)
    hub.add("any/file", path, split="test")

    assert list(load_dataset("any/file", split="test")) == ROWS


def test_configurations_may_differ(hub):
    """A table with a configuration answers for that one only."""
    hub.add("any/name", ROWS[:1], config="small")
    hub.add("any/name", ROWS, config="large")

    assert [len(load_dataset("any/name", name, split="train")) for name in ("small", "large")] == [1, 2]


def test_equal_names_are_separate(hub):
    """A second test, or a second owner, has its own rows: nothing is cached between them."""
    hub.add("one/name", ROWS[:1])
    hub.add("two/name", ROWS[1:])

    assert [load_dataset(f"{owner}/name", split="train")[0]["answer"] for owner in ("one", "two")] == ["4", "6"]


@pytest.mark.parametrize("offline", ["0", "1"])
def test_refused_dataset_fails_at_once(hub, monkeypatch, offline):
    """As on a machine without a network, but without its half a minute of retries, whatever the variable says."""
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    hub.refuse("any/other")
    own, sleep, waited = threading.get_ident(), time.sleep, []

    def noted(delay):
        if threading.get_ident() == own:  # hermes has a thread that waits
            waited.append(delay)
        else:
            sleep(delay)

    monkeypatch.setattr(time, "sleep", noted)

    with pytest.raises(ConnectionError, match="any/other"):
        load_dataset("any/other", split="train")
    assert waited == []


def test_environment_falls_back_on_its_own_items(hub, make_env):
    """Its dataset is refused; setup ends with the built-in items."""
    hub.refuse()
    env = make_env(WebResearchEnv, server="http://127.0.0.1:9/v1")

    asyncio.run(env.setup())

    assert len(hub.loaded) >= 1
    assert asyncio.run(env.get_next_item())


def test_local_files_are_not_the_hubs(hub, tmp_path):
    """A file that an environment reads itself is read as ever."""
    path = tmp_path / "own.jsonl"
    path.write_text('{"a": 1}\n')

    assert list(load_dataset("json", data_files=str(path), split="train")) == [{"a": 1}]
    assert hub.loaded == []


@pytest.mark.parametrize(
    ("name", "table", "says"),
    [("any/name", [], "without rows"), ("any/name", "rows.txt", "cannot read"), ("a/b/c", ROWS, "name of a repository")],
)
def test_tables_that_are_none_are_refused(hub, name, table, says):
    """Where they are added."""
    with pytest.raises(UsageError, match=says):
        hub.add(name, table)
    hub._tables.clear()


def test_what_nobody_expected_fails_the_test(pytester):
    """A dataset that is not in the table although the environment swallows the error; a table that nobody loads."""
    pytester.makepyfile(
        """
        import pytest
        from datasets import load_dataset

        def test_unexpected(hub):
            hub.add("any/name", [{"a": 1}])
            try:
                load_dataset("any/nmae")
            except Exception:
                pass

        def test_unused(hub):
            hub.add("any/name", [{"a": 1}])

        @pytest.mark.hermes_allow_leftovers
        def test_unused_is_allowed(hub):
            hub.add("any/name", [{"a": 1}])
        """
    )

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "UnexpectedRequest: load_dataset('any/nmae') was called, and the hub of this test has no such dataset.",
            "  expected  'any/name'",
            "  fix       hub.add('any/nmae', *{...}*), or hub.refuse('any/nmae') to test the fallback",
            "LeftoverTables: a dataset of the hub was not loaded: 'any/name'.",
        ]
    )

"""Files remember who wrote them and who read them: the environment, the agent or the verifier."""

from __future__ import annotations

import pytest

from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.files import FileRead


@pytest.fixture
def sandbox() -> FakeSandbox:
    return FakeSandbox({"task.md": "sort these"})


def test_a_file_belongs_to_the_party_that_wrote_it_last(sandbox):
    """What a test prepares is the environment's; tools write for whoever acts; a tool context is the verifier's."""
    with sandbox.acting_as("agent"):
        sandbox.call("write_file", {"path": "answer.txt", "content": "42"})
        sandbox.call("terminal", {"command": "echo x > both.txt"})
    ctx = FakeToolContext(sandbox)
    ctx.write_file("check.py", "assert True")
    ctx.terminal("echo y >> both.txt")

    assert {path: sandbox.files.made_for(path) for path in sandbox.files} == {
        "/workspace/answer.txt": "agent",
        "/workspace/both.txt": "verifier",
        "/workspace/check.py": "verifier",
        "/workspace/task.md": "environment",
    }


def test_reads_name_the_reader_and_the_writer_at_that_time(sandbox):
    """Each file is there once per reader, as it was at the first look; what is not there was written by nobody."""
    with sandbox.acting_as("agent"):
        sandbox.call("terminal", {"command": "cat task.md > copy.md"})
    ctx = FakeToolContext(sandbox)
    ctx.terminal("cat copy.md task.md score.txt")
    ctx.write_file("score.txt", "1")

    assert [read for read in sandbox.files.reads if read.reader == "verifier" and read.path.endswith(("md", "score.txt"))] == [
        FileRead(path="/workspace/copy.md", reader="verifier", written_by="agent"),
        FileRead(path="/workspace/task.md", reader="verifier", written_by="environment"),
        FileRead(path="/workspace/score.txt", reader="verifier", written_by=""),
    ]


def test_the_party_is_as_before_when_it_stops_acting(sandbox):
    """Also when the call fails."""
    with pytest.raises(OSError, match="No such file"), sandbox.acting_as("agent"):
        sandbox.read_bytes("missing.txt")
    sandbox.files["later.txt"] = "later"

    assert sandbox.files.made_for("later.txt") == "environment"


def test_the_machine_of_a_rollout_begins_without_reads(sandbox):
    """A copy knows who wrote its files, and that nobody read them yet."""
    FakeToolContext(sandbox).read_file("task.md")
    rollout = sandbox.sandbox_of("rollout-1")

    assert (rollout.files.reads, rollout.files.made_for("task.md")) == ((), "environment")

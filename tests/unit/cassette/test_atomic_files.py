"""A cassette is whole or not there, whatever happens to the process that writes it."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from pytest_hermes_env import atomic_files as keeping
from pytest_hermes_env.atomic_files import exclusive, replace_file
from pytest_hermes_env.cassette.format import save_tape
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import Header, Tape
from pytest_hermes_env.errors import BadCassette

WRITER = """
    import itertools, sys
    from pathlib import Path
    from pytest_hermes_env.atomic_files import replace_file

    print("ready", flush=True)
    for number in itertools.count():
        replace_file(Path(sys.argv[1]), b"%d" % (number % 10) * 3_000_000)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    """A process that is killed while it writes leaves the old content or the new, and the next writer leaves nothing else."""
    path = tmp_path / "x.json"
    path.write_bytes(b"0" * 3_000_000)

    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE, text=True)
        with child:
            child.stdout.readline()
            os.kill(child.pid, signal.SIGKILL)
        content = path.read_bytes()
        assert (len(content), len(set(content))) == (3_000_000, 1)
    replace_file(path, b"new")

    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x.json", b"new")]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    """What was there is there, no part of the new is, and the error says what to do."""
    path = tmp_path / "x.json"
    path.write_bytes(b"old")

    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keeping.os, "fsync", lambda handle: full(handle, b""))
    with pytest.raises(BadCassette) as caught:
        replace_file(path, b"new")

    assert str(caught.value) == (
        f"{path}: this cassette could not be written: No space left on device.\n"
        "  seen      what the file held before is unchanged\n"
        "  fix       make room, or make the directory writable, and record again"
    )
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x.json", b"old")]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    """A file where a directory should be: neither writing nor locking goes on."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "x.json"

    with pytest.raises(BadCassette) as writing:
        replace_file(path, b"new")
    with pytest.raises(BadCassette) as locking, exclusive(path):
        pass

    assert str(writing.value).split("\n")[0] == f"{path}: this cassette could not be written: File exists."
    assert str(locking.value) == (
        f"{path}: no cassette can be recorded here: File exists.\n  fix       make room, or make the directory writable"
    )


def test_a_recording_that_was_not_written_leaves_no_directory(tmp_path):
    """Only those that were there before, and those that hold something."""
    path = tmp_path / "cassettes" / "my_env" / "evaluate.json"
    with exclusive(path):
        assert path.parent.is_dir()
    assert list(tmp_path.iterdir()) == []

    with exclusive(path):
        replace_file(path, b"{}")
    with exclusive(path.with_name("process.json")):
        pass
    assert [each.name for each in path.parent.iterdir()] == ["evaluate.json"]


def test_one_recorder_at_a_time(tmp_path):
    """A second recorder of a cassette is told who is first; after the first, and after a killed one, there is room again."""
    path = tmp_path / "new" / "x.json"

    with exclusive(path), pytest.raises(BadCassette) as caught, exclusive(path):
        pass
    path.parent.mkdir()
    path.with_name(".x.json.lock").write_text("process 1, which was killed")
    with exclusive(path):
        replace_file(path, b"new")

    assert str(caught.value) == (
        f"{path}: another process (process {os.getpid()}) is recording to this cassette.\n"
        "  expected  one writer: each test has a cassette of its own\n"
        "  fix       wait for it, or give one of the two another name: @pytest.mark.hermes_cassette(NAME)"
    )
    assert [each.name for each in path.parent.iterdir()] == ["x.json"]


def test_an_error_within_the_lock_is_its_own(tmp_path):
    """What the recorder raises comes out as it is, and the lock is gone."""
    with pytest.raises(FileNotFoundError), exclusive(tmp_path / "x.json"):
        (tmp_path / "missing").read_text()

    assert list(tmp_path.iterdir()) == []


def test_a_secret_that_was_missed_stops_the_writing(tmp_path):
    """The scan has the last word: nothing is written, and the error says where and what, but not the secret."""
    path = tmp_path / "x.json"
    token = "hf_" + "a1B2" * 8
    redactor = Redactor()
    redactor.text = lambda text: text

    with pytest.raises(BadCassette) as caught:
        save_tape(path, Tape(header=Header(recorded_at="", recorded_from=f"with {token}")), redactor)

    assert str(caught.value) == (
        f"{path}: this cassette was not written, because it would contain what looks like a secret.\n"
        "  seen      line 4: hugging-face-token in header.recorded_from\n"
        "  fix       remove it from the rollout, add a pattern for it to the redaction,\n"
        "            or add its value to the known secrets"
    )
    assert list(tmp_path.iterdir()) == []

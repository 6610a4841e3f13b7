"""Transfers through a terminal that lies, fails or cuts."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.file_transfer import _quoted, download_dir, download_file, upload_dir, upload_file

OK = {"exit_code": 0, "output": ""}


class Files:
    """A terminal whose files are given: every listed name holds ``data``."""

    def __init__(self, names: list[bytes], data: bytes = b"loot") -> None:
        self.listing = b"".join(name + b"\0" for name in names)
        self.data = data
        self.commands: list[str] = []

    def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
        self.commands.append(command)
        content = self.listing if ".hermes-listing-" in command else self.data
        if command.startswith("wc"):
            return {"exit_code": 0, "output": str(len(content))}
        if command.startswith("tail"):
            return {"exit_code": 0, "output": base64.encodebytes(content).decode()}
        return OK


class Failing:
    """A terminal that fails the command with that number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.commands: list[str] = []

    def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
        self.commands.append(command)
        return {"exit_code": 1, "output": "No space left on device"} if len(self.commands) == self.number else OK


@pytest.mark.parametrize(
    "name", [b"../outside", b"./../outside", b"/tmp/outside", b"a/../../outside", b"..", b"./", b"link/outside"]
)
def test_listed_name_cannot_lead_outside(tmp_path, name):
    """A hostile listing is refused name by name; nothing is written beside the target, nor through a link in it."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "link").symlink_to(tmp_path)

    results = download_dir(Files([name, b"./good"]), "/logs", target)

    outcome = {entry["path"]: entry["success"] for entry in results}
    assert sorted(outcome.values()) == [False, True]
    assert outcome["good"] is True
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert "leads outside" in next(entry["error"] for entry in results if not entry["success"])


def test_link_in_place_of_the_file_is_not_followed_out(tmp_path):
    """A link of the same name that points outside is refused too."""
    target = tmp_path / "target"
    target.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (target / "a").symlink_to(victim)

    (result,) = download_dir(Files([b"./a"]), "/logs", target)

    assert result["success"] is False
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_failure_of_any_chunk_is_reported_and_the_part_removed(tmp_path, number):
    """Making the directory, either chunk, moving into place: a failure is told and nothing half is left in place."""
    (tmp_path / "source").write_bytes(b"x" * 60_000)
    terminal = Failing(number)

    result = upload_file(terminal, tmp_path / "source", "dir/file")

    assert result["exit_code"] == -1
    assert "(exit code 1): No space left on device" in result["output"]
    assert terminal.commands[-1].startswith(("mkdir", "rm -f -- dir/file."))


def test_no_two_uploads_share_a_temporary_name(tmp_path):
    """Two uploads to one place at the same time do not mix."""
    (tmp_path / "source").write_bytes(b"x")
    terminal = Failing(0)

    for _ in range(2):
        upload_file(terminal, tmp_path / "source", "file")

    parts = [command.split("> ")[1] for command in terminal.commands if "base64 -d" in command]
    assert len(set(parts)) == 2


def test_chunks_are_of_60000_characters(tmp_path):
    """One shell argument may hold 128 KB; chunks stay well below."""
    (tmp_path / "source").write_bytes(b"x" * 100_000)
    terminal = Failing(0)

    upload_file(terminal, tmp_path / "source", "file")

    chunks = [command.split(" ")[2] for command in terminal.commands if "base64 -d" in command]
    assert [len(chunk) for chunk in chunks] == [60_000, 60_000, 13_336]
    assert base64.b64decode("".join(chunks)) == b"x" * 100_000


def test_cut_output_is_reported(tmp_path):
    """Bytes that do not arrive are a failure, not a shorter file."""
    terminal = Files([], b"all of it")
    real = terminal.terminal
    terminal.terminal = lambda command, timeout=180: (  # type: ignore[method-assign]
        {"exit_code": 0, "output": base64.b64encode(b"all").decode()} if command.startswith("tail") else real(command)
    )

    result = download_file(terminal, "file", tmp_path / "target")

    assert result == {"success": False, "error": "Cannot read file: bytes 0 to 9 arrived incomplete"}
    assert list(tmp_path.iterdir()) == []


def test_size_that_is_no_number_is_reported(tmp_path):
    """A shell that greets its user is told, not parsed."""

    class Greeting:
        def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
            return {"exit_code": 0, "output": "Welcome! 7"}

    result = download_file(Greeting(), "file", tmp_path / "target")

    assert result == {"success": False, "error": "Cannot read file: its size came back as 'Welcome! 7'"}


def test_local_failure_is_reported(tmp_path):
    """A target that cannot be written is a result, not an exception."""
    (tmp_path / "file").write_text("in the way")

    below = download_file(Files([]), "x", tmp_path / "file" / "below")
    null = download_file(Files([]), "x", Path(f"{tmp_path}/a\0b"))
    source = upload_file(Files([]), Path(f"{tmp_path}/a\0b"), "x")

    assert (below["success"], null["success"], source["exit_code"]) == (False, False, -1)


def test_directory_goes_up_file_by_file(tmp_path):
    """Every file is named in its result; an empty directory has none."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b c").write_bytes(b"1")

    results = upload_dir(Failing(0), tmp_path / "a", "/remote")

    assert results == [{"path": str(tmp_path / "a" / "b c"), "exit_code": 0, "output": "1 bytes to /remote/b c", "bytes": 1}]


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=30))
def test_quoted_path_is_one_word_for_bash(path):
    """Whatever the path holds, bash sees one word that is the path; a leading dash becomes no option."""
    import subprocess

    if path.startswith("~"):
        path = f"x{path}"
    seen = subprocess.run(["bash", "-c", f"printf %s {_quoted(path)}"], capture_output=True, check=True).stdout

    assert seen == (f"./{path}" if path.startswith("-") else path).encode()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([b"..", b".", b"a", b"/", b"b", b"", b"//", b"a\n"]), min_size=1, max_size=6))
def test_no_listing_writes_outside(parts):
    """No combination of dots and slashes leaves the target."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "in" / "target"

        download_dir(Files([b"/".join(parts)]), "/logs", target)

        written = [path for path in Path(directory).rglob("*") if path.is_file()]
        assert all(path.is_relative_to(target) for path in written)
        assert os.listdir(directory) == ["in"]

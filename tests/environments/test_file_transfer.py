"""Transfers through a terminal that lies, fails or cuts."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.sandbox import file_transfer
from environments.sandbox.file_transfer import _quoted, upload_file

OK = {"exit_code": 0, "output": ""}


class Files:
    """A terminal whose files are given: every listed name holds ``data``. ``uncut`` answers the commands that hermes does not cut."""

    def __init__(self, names: list[bytes], data: bytes = b"loot", *, size: int | None = None, uncut: Any = None) -> None:
        self.listing = b"".join(name + b"\0" for name in names)
        self.data = data
        self.size = size
        self.commands: list[str] = []
        self.shell: Any = SimpleNamespace(terminal=self.terminal, _uncut=uncut or (lambda command, timeout: None))

    def terminal(self, command: str, timeout: int) -> dict[str, Any]:
        self.commands.append(command)
        content = self.listing if ".hermes-listing-" in command else self.data
        if command.startswith("if [ -e"):
            size = len(content) if self.size is None or content is self.listing else self.size
            return {"exit_code": 0, "output": f"{size}\n{base64.encodebytes(content[:33_000]).decode()}"}
        if found := re.match(r"tail -c \+(\d+) < .* \| head -c (\d+) \| (base64|od)", command):
            start, length = int(found[1]) - 1, int(found[2])
            cut = content[start : start + length]
            return {"exit_code": 0, "output": base64.encodebytes(cut).decode() if found[3] == "base64" else cut.hex(" ")}
        return OK


class Failing:
    """A terminal that fails the command with that number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.commands: list[str] = []
        self.shell: Any = SimpleNamespace(terminal=self.terminal, _uncut=lambda command, timeout: None)

    def terminal(self, command: str, timeout: int) -> dict[str, Any]:
        self.commands.append(command)
        return {"exit_code": 1, "output": "No space left on device"} if len(self.commands) == self.number else OK


def download_file(files: Any, remote: str, local: Path, *, max_bytes: int = 2**20, timeout: int = 60) -> dict[str, Any]:
    return file_transfer.download_file(files.shell, remote, local, max_bytes=max_bytes, timeout=timeout)


def download_dir(files: Any, remote: str, local: Path, *, max_bytes: int = 2**20, timeout: int = 60) -> list[dict[str, Any]]:
    return file_transfer.download_dir(files.shell, remote, local, max_bytes=max_bytes, timeout=timeout)


@pytest.mark.parametrize(
    "name", [b"../outside", b"./../outside", b"/tmp/outside", b"a/../../outside", b"..", b"./", b"link/outside"]
)
def test_listed_name_cannot_lead_outside(tmp_path, name):
    """A hostile listing is refused name by name; nothing is written outside the target, nor through a link in it."""
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
    """Making the directory, either chunk, moving into place: a failure is reported and nothing half is left in place."""
    (tmp_path / "source").write_bytes(b"x" * 60_000)
    terminal = Failing(number)

    result = upload_file(terminal.shell, tmp_path / "source", "dir/file")

    assert result["exit_code"] == -1
    assert "(exit code 1): No space left on device" in result["output"]
    assert terminal.commands[-1].startswith(("mkdir", "rm -f -- dir/file."))


def test_chunks_are_of_60000_characters(tmp_path):
    """One shell argument may hold 128 KB; chunks stay well below."""
    (tmp_path / "source").write_bytes(b"x" * 100_000)
    terminal = Failing(0)

    upload_file(terminal.shell, tmp_path / "source", "file")

    chunks = [command.split(" ")[2] for command in terminal.commands if "base64 -d" in command]
    assert [len(chunk) for chunk in chunks] == [60_000, 60_000, 13_336]
    assert base64.b64decode("".join(chunks)) == b"x" * 100_000


def test_file_comes_uncut_where_hermes_has_an_environment(tmp_path, monkeypatch):
    """Large chunks, and no terminal call; the programs are not looked up in a PATH that the agent may have changed."""
    monkeypatch.setattr(file_transfer, "UNCUT_BYTES", 300_000)
    data = bytes(range(256)) * 2000
    ran: list[str] = []

    def uncut(command: str, timeout: int) -> str:
        ran.append(command)
        if command.startswith("if [ -e"):
            return f"{len(data)}\n{base64.b64encode(data[:300_000]).decode()}"
        return base64.b64encode(data[300_000:]).decode()

    files = Files([], data, uncut=uncut)

    result = download_file(files, "file", tmp_path / "target")

    assert (result, (tmp_path / "target").read_bytes() == data) == ({"success": True, "bytes": 512_000}, True)
    assert ran[1:] == ["command -p tail -c +300001 < file | command -p head -c 212000 | command -p base64"]
    assert files.commands == []


@pytest.mark.parametrize("uncut", [None, "76800\n", "76800\nAAAA", "76800\nnot base64 at all"], ids=str)
def test_large_file_comes_in_terminal_calls_elsewhere(tmp_path, uncut):
    """A double has no environment, and an uncut answer that is incomplete or odd counts for nothing."""
    data = bytes(range(256)) * 300
    files = Files([], data, uncut=lambda command, timeout: uncut)

    result = download_file(files, "file", tmp_path / "target")

    assert (result["success"], (tmp_path / "target").read_bytes() == data, len(files.commands)) == (True, True, 3)


def test_limits_hold_for_all_files_of_a_directory_together(tmp_path):
    """Many small files are not smuggled past the limit."""
    results = download_dir(Files([b"./a", b"./b", b"./c"], b"x" * 400), "/logs", tmp_path, max_bytes=1_000)

    assert [entry["success"] for entry in results] == [True, True, False]
    assert "exceeds the limit of 200 bytes" in results[2]["error"]


def test_time_limit_ends_a_directory(tmp_path, monkeypatch):
    """What is left when the time is over fails without another command."""
    files = Files([b"./a", b"./b", b"./c"])
    now = [0.0]
    monkeypatch.setattr(file_transfer.time, "monotonic", lambda: now[0])
    real = files.shell.terminal

    def slow(command: str, timeout: int) -> dict[str, Any]:
        now[0] += 4
        return real(command, timeout)

    shell: Any = SimpleNamespace(terminal=slow, _uncut=files.shell._uncut)

    results = file_transfer.download_dir(shell, "/logs", tmp_path, max_bytes=1_000, timeout=16)

    assert [entry["success"] for entry in results] == [True, False, False]
    assert results[1]["error"] == "Cannot read /logs/b: it takes longer than 16 seconds; timeout= raises the limit"
    assert len(files.commands) == 4


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=30))
def test_quoted_path_is_one_word_for_bash(path):
    """Whatever the path holds, bash sees one word that is the path; a leading dash becomes no option."""
    import subprocess

    if path.startswith("~"):
        path = f"x{path}"
    seen = subprocess.run(["bash", "-c", f"printf %s {_quoted(path)}"], capture_output=True, check=True).stdout

    assert seen == (f"./{path}" if path.startswith("-") else path).encode()

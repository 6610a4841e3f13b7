"""Files that a verifier reads, writes, searches and moves, with names and contents of every kind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from environments.tool_context import ToolContext
from pytest_hermes_env.sandbox.confinement import available
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.seam import ToolSeam

NAMES = [
    "plain.txt",
    "with space.txt",
    "it's.txt",
    'a "quoted" name.txt',
    "$(touch CANARY).txt",
    "`touch CANARY`.txt",
    "a;touch CANARY;.txt",
    "a&touch CANARY&.txt",
    "a|touch CANARY.txt",
    "a>CANARY.txt",
    "new\nline.txt",
    "-dash.txt",
    "--version",
    "*.txt",
    "ünïcödé 漢字.txt",
    "sub dir/$HOME/x.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_name_does_no_harm_in_any_method(sandbox, tmp_path, name):
    """Upload, download, read, write and search take the name for a name: the bytes come back, no canary appears."""
    source = tmp_path / "source"
    source.write_bytes(b"needle\n")

    up = sandbox.upload_file(str(source), name)
    read = sandbox.read_file(name)
    down = sandbox.download_file(name, str(tmp_path / "target"))
    written = sandbox.write_file(name, "needle two\n")
    again = sandbox.read_file(name)
    sandbox.search("needle", name)
    listed = sandbox.download_dir(".", str(tmp_path / "all"))

    assert (up["exit_code"], up["bytes"]) == (0, 7)
    assert read["content"] == "needle\n"
    assert (down, (tmp_path / "target").read_bytes()) == ({"success": True, "bytes": 7}, b"needle\n")
    assert not written.get("error")
    assert again["content"] == "needle two\n"
    assert [(entry["path"], entry["success"]) for entry in listed] == [(name, True)]
    assert (tmp_path / "all" / name).read_text() == "needle two\n"


@pytest.mark.parametrize("name", ["with space", "$(touch CANARY)", "a;touch CANARY;", "-dash", "it's"])
def test_directory_name_does_no_harm(sandbox, tmp_path, name):
    """A directory goes up and comes back under a hostile name."""
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "a").write_bytes(b"1")
    (source / "deep" / "b").write_bytes(b"22")

    up = sandbox.upload_dir(str(source), name)
    down = sandbox.download_dir(name, str(tmp_path / "target"))

    assert [entry["exit_code"] for entry in up] == [0, 0]
    assert [(entry["path"], entry["bytes"]) for entry in down] == [("a", 1), ("deep/b", 2)]
    assert (tmp_path / "target" / "deep" / "b").read_bytes() == b"22"
    assert sandbox.terminal("ls")["output"] == name


def test_home_directory_is_meant_by_a_tilde(sandbox, tmp_path):
    """``~`` and ``~/x`` are the home directory, in every direction, and no directory called ``~`` appears."""
    source = tmp_path / "source"
    source.write_bytes(b"1")
    name = f"hermes-env-test-{random.SystemRandom().getrandbits(32)}"

    up = sandbox.upload_file(str(source), f"~/{name}/file")
    down = sandbox.download_dir(f"~/{name}", str(tmp_path / "target"))
    top = sandbox.upload_file(str(source), f"~/{name}.txt")
    there = sandbox.terminal(f'ls "$HOME/{name}" "$HOME/{name}.txt"; rm -f "$HOME/{name}/file" "$HOME/{name}.txt"')
    sandbox.terminal(f'rmdir "$HOME/{name}"')

    assert (up["exit_code"], top["exit_code"], there["exit_code"]) == (0, 0, 0)
    assert [entry["path"] for entry in down] == ["file"]
    assert sandbox.terminal("ls -A")["output"] == ""


def test_large_binary_survives_both_ways(sandbox, tmp_path):
    """More than fits one command, with every byte value, comes back byte for byte."""
    data = random.Random(7).randbytes(250_001)
    (tmp_path / "source").write_bytes(data)

    up = sandbox.upload_file(str(tmp_path / "source"), "deep/er/blob")
    down = sandbox.download_file("deep/er/blob", str(tmp_path / "target" / "blob"))

    assert (up["bytes"], down) == (250_001, {"success": True, "bytes": 250_001})
    assert (tmp_path / "target" / "blob").read_bytes() == data


SECRET = "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx\npassword=hunter2\ntoken: ghp_0123456789abcdefghij\n"


def test_content_that_looks_like_a_secret_is_not_altered(sandbox, tmp_path):
    """hermes masks what looks like a key; a verifier gets the file."""
    sandbox.write_file("keys.env", SECRET)

    assert sandbox.read_file("keys.env")["content"] == SECRET
    assert sandbox.download_file("keys.env", str(tmp_path / "keys"))["success"]
    assert (tmp_path / "keys").read_text() == SECRET


STALLERS = ["mkfifo x", "ln -s /dev/zero x", "mkdir x", "mkfifo y; ln -s y x"]


@pytest.mark.parametrize("make", STALLERS)
def test_what_is_not_a_regular_file_is_an_error(sandbox, tmp_path, make):
    """A FIFO without a writer or an endless device cannot stall the verifier, in any method."""
    sandbox.terminal(make)

    read = sandbox.read_file("x")
    down = sandbox.download_file("x", str(tmp_path / "target"))
    listed = sandbox.download_dir(".", str(tmp_path / "all"))

    assert read == {"error": "Cannot read x: it is not a regular file"}
    assert down == {"success": False, "error": "Cannot read x: it is not a regular file"}
    assert listed == []


def test_size_limit_can_be_raised(sandbox, tmp_path):
    """A sparse file of a terabyte is not read; the error says how to allow more."""
    sandbox.terminal("truncate -s 1T huge; yes | head -c 70000 > large")

    huge = sandbox.read_file("huge")
    refused = sandbox.read_file("large", max_bytes=60_000)
    allowed = sandbox.read_file("large", max_bytes=70_000)

    assert huge == {"error": "Cannot read huge: it exceeds the limit of 67,108,864 bytes; max_bytes= raises the limit"}
    assert refused == {"error": "Cannot read large: it exceeds the limit of 60,000 bytes; max_bytes= raises the limit"}
    assert allowed["content"] == "y\n" * 35_000


def test_large_file_takes_one_tool_call(sandbox, monkeypatch):
    """400 KB of short lines: the content in one read, hermes' result for the first page, and the view of all lines."""
    from environments import tool_context

    made: list[str] = []
    real = tool_context.handle_function_call
    sandbox.terminal("yes 'x = 1' | head -n 66000 > long.txt")
    monkeypatch.setattr(tool_context, "handle_function_call", lambda name, *a, **k: (made.append(name), real(name, *a, **k))[1])

    result = sandbox.read_file("long.txt")

    assert made == ["read_file"]
    assert result["content"] == "x = 1\n" * 66_000
    assert result["numbered_content"].endswith("\n65999|x = 1\n66000|x = 1\n66001|")
    assert {name: result.get(name) for name in ("total_lines", "file_size", "truncated", "next_offset", "hint")} == {
        "total_lines": 66_000,
        "file_size": 396_000,
        "truncated": False,
        "next_offset": None,
        "hint": None,
    }


def test_programs_of_the_agent_do_not_alter_what_is_read(sandbox):
    """A program of the agent that stands first in PATH does not alter what the verifier reads."""
    sandbox.terminal(
        "yes | head -c 100000 > long.txt; mkdir bin; printf '#!/bin/sh\\nexec cat\\n' > bin/base64; chmod +x bin/base64"
    )
    sandbox.terminal('export PATH="$PWD/bin:$PATH"')

    assert sandbox.read_file("long.txt")["content"] == "y\n" * 50_000


def test_reading_again_gives_the_content_again(sandbox):
    """hermes answers a second read with "unchanged" and a fourth with "BLOCKED"; a verifier reads as often as it likes."""
    sandbox.write_file("a.txt", "one\ntwo\n")

    assert [sandbox.read_file("a.txt")["content"] for _ in range(6)] == ["one\ntwo\n"] * 6


def test_long_file_is_read_whole(sandbox):
    """5,000 lines come as 5,000 lines, without numbers; hermes' numbered view comes with them."""
    sandbox.terminal("seq -f 'line %g' 1 5000 > long.txt")

    result = sandbox.read_file("long.txt")

    assert result["content"].splitlines() == [f"line {number}" for number in range(1, 5001)]
    assert "4999|line 4999" in result["numbered_content"]


@pytest.mark.parametrize(
    "content",
    ["", "x", "x\n", "\n\n", "12|34\n5|\n", " 7|x", "tab\tand\r\nreturn\r\n", "é" * 3000, "y" * 60_000 + "\nend\n", "…\n"],
    ids=["empty", "bare", "line", "blank", "numbers", "number", "returns", "wide", "long", "mask"],
)
def test_content_is_the_files_own_text(sandbox, tmp_path, content):
    """Lines that look numbered, long lines, missing and odd line ends: all as in the file."""
    (tmp_path / "source").write_bytes(content.encode())
    sandbox.upload_file(str(tmp_path / "source"), "file.txt")

    assert sandbox.read_file("file.txt")["content"] == content


def test_missing_file_is_an_error(sandbox, tmp_path):
    """What does not exist is reported, in every direction, and leaves nothing behind."""
    read = sandbox.read_file("nowhere.txt")
    down = sandbox.download_file("nowhere.txt", str(tmp_path / "target"))
    listed = sandbox.download_dir("nowhere", str(tmp_path / "all"))
    up = sandbox.upload_file(str(tmp_path / "nothing"), "a")
    many = sandbox.upload_dir(str(tmp_path / "nothing"), "a")

    assert read["error"]
    assert (down["success"], listed[0]["success"]) == (False, False)
    assert "Cannot read nowhere.txt" in down["error"]
    assert "Cannot list nowhere" in listed[0]["error"]
    assert (up["exit_code"], many[0]["exit_code"]) == (-1, -1)
    assert list(tmp_path.iterdir()) == []


def test_name_that_is_no_utf8_comes_down(sandbox, tmp_path):
    """File names are bytes; those that are no text are no reason to fail."""
    sandbox.terminal("printf 1 > $'na\\xffme'")

    listed = sandbox.download_dir(".", str(tmp_path))

    assert [(entry["path"], entry["success"]) for entry in listed] == [("na\udcffme", True)]
    assert [path.read_bytes() for path in Path(tmp_path).iterdir()] == [b"1"]


def test_sibling_directories_are_not_confused(sandbox, tmp_path):
    """``v`` and ``v-extra`` are two directories."""
    sandbox.terminal("mkdir v v-extra && echo 1 > v/a && echo 22 > v-extra/a")

    listed = [(entry["path"], entry["bytes"]) for entry in sandbox.download_dir("v", str(tmp_path / "v"))]

    assert listed == [("a", 2)]
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


def test_search_finds_in_the_working_directory(sandbox):
    """``.`` is the session's directory, also where hermes has no ripgrep."""
    sandbox.write_file("sub/a.txt", "hay\nneedle\n")

    matches = sandbox.search("need.e")["matches"]

    assert [(Path(match["path"]).name, match["line"]) for match in matches] == [("a.txt", 2)]


def test_directory_of_an_in_memory_machine_comes_down(tmp_path):
    """Real bash lists and reads for the context."""
    if not available().is_in_force:
        pytest.skip("this machine gives no namespaces")
    machine = FakeSandbox({"out/a": "1", "out/.hidden/b c": b"\0\xff", "-x": "2"})
    with ToolSeam(machine):
        context = ToolContext("in-memory")
        results = context.download_dir("out", str(tmp_path))
        missing = [*context.download_dir("nope", str(tmp_path)), context.download_file("nope", str(tmp_path / "nope"))]

    assert results == [{"path": ".hidden/b c", "success": True, "bytes": 2}, {"path": "a", "success": True, "bytes": 1}]
    assert ((tmp_path / "a").read_bytes(), (tmp_path / ".hidden/b c").read_bytes()) == (b"1", b"\0\xff")
    assert [(entry["success"], entry["error"].rpartition(": ")[2]) for entry in missing] == [
        (False, "No such file or directory")
    ] * 2
    assert machine.refused == ()

"""Trees that a model made: removed and counted whatever their shape, and nothing else is."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_env_shared import abandoned, trees

DEEPER_THAN_PYTHON = 1500
LONGER_THAN_A_PATH = 30


def deep(at: Path, levels: int, name: str = "d") -> None:
    """Directories one in the other, each with a file."""
    place = os.open(at, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=place)
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
        file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place)
        os.write(file, b"x" * 1000)
        os.close(file)
    os.close(place)


def closed(at: Path) -> None:
    """Directories that not even their owner may enter."""
    (at / "outer" / "inner" / "innermost").mkdir(parents=True)
    (at / "outer" / "inner" / "file").write_text("x" * 1000)
    for place, mode in (("outer/inner/innermost", 0o555), ("outer/inner", 0o000), ("outer", 0o000)):
        (at / place).chmod(mode)


def wide(at: Path) -> None:
    """Many files, and many directories with something in them."""
    for number in range(3000):
        (at / str(number)).touch()
    for number in range(300):
        (at / f"directory {number}" / "inner").mkdir(parents=True)


def strange(at: Path) -> None:
    """Names and kinds that a path or a text cannot hold."""
    os.mkdir(os.fsencode(at) + b"/\xff\xfe \n")
    (at / ("n" * 255)).touch()
    (at / "-rf").mkdir()
    os.mkfifo(at / "fifo")
    (at / "loop").symlink_to(".")
    (at / "nowhere").symlink_to("/does/not/exist")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(at):
        server.bind("socket")


TREES: dict[str, Callable[[Path], None]] = {
    "deeper than Python": lambda at: deep(at, DEEPER_THAN_PYTHON),
    "a path longer than any": lambda at: deep(at, LONGER_THAN_A_PATH, "n" * 255),
    "closed": closed,
    "wide": wide,
    "strange": strange,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty directory beside one with a file."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_a_tree_is_gone_and_nothing_else(make: Callable[[Path], None], tree: Path) -> None:
    """As any user: root may enter what is closed."""
    make(tree)
    (tree / "out").symlink_to(tree.parent / "other")

    resisting = trees.remove(str(tree))

    assert (resisting, sorted(path.name for path in tree.parent.rglob("*"))) == ([], ["kept", "other"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_counts_and_removes_what_is_closed_to_it() -> None:
    """Modes do not keep an owner from what is his."""
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place, "tree")
        tree.mkdir()
        closed(tree)
        for owned in (place, *(os.path.join(at, name) for at, names, files in os.walk(place) for name in (*names, *files))):
            os.chown(owned, 1000, 1000)
        process = os.fork()
        if process == 0:
            os.setgid(1000)
            os.setuid(1000)
            os._exit(trees.usage(str(tree))[1] if trees.remove(str(tree / "unknown")) == [] else 99)
        counted = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        process = os.fork()
        if process == 0:
            os.setgid(1000)
            os.setuid(1000)
            os._exit(len(trees.remove(str(tree))))
        resisting = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

        assert (counted, resisting, tree.exists()) == (4, 0, False)


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (TREES["deeper than Python"], 2 * DEEPER_THAN_PYTHON),
        (TREES["a path longer than any"], 2 * LONGER_THAN_A_PATH),
        (closed, 4),
    ],
    ids=["deeper than Python", "a path longer than any", "closed"],
)
def test_everything_is_counted_and_left_as_it_was(make: Callable[[Path], None], number: int, tree: Path) -> None:
    """Bytes and entries, also where no path leads."""
    make(tree)
    before = {path: path.stat().st_mode for path in tree.iterdir()}

    used, found = trees.usage(str(tree))

    assert (found, used >= 1000, {path: path.stat().st_mode for path in tree.iterdir()}) == (number, True, before)
    trees.remove(str(tree))


def test_files_are_listed_as_deep_as_paths_lead(tree: Path) -> None:
    """Links to files are listed, links to directories are not followed, and nothing else is a file."""
    deep(tree, DEEPER_THAN_PYTHON)
    strange(tree)
    (tree / "to a file").symlink_to(tree.parent / "other" / "kept")

    found = trees.files(str(tree))

    expected = ["n" * 255, "to a file", *("d/" * level + "file" for level in range(1, DEEPER_THAN_PYTHON + 1))]
    assert found == sorted(expected)
    trees.remove(str(tree))


def test_what_takes_too_long_goes_on_in_the_next_call(tree: Path) -> None:
    """Nobody waits for a million files."""
    wide(tree)

    with pytest.raises(TimeoutError):
        trees.remove(str(tree), seconds=0)

    assert (trees.remove(str(tree)), tree.exists()) == ([], False)


def test_a_large_tree_is_removed_beside_the_work(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim to it is given up when it is gone."""
    monkeypatch.setattr(abandoned, "INLINE_S", 0.0)
    wide(tree)
    is_gone = threading.Event()

    abandoned.remove_tree(str(tree), then=is_gone.set)

    assert (is_gone.wait(60), tree.exists()) == (True, False)


def test_what_resists_is_set_aside_and_reported_once(
    tree: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A directory that the kernel does not give up, with what is beside it."""
    (tree / "gone").touch()
    (tree / "outer" / "busy").mkdir(parents=True)
    real = os.rmdir

    def rmdir(name: str, **how: int) -> None:
        if name == "busy":
            raise OSError(16, "Device or resource busy")
        real(name, **how)

    monkeypatch.setattr(os, "rmdir", rmdir)
    released: list[str] = []

    with caplog.at_level(logging.WARNING):
        abandoned.remove_tree(str(tree), then=lambda: released.append("released"))
        abandoned.remove_tree(str(tree))

    (aside,) = tree.parent.glob("hermes-set-aside-*")
    assert sorted(path.name for path in aside.rglob("*")) == ["busy", "outer"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tree} could not be removed, and is left as {aside}: 'outer': 'busy': Device or resource busy"
    ]
    assert released == ["released"]


@pytest.mark.parametrize(
    ("place", "says"),
    [("link", "put something else in the place of the sandbox"), ("moved", "moved the sandbox"), ("gone", "")],
)
def test_what_a_command_did_to_its_sandbox_is_said(place: str, says: str, tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A link in its place is not followed, and a directory that was moved beside it is found."""
    inode = tree.stat().st_ino
    if place == "gone":
        tree.rmdir()
    else:
        (tree / "file").touch()
        tree.rename(tree.parent / "moved" if place == "moved" else tree.parent / "other" / "moved")
    if place == "link":
        tree.symlink_to(tree.parent / "other")

    abandoned.remove_tree(str(tree), inode=inode)

    left = {"link": ["file", "kept", "moved", "other"], "moved": ["kept", "other"], "gone": ["kept", "other"]}
    assert sorted(path.name for path in tree.parent.rglob("*")) == left[place]
    assert (says in caplog.text, bool(caplog.records)) == (True, bool(says))

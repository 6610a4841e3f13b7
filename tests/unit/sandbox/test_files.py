"""The files of an in-memory machine: a mapping of texts for the author of a test, a file system for commands and tools."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from pytest_hermes_env.errors import HermesEnvError, MissingFile, NotText
from pytest_hermes_env.sandbox.files import Files, Node


@pytest.fixture
def files():
    return Files({"a.txt": "one\n", "sub/b.bin": b"\xff\x00", "/data/c": ""})


def set_mode(files, mode):
    """Set the mode of a.txt, as real bash does."""
    files.take_over({"/workspace/a.txt": replace(files.nodes["/workspace/a.txt"], mode=mode)})


def refusal(work):
    with pytest.raises(OSError, match=r".") as caught:
        work()
    return errno.errorcode[caught.value.errno], caught.value.filename


def test_author_writes_and_reads_texts(files):
    """Relative names begin at the first directory, parents are made, and paths are listed in order."""
    files["deep/er/d.txt"] = "four"
    files["bytes"] = b"five"

    assert files["/workspace/deep/er/d.txt"] == files["deep/er/d.txt"] == "four"
    assert files["bytes"] == "five"
    assert list(files) == [
        "/data/c",
        "/workspace/a.txt",
        "/workspace/bytes",
        "/workspace/deep/er/d.txt",
        "/workspace/sub/b.bin",
    ]
    assert len(files) == 5


def test_it_is_a_mapping(files):
    """Membership, deletion and the mixins."""
    del files["/data/c"]

    assert ("a.txt" in files, "/workspace/a.txt" in files, "sub" in files, "/data/c" in files, 1 in files) == (
        True,
        True,
        False,
        False,
        False,
    )
    assert files.get("nope") is None
    assert files.pop("a.txt") == "one\n"
    assert repr(files) == "Files({'/workspace/sub/b.bin': b'\\xff\\x00'})"


def test_first_directories_are_there():
    """Where rollouts begin, the home and the place for temporary files."""
    files = Files(cwd="/app/x")

    assert [path for path in ("/", "/app", "/app/x", "/tmp", "/root", "/workspace") if files.is_dir(path)] == [
        "/",
        "/app",
        "/app/x",
        "/tmp",
        "/root",
    ]
    assert files.cwd == "/app/x"


def test_missing_file_is_told_with_its_neighbours(files):
    """A file of the same name elsewhere comes first. It is a KeyError, as mappings raise."""
    files["other/a.txt"] = ""

    with pytest.raises(MissingFile) as caught:
        files["sbu/a.txt"]

    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, HermesEnvError)
    assert str(caught.value) == (
        "there is no file 'sbu/a.txt' on this machine.\n"
        "  expected  /workspace/sbu/a.txt\n"
        "  seen      nearest: /workspace/a.txt, /workspace/other/a.txt, /workspace/sub/b.bin"
    )


@pytest.mark.parametrize("work", [Files.__getitem__, Files.__delitem__])
def test_directory_is_no_file(work, files):
    """Whether it is read or removed."""
    with pytest.raises(MissingFile) as caught:
        work(files, "sub")

    assert str(caught.value) == (
        "there is no file 'sub' on this machine.\n  expected  /workspace/sub\n  seen      /workspace/sub is a directory"
    )


def test_missing_file_of_an_empty_machine_is_told():
    """Also where nothing is near."""
    with pytest.raises(MissingFile) as caught:
        Files()["zzz"]

    assert str(caught.value) == (
        "there is no file 'zzz' on this machine.\n  expected  /workspace/zzz\n  seen      0 files: none"
    )


def test_bytes_that_are_no_text_are_told(files):
    """With the way to read them."""
    with pytest.raises(NotText) as caught:
        files["sub/b.bin"]

    assert str(caught.value) == (
        "/workspace/sub/b.bin is not text: invalid start byte at byte 0.\n"
        "  seen      b'\\xff\\x00'\n"
        "  fix       files.read('/workspace/sub/b.bin') returns its bytes"
    )


@pytest.mark.parametrize(
    ("path", "cwd", "absolute"),
    [
        ("a", None, "/workspace/a"),
        ("a", "/x", "/x/a"),
        ("/a/../b/./c//d/", None, "/b/c/d"),
        ("../..", "/x", "/"),
        ("~", None, "/root"),
        ("~/a", "/x", "/root/a"),
        ("~a", None, "/workspace/~a"),
        ("//a", None, "/a"),
        ("", None, "/workspace"),
    ],
)
def test_paths_are_resolved(path, cwd, absolute, files):
    """Absolute and normalised."""
    assert files.resolve(path, cwd) == absolute


def test_commands_read_and_write_bytes(files):
    """Appending makes a file, too."""
    files.write("/workspace/new", b"1")
    files.write("/workspace/new", b"2", append=True)
    files.write("/workspace/log", b"3", append=True)

    assert (files.read("/workspace/new"), files.read("log")) == (b"12", b"3")


@pytest.mark.parametrize(
    ("work", "seen"),
    [
        (lambda files: files.read("nope"), ("ENOENT", "/workspace/nope")),
        (lambda files: files.read("sub"), ("EISDIR", "/workspace/sub")),
        (lambda files: files.read("a.txt/x"), ("ENOTDIR", "/workspace/a.txt/x")),
        (lambda files: files.write("nope/x", b""), ("ENOENT", "/workspace/nope/x")),
        (lambda files: files.write("sub", b""), ("EISDIR", "/workspace/sub")),
        (lambda files: files.write("a.txt/x", b""), ("ENOTDIR", "/workspace/a.txt/x")),
        (lambda files: files.make_directory("sub"), ("EEXIST", "/workspace/sub")),
        (lambda files: files.make_directory("a.txt"), ("EEXIST", "/workspace/a.txt")),
        (lambda files: files.make_directory("a.txt", parents=True), ("EEXIST", "/workspace/a.txt")),
        (lambda files: files.make_directory("a.txt/x"), ("ENOTDIR", "/workspace/a.txt/x")),
        (lambda files: files.make_directory("a.txt/x/y", parents=True), ("ENOTDIR", "/workspace/a.txt/x")),
        (lambda files: files.make_directory("nope/x"), ("ENOENT", "/workspace/nope/x")),
        (lambda files: files.remove("nope"), ("ENOENT", "/workspace/nope")),
        (lambda files: files.remove("sub"), ("EISDIR", "/workspace/sub")),
        (lambda files: files.move("nope", "x"), ("ENOENT", "/workspace/nope")),
        (lambda files: files.move("a.txt", "sub"), ("EEXIST", "/workspace/sub")),
        (lambda files: files.move("a.txt", "nope/x"), ("ENOENT", "/workspace/nope/x")),
        (lambda files: files.move("sub", "a.txt"), ("ENOTDIR", "/workspace/a.txt")),
        (lambda files: files.move("sub", "sub/x"), ("EINVAL", "/workspace/sub/x")),
        (lambda files: files.list_directory("nope"), ("ENOENT", "/workspace/nope")),
        (lambda files: files.list_directory("a.txt"), ("ENOTDIR", "/workspace/a.txt")),
        (lambda files: files.written_by("sub"), ("EISDIR", "/workspace/sub")),
    ],
)
def test_what_cannot_be_done_is_told_as_the_kernel_tells_it(work, seen, files):
    """The error's number and the path; nothing has changed."""
    before = (list(files), files.list_directory("/workspace"))

    told = refusal(lambda: work(files))

    assert told == seen
    assert (list(files), files.list_directory("/workspace")) == before


def test_names_are_listed_in_the_order_of_their_bytes(files):
    """Files and directories, hidden ones, and only those of the directory itself."""
    for name in ("B", "b", "_", ".h", "ä", "sub/deep/x"):
        files[name] = ""

    assert files.list_directory("/workspace") == [".h", "B", "_", "a.txt", "b", "sub", "ä"]
    assert files.list_directory("/") == ["data", "root", "tmp", "workspace"]
    assert files.walk("sub") == ["/workspace/sub/b.bin", "/workspace/sub/deep/x"]


def test_files_and_directories_are_moved(files):
    """With all that is in them; a file that stands in the way is replaced."""
    files["sub/deep/x"] = "x"
    files.move("sub", "other")
    files.move("a.txt", "/data/c")

    assert list(files) == ["/data/c", "/workspace/other/b.bin", "/workspace/other/deep/x"]
    assert (files["/data/c"], files.is_dir("other/deep"), files.is_dir("sub")) == ("one\n", True, False)


def test_mode_of_a_file_stays(files):
    """Also after it was written again."""
    set_mode(files, 0o755)
    files["a.txt"] = "two"
    files["b.txt"] = ""

    assert (files.nodes["/workspace/a.txt"].mode, files.nodes["/workspace/b.txt"].mode) == (0o755, 0o644)


def test_files_know_when_and_by_whom_they_were_written(files):
    """Times are a count, the same in every run; a directory has none."""
    files.writer = "terminal"
    files["new"] = ""

    assert files.changed_at("a.txt") < files.changed_at("sub/b.bin") < files.changed_at("new")
    assert files.changed_at("sub") == 0
    assert (files.written_by("a.txt"), files.written_by("new")) == ("environment", "terminal")


def test_copy_is_independent(files):
    """Both ways."""
    other = files.copy()
    other["a.txt"] = "changed"
    del other["sub/b.bin"]
    files["/data/c"] = "later"

    assert (files["a.txt"], "sub/b.bin" in files, other["/data/c"], other.cwd) == ("one\n", True, "", "/workspace")


def test_null_device_takes_everything_and_has_nothing(files):
    """It is no file that is listed."""
    files.write("/dev/null", b"gone")

    assert (files.read("/dev/null"), files.exists("/dev/null"), files.is_file("/dev/null"), "/dev/null" in files) == (
        b"",
        True,
        False,
        False,
    )


def link(files, path, target):
    """Make a link, as real bash does."""
    files.take_over({files.resolve(path): Node(kind="link", target=target, mode=0o777)})


def test_links_are_followed(files):
    """Also in the middle of a path; removing and moving works on the link itself."""
    link(files, "l", "sub")
    link(files, "sub/m", "../a.txt")
    files["l/new.txt"] = "new"
    files["l/m"] = "changed\n"
    files.move("sub/m", "n")
    files.remove("l")

    assert (files["a.txt"], files["sub/new.txt"], files.nodes["/workspace/n"].kind == "link", files.exists("l")) == (
        "changed\n",
        "new",
        True,
        False,
    )
    assert (files.follow("n"), files.exists("n")) == ("/a.txt", False)
    assert files.walk("/workspace") == ["/workspace/a.txt", "/workspace/sub/b.bin", "/workspace/sub/new.txt"]


def test_links_in_a_circle_lead_nowhere(files):
    """Nothing hangs."""
    link(files, "x", "y")
    link(files, "y", "x")

    assert (files.exists("x"), files.is_dir("x"), files.nodes["/workspace/x"].kind == "link") == (False, False, True)
    assert refusal(lambda: files.write("x", b""))[0] == "ELOOP"


def test_unusual_files_are_told(files):
    """The in-memory shell knows neither links nor odd modes."""
    plain = [files.is_plain]
    set_mode(files, 0o755)
    plain.append(files.is_plain)
    set_mode(files, 0o600)
    plain.append(files.is_plain)
    set_mode(files, 0o644)
    link(files, "l", "a.txt")
    plain.append(files.is_plain)
    files.remove("l")

    assert [*plain, files.is_plain] == [True, True, False, False, True]


def test_changes_from_outside_belong_to_the_current_party_unless_only_the_name_changed(files):
    """A renamed file and a new mode leave the writer known."""
    before = files.nodes["/workspace/a.txt"]
    files.party, files.writer = "agent", "terminal"
    files.take_over({
        "/workspace/a.txt": None,
        "/workspace/moved.txt": Node(kind="file", data=before.data, mode=0o600, changed_ns=before.changed_ns),
        "/workspace/new": Node(kind="directory", mode=0o755, changed_ns=1),
        "/workspace/new/f": Node(kind="file", data=b"f", changed_ns=2),
    })  # fmt: skip

    assert ("a.txt" in files, files.made_for("moved.txt"), files.made_for("new/f")) == (False, "environment", "agent")
    assert (files.written_by("new/f"), files.nodes["/workspace/moved.txt"].mode) == ("terminal", 0o600)

"""A real bash works on the files of an in-memory machine: it gets what differs, and returns what it changed and read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from pytest_hermes_env.errors import EnvironmentSetupError
from pytest_hermes_env.sandbox.confinement import Confinement
from pytest_hermes_env.sandbox.files import HOME, Node
from pytest_hermes_env.sandbox.real_shell import Place, Ran, RealShell

VARIABLES = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHLVL": "1",
}


class Lines:
    """A real shell, with few arguments."""

    def __init__(self, shell: RealShell) -> None:
        self.shell = shell

    def run(self, command: str, files: Mapping[str, Node | None] | None = None, *, timeout: float = 60) -> Ran:
        return self.shell.run(command, Place(cwd="/root", variables=VARIABLES), changed=files or {}, timeout=timeout)


@pytest.fixture
def bash(confinement: Confinement) -> Iterator[Lines]:
    """A warm shell."""
    shell = RealShell(confinement=confinement)
    yield Lines(shell)
    shell.close()


def text(content: str, mode: int = 0o644) -> Node:
    """A file."""
    return Node(kind="file", data=content.encode(), mode=mode)


def states(ran: Ran) -> dict[str, tuple[str, bytes, str, int] | None]:
    """What changed, without times."""
    return {path: entry and (entry.kind, entry.data, entry.target, entry.mode) for path, entry in sorted(ran.changed.items())}


def test_line_has_the_words_of_hermes_own_terminal(bash):
    """The program and the line number of an error are those of hermes' wrapper."""
    ran = bash.run("echo out; nosuch; exit 3")

    assert (ran.output, ran.exit_code) == (b"out\n/usr/bin/bash: line 3: nosuch: command not found\n", 3)


def test_directory_and_exported_variables_come_back(bash):
    """Whatever their values have in them."""
    ran = bash.run("export A=$'x\"\\\\ $y `z`\\n\\001\\e\\t'\"'\" B= C='ü'; D=no; cd /tmp; unset LANG")

    given = {name: value for name, value in VARIABLES.items() if name != "LANG"}
    assert ran.cwd == "/tmp"
    assert ran.variables == {**given, "A": "x\"\\ $y `z`\n\x01\x1b\t'", "B": "", "C": "ü", "PWD": "/tmp", "OLDPWD": "/root"}


def test_line_that_ends_the_shell_changes_neither(bash):
    """As with hermes: the wrapper does not get to its last lines."""
    ran = bash.run("export A=1; cd /tmp; exit 4")

    assert (ran.exit_code, ran.cwd, dict(ran.variables)) == (4, "/root", VARIABLES)


def test_only_what_differs_goes_over(bash):
    """Files, directories, links and modes, in both directions; nothing is said of what stayed."""
    first = bash.run(
        "cat a/b; ls -l a | tail -1 | cut -c1-10; readlink l; echo new > n; chmod 700 a/b; rm gone; ln -s n m; mkdir -p d/e; touch same",
        {f"{HOME}/a/b": text("b\n", 0o755), f"{HOME}/l": Node(kind="link", target="a/b"), f"{HOME}/gone": text("x")},
    )
    second = bash.run("rm -r d; mv n o; cat a/b", {"/root/a/b": text("other\n", 0o755), "/root/m": None})

    assert first.output == b"b\n-rwxr-xr-x\na/b\n"
    assert states(first) == {
        "/root/a/b": ("file", b"b\n", "", 0o700),
        "/root/d": ("directory", b"", "", 0o755),
        "/root/d/e": ("directory", b"", "", 0o755),
        "/root/gone": None,
        "/root/m": ("link", b"", "n", 0o777),
        "/root/n": ("file", b"new\n", "", 0o644),
        "/root/same": ("file", b"", "", 0o644),
    }
    assert second.output == b"other\n"
    assert states(second) == {
        "/root/d": None,
        "/root/d/e": None,
        "/root/n": None,
        "/root/o": ("file", b"new\n", "", 0o644),
    }


def test_files_that_were_read_are_named(bash):
    """Each time anew; writing is not reading, and neither is listing."""
    files = {f"/root/{name}": text(name) for name in "abc"}
    first = bash.run("cat a > /dev/null; ls -l; echo x >> b; stat c", files)
    second = bash.run("grep -r zzz .")
    third = bash.run("true")

    reads = [ran.read for ran in (first, second, third)]
    assert reads == [{"/root/a"}, {"/root/a", "/root/b", "/root/c"}, set()]


def test_times_go_over(bash):
    """Make and git look at them."""
    at = 1_700_000_000_123_456_789
    given = Node(kind="file", data=b"", changed_ns=at)

    ran = bash.run("stat -c %Y f; touch -d @1600000000 g; cp -p f h", {"/root/f": given})

    assert ran.output == b"1700000000\n"
    assert {path: entry and entry.changed_ns for path, entry in ran.changed.items()} == {
        "/root/g": 1_600_000_000_000_000_000,
        "/root/h": at,
    }


def test_any_directory_of_the_in_memory_machine_can_exist(bash):
    """Also a new one below the root directory, and ``/etc``."""
    files = {"/workspace/a": text("1"), "/data/b": text("2"), "/etc/c": text("3")}
    ran = bash.run("cat /workspace/a /data/b /etc/c; echo x > /workspace/d; mkdir /new", files)

    assert ran.output == b"123"
    assert set(ran.changed) == {"/workspace/d", "/new"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/usr/lib/x/y", "[Errno 30] Read-only file system: '/usr/lib/x'"),
        ("/bin/x", "/bin/x: a directory of this path is a link"),
    ],
)
def test_path_of_the_machine_is_refused(bash, path, reason):
    """The machine's programs are not the in-memory machine's to change; the next line works."""
    with pytest.raises(EnvironmentSetupError) as raised:
        bash.run("true", {path: text("x")})

    assert str(raised.value) == (
        "a file of the in-memory machine cannot exist where real bash runs.\n"
        "  expected  paths outside /usr, /bin, /lib, /sbin, /dev and /proc, which are the machine's programs and devices\n"
        f"  seen      {reason}\n"
        "  fix       put the file elsewhere, for example below /root or /workspace"
    )
    assert bash.run("echo next").output == b"next\n"


def test_links_do_not_lead_the_first_process_astray(bash):
    """A directory that a line replaced with a link is not written through."""
    bash.run("mkdir d; mv d e; ln -s /proc/self/fd d")

    with pytest.raises(EnvironmentSetupError, match="a directory of this path is a link"):
        bash.run("true", {"/root/d/1": text("x")})

    assert bash.run("echo next").output == b"next\n"


def test_special_files_and_closed_directories_do_no_harm(bash):
    """A FIFO is not opened; what its owner closed is read all the same; odd names go over."""
    ran = bash.run("mkfifo p; mkdir c; echo x > c/f; chmod 0 c/f c; echo y > $'n\\xff\\n'; ln -s /proc/self/fd/0 s")

    assert states(ran) == {
        "/root/c": ("directory", b"", "", 0),
        "/root/c/f": ("file", b"x\n", "", 0),
        "/root/n\udcff\n": ("file", b"y\n", "", 0o644),
        "/root/s": ("link", b"", "/proc/self/fd/0", 0o777),
    }


def test_interpreter_is_that_of_the_tests(bash):
    """With its packages and their programs; pytest is what a verifier runs most."""
    files = {"/root/test_it.py": text("import pytest\ndef test():\n    assert 1\n")}
    ran = bash.run("python3 -m pytest -q -p no:cacheprovider; pytest --version", files)

    assert b"1 passed" in ran.output
    assert f"pytest {pytest.__version__}\n".encode() in ran.output
    assert "/root/test_it.py" in ran.read


def test_machine_is_that_of_the_in_memory_shell(bash):
    """The same user, home directory and name; nothing of the real machine's home or temporary directory."""
    ran = bash.run("whoami; echo ~; hostname; ls -A /root /tmp; id -u")

    assert ran.output == b"root\n/root\nsandbox\n/root:\n\n/tmp:\n0\n"


def test_standard_input_is_empty(bash):
    """Nobody could type."""
    assert bash.run("cat").output == b""


def test_line_that_takes_too_long_is_ended(bash):
    """Its output so far counts, and what it changed; the exit code is that of hermes."""
    ran = bash.run("echo begun; echo x > f; sleep 300", timeout=0.5)

    assert (ran.output, ran.exit_code, ran.timed_out, ran.limit) == (b"begun\n", 124, True, "")
    assert set(ran.changed) == {"/root/f"}


def test_server_that_a_line_started_answers_the_next_one(bash):
    """Background processes live until the end of the cell."""
    server = "import socket; s = socket.create_server(('127.0.0.1', 8123)); open('/tmp/up', 'w'); s.accept()[0].send(b'hello')"
    ask = "import socket; print(socket.create_connection(('127.0.0.1', 8123)).recv(9))"

    bash.run(f'python3 -c "{server}" > /dev/null 2>&1 & until [ -e /tmp/up ]; do sleep 0.01; done')

    assert bash.run(f'python3 -c "{ask}"').output == b"b'hello'\n"


def wait(bash: Lines, process: int) -> tuple[bytes, int | None]:
    """The whole output and the exit code of a background process."""
    deadline = time.monotonic() + 30
    while (state := bash.shell.poll(process))[1] is None and time.monotonic() < deadline:
        pass
    return state


def test_background_process_is_polled_written_to_and_ended(bash):
    """As hermes' ``process`` tool does."""
    place, changed = Place(cwd="/root", variables=VARIABLES), {f"{HOME}/f": text("f\n")}
    reader = bash.shell.start("read a; echo got $a; cat f; nosuch; (exit 5)", place, changed=changed, has_input=True)
    sleeper = bash.shell.start("echo begun; sleep 300", place, changed={})
    bash.shell.write(reader, b"words\n")
    ended = wait(bash, reader)
    bash.shell.kill(sleeper)

    assert ended == (b"got words\nf\nbash: nosuch: command not found\n", 5)
    assert wait(bash, sleeper)[1] is not None


def test_shell_starts_again_after_close(bash):
    """With an empty tree: its caller sends all files again."""
    bash.run("echo x > f")
    bash.shell.close()

    assert bash.run("ls").output == b""


def test_no_confinement_is_an_error_with_the_way_out():
    """A line never runs unconfined by accident."""
    shell = RealShell(confinement=Confinement(kind="none", reason="bwrap: not installed"))

    with pytest.raises(EnvironmentSetupError) as raised:
        shell.run("true", Place(cwd="/root"), changed={}, timeout=1)

    assert str(raised.value) == (
        "the in-memory machine has no real shell for a command line.\n"
        "  expected  a confined cell, in which real bash runs\n"
        "  seen      bwrap: not installed\n"
        '  fix       see "How commands are confined": hermes-env docs local-sandbox'
    )

"""The in-memory shell as a session: what lasts, who answers commands, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import pytest

from pytest_hermes_env.errors import UnknownCommand, UnsupportedSyntax
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.outcome import Outcome
from pytest_hermes_env.sandbox.shell import Shell


@pytest.fixture
def files():
    return Files({"a.txt": "one\ntwo\n", "sub/c.txt": "three\n"})


@pytest.fixture
def shell(files):
    return Shell(files)


def said(shell, line):
    outcome = shell.run(line)
    return outcome.output, outcome.exit_code


def test_output_and_complaints_come_in_their_order(shell):
    """As a terminal shows them."""
    outcome = shell.run("echo 1; cat nope; echo 2; cd nope || exit 4")

    assert outcome == Outcome(
        output="1\ncat: nope: No such file or directory\n2\n/usr/bin/bash: line 3: cd: nope: No such file or directory\n",
        exit_code=4,
    )


def test_bytes_that_are_no_text_are_shown_as_hermes_shows_them(shell):
    """With a sign in their place."""
    assert said(shell, "printf '\\xffa'") == ("\ufffda", 0)


def test_standard_input_can_be_given(shell):
    """As the tool's callers may do."""
    assert shell.run("head -n 1; cat", stdin=b"1\n2\n") == Outcome(output="1\n")
    assert shell.run("read x; echo $x; cat", stdin=b"1\n2\n") == Outcome(output="1\n2\n")


LASTING = [
    ("cd sub", "pwd", "/workspace/sub\n"),
    ("(cd sub)", "pwd", "/workspace\n"),
    ("cd sub; false", "pwd", "/workspace/sub\n"),
    ("cd sub; exit 0", "pwd", "/workspace\n"),
    ("set -e; cd sub; false", "pwd", "/workspace\n"),
    ("cd sub; set -u; echo $nope", "pwd", "/workspace\n"),
    ("cd sub; echo $((1/0))", "pwd", "/workspace/sub\n"),
    ("cd sub; echo )", "pwd", "/workspace\n"),
    ("cd sub\necho )", "pwd", "/workspace/sub\n"),
    ("export X=1", "echo $X", "1\n"),
    ("X=1", "echo $X", "\n"),
    ("export X=1; exit", "echo $X", "\n"),
    ("export X=1; X=2", "bash -c 'echo $X'", "2\n"),
    ("export X=1; unset X", "echo ${X-unset}", "unset\n"),
    ("f() { :; }; set -f; set -- a", "type -t f; echo *.txt $#", "a.txt 0\n"),
    ("cd sub", "cd -", "/workspace/sub\n"),
    ("false", "echo $?", "0\n"),
]


@pytest.mark.parametrize(("first", "second", "output"), LASTING)
def test_session_keeps_what_hermes_keeps(first, second, output, shell):
    """The directory and the exported variables, unless the shell ended; nothing else."""
    shell.run(first)

    assert shell.run(second).output == output


def test_directory_can_be_set(shell):
    """As a call with a workdir does."""
    shell.cwd = "/workspace/sub"

    assert said(shell, "pwd; echo $PWD; cat c.txt") == ("/workspace/sub\n/workspace/sub\nthree\n", 0)


def test_copy_is_independent(shell, files):
    """With the same state, on files of its own."""
    shell.run("cd sub; export X=1")
    twin = shell.copy(files.copy())

    twin.run("cd ..; export X=2; echo changed > a.txt")

    assert said(shell, "pwd; echo $X; cat ../a.txt") == ("/workspace/sub\n1\none\ntwo\n", 0)
    assert said(twin, "pwd; echo $X; cat a.txt") == ("/workspace\n2\nchanged\n", 0)


class Script:
    """Answers commands by their first word, and remembers what it was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []
        self.foreseen = []

    def answer(self, text, words):
        self.asked.append((text, words))
        return self.answers.get(words[0])

    def knows(self, text, words):
        self.foreseen.append((text, words))
        return words[0] in self.answers


@pytest.fixture
def scripted(files):
    """``scripted(**answers)`` is a shell and its script."""

    def make(**answers):
        script = Script(**answers)
        return Shell(files, answer=script.answer, knows=script.knows), script

    return make


def test_answers_stand_wherever_a_command_may(scripted):
    """In lists, pipes, substitutions, functions and under programs that run others."""
    shell, script = scripted(pytest=Outcome(output="1\n2\n3\n", exit_code=1))

    outcome = shell.run(
        "cd sub && X=1 pytest -q 'a b' > out 2>&1 | tail -1; f() { pytest; }; f | tail -n 1; echo $(pytest $X.)"
    )

    assert outcome == Outcome(output="3\n1 2 3\n")
    assert [entry for entry in script.asked if entry[1][0] == "pytest"] == [
        ("X=1 pytest -q 'a b'", ("pytest", "-q", "a b")),
        ("pytest", ("pytest",)),
        ("pytest $X.", ("pytest", ".")),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "timeout 5 tool x",
        "env A=1 tool x",
        "nohup tool x",
        "echo x | xargs tool",
        "bash -c 'tool x'",
        "eval tool x",
        "command tool x",
    ],
)
def test_answers_are_reached_through_other_commands(line, scripted):
    """By the words that those would run."""
    shell, script = scripted(tool=Outcome(output="said\n", exit_code=0))

    assert shell.run(line) == Outcome(output="said\n")
    assert script.asked[-1] == ("tool x", ("tool", "x"))


def test_answers_come_before_the_machines_own_commands(scripted):
    """A program, a builtin and a function."""
    shell, _ = scripted(cat=Outcome(output="cat\n"), cd=Outcome(output="cd\n"), f=Outcome(output="f\n"))

    assert said(shell, "f() { echo own; }; cat a.txt; cd sub; f; pwd") == ("cat\ncd\nf\n/workspace\n", 0)


def test_answers_have_their_two_streams(scripted):
    """What is said on stderr is led as stderr is."""
    shell, _ = scripted(tool=Outcome(output="out\n", errors="err\n", exit_code=3))

    assert said(shell, "tool") == ("out\nerr\n", 3)
    assert said(shell, "tool 2> err.txt | wc -l; cat err.txt") == ("1\nerr\n", 0)


def test_answers_are_written_where_output_leads(scripted, files):
    """Into a file, also one that is appended to."""
    shell, _ = scripted(tool=Outcome(output="out\n"))

    shell.run("tool > x; tool >> x")

    assert files["x"] == "out\nout\n"


def test_answers_know_where_they_run(files):
    """The directory of the subshell that asks."""
    seen = []
    shell = Shell(files, answer=lambda text, words: seen.append((words[0], shell.running_in)))

    shell.run("true; (cd sub; true); true")

    assert [where for name, where in seen if name == "true"] == ["/workspace", "/workspace/sub", "/workspace"]


UNKNOWN = [
    ("pytest -q", "pytest -q", ("pytest", "-q")),
    ("echo a; pytest -q 2>&1 | tail", "pytest -q", ("pytest", "-q")),
    ("false && ( make 'a b' )", "make 'a b'", ("make", "a b")),
    ("if [ -f x ]; then make; fi", "make", ("make",)),
    ("for i in 1; do while true; do make; done; done", "make", ("make",)),
    ('echo "$(echo $(make))"', "make", ("make",)),
    ("echo `make`", "make", ("make",)),
    ("echo ${x:-$(make)}", "make", ("make",)),
    ("cat <<E\n$(make)\nE", "make", ("make",)),
    ("x=$(make)", "make", ("make",)),
    ("echo > $(make)", "make", ("make",)),
    ("case $(make) in $(cmake)) ninja;; esac", "make", ("make",)),
    ("f() { make; }", "make", ("make",)),
    ("[[ -n $(make) ]]", "make", ("make",)),
    ("(( $(make) ))", "make", ("make",)),
    ("for ((i=0;i<$(make);i++)); do true; done", "make", ("make",)),
    ("echo $(( $(make) ))", "make", ("make",)),
    ("'make'", "'make'", ("make",)),
    ("\\make", "\\make", ("make",)),
    ("{ echo; } > x; ! make", "make", ("make",)),
]


@pytest.mark.parametrize(("line", "text", "words"), UNKNOWN)
def test_unknown_command_is_told_before_anything_happens(line, text, words, shell, files):
    """Wherever its name stands."""
    with pytest.raises(UnknownCommand) as caught:
        shell.run(f"echo x > made; {line}")

    assert (caught.value.text, caught.value.words) == (text, words)
    assert "made" not in files


REACHED = [
    ("$x -q", "$x -q", ("make", "-q")),
    ("eval make", "make", ("make",)),
    ("env X=1 make -j", "make -j", ("make", "-j")),
    ("bash -c 'make all'", "make all", ("make", "all")),
    ("./make", "./make", ("./make",)),
    ("/usr/bin/make", "/usr/bin/make", ("/usr/bin/make",)),
    ("echo a | xargs make", "make a", ("make", "a")),
    ("make $x", "make $x", ("make", "make")),
    ("''", "''", ("",)),
]


@pytest.mark.parametrize(("line", "text", "words"), REACHED)
def test_unknown_command_that_only_running_shows_is_told_when_it_is_reached(line, text, words, shell, files):
    """As it was written where it was written, and with its words."""
    with pytest.raises(UnknownCommand) as caught:
        shell.run(f"x=make; echo x > made; {line}")

    assert (caught.value.text, caught.value.words) == (text, words)
    assert "made" in files or line == "''"


def test_command_that_runs_a_file_may_define_others(shell, files):
    """So names are not judged beforehand."""
    files["lib.sh"] = "greet() { echo hello $1; }\n"

    assert said(shell, ". ./lib.sh; greet you") == ("hello you\n", 0)


def test_scripts_of_the_machine_run(shell, files):
    """When they may be executed and are for a shell."""
    files["run"] = "#!/usr/bin/env bash\necho $0 $1; cd sub; exit 3\n"
    files.set_executable("run", True)

    assert said(shell, "./run x; echo $?; pwd") == ("./run x\n3\n/workspace\n", 0)


UNSUPPORTED = [
    ("sleep 1 &", "& (a background job)"),
    ("a=(1 2)", "an array"),
    ("a[1]=2", "an array"),
    ("echo ${a[1]}", "an array"),
    ("echo $((a[1]))", "an array"),
    ("diff <(ls) <(ls sub)", "the process substitution <(...)"),
    ("echo $[1+1]", "the arithmetic $[...]"),
    ("select x in a; do break; done", "select command"),
    ("coproc cat", "coproc"),
    ("time { true; }", "time command"),
    ("echo ${x@Q}", "${...@...}"),
    ("echo ${!x*}", "${!...}"),
    ("echo $RANDOM", "a variable that bash computes"),
    ("exec > out", "exec"),
    ("cat <> a.txt", "the redirection <>"),
    ("echo a >&-", "a closed stream"),
    ("set -o noclobber", "set -o noclobber"),
    ("set -C", "set -C"),
    ("declare -a x", "declare -a"),
    ("read -t 1 x", "read -t"),
    ("cat /proc/version", "/proc/version"),
    ("cat < /dev/tcp/host/80", "/dev/tcp/host/80"),
    ("ls --color=never", "ls --color"),
    ("while true; do :; done", "more than 10000 steps"),
    ("f() { f; }; f", "more than 40 nested calls"),
    ("echo x > f; { cat f; echo y; } >> f; cat f >> f", "cat of its own output file"),
    ("(" * 400 + "true" + ")" * 400, "nesting this deep"),
]


@pytest.mark.parametrize(("line", "what"), UNSUPPORTED)
def test_what_this_shell_does_not_know_is_refused(line, what, shell):
    """Never done wrongly."""
    with pytest.raises(UnsupportedSyntax) as caught:
        shell.run(line)

    assert caught.value.what == what


@pytest.mark.parametrize("line", ["echo x > made\nsleep 1 &", "echo x > made; diff <(ls) a.txt", "echo x > made; a=(1)"])
def test_syntax_is_refused_before_anything_happens(line, shell, files):
    """Also where it stands behind other lines."""
    with pytest.raises(UnsupportedSyntax):
        shell.run(line)

    assert "made" not in files


def test_messages_name_command_and_construct(shell):
    """For those who use the shell alone."""
    with pytest.raises(UnknownCommand) as unknown:
        shell.run("make -j 4")
    with pytest.raises(UnsupportedSyntax) as unsupported:
        shell.run("a=(1)")

    assert (str(unknown.value), str(unsupported.value)) == ("make: command not found", "an array in a=(1)")


def test_files_that_vanish_take_their_output_along(shell, files):
    """A file that is removed or replaced while it is written."""
    shell.run("{ echo 1; rm -f x; echo 2; } > x; { echo 1; rm -f x; echo 2; } >> x; { echo 1; mv y z; echo 2; } > y")

    assert {path: files[path] for path in files if path < "/workspace/s" or path > "/workspace/t"} == {
        "/workspace/a.txt": "one\ntwo\n",
        "/workspace/z": "1\n",
    }

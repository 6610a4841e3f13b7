"""The in-memory shell as a session: what lasts, who answers commands, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import pytest

from pytest_hermes_env.errors import NotKnown
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
    assert said(shell, "printf /2E= | base64 -d") == ("\ufffda", 0)


def test_second_reader_of_a_pipe_is_not_known(shell):
    """Nobody can say how much the first one leaves."""
    assert shell.run("printf '1\\n2\\n' | (head -n 1)") == Outcome(output="1\n")
    with pytest.raises(NotKnown):
        shell.run("printf '1\\n2\\n' | (head -n 1; cat)")


LASTING = [
    ("cd sub", "pwd", "/workspace/sub\n"),
    ("CDPATH= cd -- sub", "pwd", "/workspace/sub\n"),
    ("(cd sub)", "pwd", "/workspace\n"),
    ("cd sub; false", "pwd", "/workspace/sub\n"),
    ("cd sub; exit 0", "pwd", "/workspace\n"),
    ("export X=1", "echo $X", "1\n"),
    ("X=1", "echo $X", "\n"),
    ("export X=1; exit", "echo $X", "\n"),
    ("export X=1; X=2", "echo $X", "2\n"),
    ("cd sub", "echo $OLDPWD", "/workspace/sub\n"),
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

    outcome = shell.run("cd sub && X=1 pytest -q 'a b' 2>&1 | wc -l; { pytest; } | tail -n 1; echo $(pytest $X.)")

    assert outcome == Outcome(output="3\n3\n1 2 3\n")
    assert [entry for entry in script.asked if entry[1][0] == "pytest"] == [
        ("X=1 pytest -q 'a b'", ("pytest", "-q", "a b")),
        ("pytest", ("pytest",)),
        ("pytest $X.", ("pytest", ".")),
    ]


def test_answers_are_reached_through_timeout(scripted):
    """By the words that it would run."""
    shell, script = scripted(tool=Outcome(output="said\n", exit_code=0))

    assert shell.run("timeout 5 tool x") == Outcome(output="said\n")
    assert script.asked[-1] == ("tool x", ("tool", "x"))


def test_answers_come_before_the_machines_own_commands(scripted):
    """A program and a builtin."""
    shell, _ = scripted(cat=Outcome(output="cat\n"), cd=Outcome(output="cd\n"))

    assert said(shell, "cat a.txt; cd sub; pwd") == ("cat\ncd\n/workspace\n", 0)


def test_answers_have_their_two_streams(scripted):
    """What is said on stderr is led as stderr is."""
    shell, _ = scripted(tool=Outcome(output="out\n", errors="err\n", exit_code=3))

    assert said(shell, "tool") == ("out\nerr\n", 3)
    assert said(shell, "tool 2>&1 | wc -l; tool 2> err.txt; cat err.txt") == ("2\nout\nerr\n", 0)


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
    "make",
    "echo a; make -q 2>&1 | tail",
    "false && ( make 'a b' )",
    "if [ -f x ]; then make; fi",
    'echo "$(echo $(make))"',
    "ls | make .",
    "cat <<E\n$(make)\nE",
    "x=$(make)",
    "echo > $(make)",
    "'make'",
    "\\make",
    "{ echo; } > x; ! make",
    "$x -q",
    "timeout 5 make",
]


@pytest.mark.parametrize("line", UNKNOWN)
def test_command_that_is_not_in_memory_is_not_known(line, files):
    """Wherever its name stands; unless only running shows it, no script is asked for the rest of the line."""
    asked = []
    shell = Shell(files, answer=lambda text, words: asked.append(text), knows=lambda text, words: False)

    with pytest.raises(NotKnown) as caught:
        shell.run(f"x=make; mkdir d; cd d; echo x > made; {line}")

    assert caught.value.what == "the command make"
    assert bool(asked) == ("$x" in line or "timeout" in line)
    assert (list(files), shell.cwd) == (["/workspace/a.txt", "/workspace/sub/c.txt"], "/workspace")


NOT_KNOWN = [
    "sleep 1 &",
    "a=(1 2)",
    "a[1]=2",
    "echo ${a[1]}",
    "diff <(ls) <(ls sub)",
    "echo $[1+1]",
    "f() { make; }; f",
    "case a in a) echo;; esac",
    "for ((i=0;i<3;i++)); do true; done",
    "echo $RANDOM $$",
    "time true",
    "exec > out",
    "cat <> a.txt",
    "echo a >&-",
    "set -euo pipefail",
    "eval ls",
    "command -v python3",
    "command ls",
    "echo a | (( 1 ))",
    "[[ a = b ]]",
    "for i in 1; do echo $i; done",
    "echo ${#HOME}",
    "basename a/b; dirname a/b",
    "chmod +x a.txt",
    "LC_ALL=C ls",
    "grep -o one a.txt",
    "echo ${x/a/b}",
    "x=(1)",
    "IFS=, read a b < a.txt",
    "while true; do break; done",
    "sed 's/a*/x/g' a.txt",
    "x=find; $x .",
    "echo $((1+1))",
    "echo `pwd`",
    "echo {a,b}",
    "echo ${x%.txt} ${x:-$(make)}",
    "read x < a.txt",
    "grep -r one .",
    "grep -E 'a{2}' a.txt",
    "cp -r sub new",
    "echo a > new | cat",
    "cat nope | wc -l",
    "echo *.txt",
    "x='*'; echo $x",
    "echo [ab]",
    "echo ${x:-y}",
    "[ a",
    "sort a.txt",
    "cp a.txt b.txt",
    "sleep 1",
    "unset x",
    "cat a.txt | base64 > b",
    "echo a | grep -o 'a\\|ab'",
    "tail -n 0 a.txt",
    "wc a.txt nope",
    "read x y <<< 'a\\b c'",
    "{ echo a; echo b; } | true",
    "declare -a x",
    "trap 'echo x' EXIT",
    "cat /proc/version",
    "cat < /dev/tcp/host/80",
    "ls -l",
    "ls /",
    "ls --color=never",
    "echo )",
    "cd nope\ncd nope",
    "while true; do :; done",
    "echo x > f; { cat f; echo y; } >> f",
    "cat a.txt | tee a.txt",
    "ls | tee new",
    "{ rm x; } > x",
    "cat < a.txt > a.txt",
    "cat a.txt > a.txt",
    "echo a > f 2> f",
    "echo a >&2 | echo b",
    "LC_ALL=de_DE.UTF-8 ls",
    "(" * 400 + "true" + ")" * 400,
]


@pytest.mark.parametrize("line", NOT_KNOWN)
def test_what_only_real_bash_answers_exactly_is_not_known(line, shell, files):
    """And nothing of it has happened."""
    with pytest.raises(NotKnown) as caught:
        shell.run(f"mkdir d; cd d; echo x > ../made; cd ..; {line}")

    assert caught.value.command.endswith(line)
    assert caught.value.what
    assert list(files) == ["/workspace/a.txt", "/workspace/sub/c.txt"]
    assert not files.is_dir("/workspace/d")


def test_session_can_go_on_where_another_shell_stopped(shell):
    """In its directory, with its exported variables."""
    shell.resume("/workspace/sub", {**shell.variables, "X": "1"})

    assert said(shell, "pwd; echo $X; cat c.txt") == ("/workspace/sub\n1\nthree\n", 0)
    assert shell.variables["X"] == "1"


@pytest.mark.parametrize("name", ["POSIXLY_CORRECT", "GREP_OPTIONS", "BASH_ENV", "LC_ALL"])
def test_variables_that_change_commands_make_every_line_not_known(name, shell):
    """Such as those that a real line exported."""
    shell.resume("/workspace", {**shell.variables, name: "tr_TR"})

    with pytest.raises(NotKnown):
        shell.run("ls")


def test_program_of_the_users_own_path_is_not_known(shell, files):
    """It comes before the system's program."""
    files["bin/cat"] = "echo mine\n"

    with pytest.raises(NotKnown):
        shell.run("export PATH=/workspace/bin:$PATH; cat a.txt")
    assert said(shell, "export PATH=/workspace/bin:$PATH; wc -l a.txt") == ("2 a.txt\n", 0)


def test_messages_name_command_and_construct(shell):
    """For those who use the shell alone."""
    messages = []
    for line in ("make -j 4", "sleep 1 &"):
        with pytest.raises(NotKnown) as caught:
            shell.run(line)
        messages.append(str(caught.value))

    assert messages == ["the command make in make -j 4", "& (a background job) in sleep 1 &"]

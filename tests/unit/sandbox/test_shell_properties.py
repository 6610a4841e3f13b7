"""Whatever line the in-memory shell is told: it answers or refuses, and always in the same way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hermes_env.errors import NotKnown, UnknownCommand
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.shell import Shell

WORDS = st.sampled_from(
    [
        "a",
        "'b c'",
        '"$x y"',
        "$x",
        "${x:-d}",
        "${x##*a}",
        "${x/a/b}",
        "${x:1:2}",
        "$(echo s)",
        "`echo b`",
        "$((x+1))",
        "*.txt",
        "{p,q}",
        "~",
        "$@",
        '"$@"',
        "$?",
        "\\*",
        "$'\\xff\\n'",
        "-n",
        "-",
        "--",
        "x=1",
        "/",
        "..",
        "",
        "''",
        "é",
        "�",
        "\x00",
        "$",
        "\\",
        "[",
        "]",
        "!",
    ]
) | st.text(alphabet="ab $'\"`\\(){}[]*?!#;&|<>=~\n\t-/.,:+x1", max_size=6)
NAMES = st.sampled_from(
    [
        "echo",
        "cat",
        "cd",
        "read",
        "test",
        "[",
        "[[",
        "((",
        "printf",
        "export",
        "local",
        "set",
        "shift",
        "eval",
        "bash -c",
        "xargs",
        "env",
        "f",
        "exit",
        "return",
        "break",
        "true",
        "false",
        "wc",
        "grep",
        "sort",
        "head",
        "tail",
        "ls",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "let",
        ".",
        "unknown",
        "time",
        "type",
        "command -v",
        "find",
        "sed",
        "base64",
        "od -An -v -tx1",
        "tee",
        "which",
        "unset",
        "sleep",
        "wait",
        ":",
    ]
)
REDIRECTIONS = st.sampled_from(
    [
        "",
        "",
        "",
        "> f",
        ">> f",
        "< a.txt",
        "< nope",
        "2>&1",
        ">&2",
        "2> f",
        "&> f",
        "<<< $x",
        "> nope/f",
        "> sub",
        "3>&1",
        ">&3",
        "<<E\n$x\nE\n",
    ]
)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.builds("{}{}{}".format, inner, st.sampled_from([";", " && ", " || ", " | ", " |& ", "\n", "; ! "]), inner)
    return st.one_of(
        joined,
        st.builds("( {} ) {}".format, inner, REDIRECTIONS),
        st.builds("{{ {}; }} {}".format, inner, REDIRECTIONS),
        st.builds("if {}; then {}; else {}; fi".format, inner, inner, inner),
        st.builds("for x in {} {}; do {}; done".format, WORDS, WORDS, inner),
        st.builds("while read x; do {}; done < a.txt".format, inner),
        st.builds("f() {{ {}; }}; f {}".format, inner, WORDS),
        st.builds("case {} in {}) {};; *) {};; esac".format, WORDS, WORDS, inner, inner),
        st.builds("x=$({})".format, inner),
        st.builds("[[ {} == {} ]]".format, WORDS, WORDS),
        st.builds("(( {} + {} ))".format, WORDS, WORDS),
    )


SIMPLE = st.builds(
    lambda name, words, redirection: f"{name} {' '.join(words)} {redirection}", NAMES, st.lists(WORDS, max_size=3), REDIRECTIONS
)
LINES = st.recursive(SIMPLE, compound, max_leaves=6) | st.text(alphabet="ab $'\"`\\(){}[]*?!#;&|<>=\n-", max_size=30)


def result(line: str) -> object:
    """What a line does on a machine of its own: its outcome or its refusal, and the files."""
    files = Files({"a.txt": "one\ntwo\n", "sub/c.txt": "three\n"})
    shell = Shell(files)
    try:
        told: object = shell.run(line)
    except (NotKnown, UnknownCommand) as refused:
        told = (type(refused), str(refused))
    return told, shell.cwd, {path: files.read(path) for path in files}, [files.changed_at(path) for path in files]


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_line_is_answered_or_refused_and_always_alike(line):
    """No other error comes out, and two machines in the same state do the same."""
    assert result(line) == result(line)

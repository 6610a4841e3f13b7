"""The commands that are the shell's own: they change it, ask it about itself, or run other commands in it.

Place in the flow: `Runner.execute` looks here before it looks at the machine's programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.arithmetic import ArithmeticProblem, evaluated
from pytest_hermes_env.sandbox.bash.launchers import LAUNCHERS
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Jump, Place, Returned
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.commands import COMMANDS
from pytest_hermes_env.sandbox.files import HOME

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.bash.runner import Runner

__all__ = ["BUILTINS"]

Builtin: TypeAlias = "Callable[[Runner, tuple[str, ...], Streams], int]"

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
IN_BASH = frozenset({"echo", "printf", "test", "[", "true", "false", ":"})
"""Programs of this machine that are bash's own commands."""
KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select"}
    | {"time", "{", "}", "!", "[[", "]]", "coproc"}
)
OPTIONS = {
    "errexit": "e",
    "nounset": "u",
    "xtrace": "x",
    "noglob": "f",
    "pipefail": "pipefail",
    "hashall": "h",
    "braceexpand": "B",
}
IGNORED = frozenset("hB")
USAGES = {
    "cd": "cd: usage: cd [-L|[-P [-e]] [-@]] [dir]",
    "pwd": "pwd: usage: pwd [-LP]",
    "export": "export: usage: export [-fn] [name[=value] ...] or export -p",
    "unset": "unset: usage: unset [-f] [-v] [-n] [name ...]",
    "set": "set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]",
    "source": "source: usage: source filename [arguments]",
    ".": ".: usage: . filename [arguments]",
}


def say(shell: Runner, streams: Streams, text: str, code: int = 1) -> int:
    """Complain as bash does of the present line, and return the exit code."""
    shell.complain(streams, f"{shell.state.prefix}{text}\n")
    return code


def _bad_option(shell: Runner, streams: Streams, name: str, option: str) -> int:
    say(shell, streams, f"{name}: {option}: invalid option")
    if name in USAGES:
        shell.complain(streams, USAGES[name] + "\n")
    return 2


def _unsupported(words: tuple[str, ...]) -> UnsupportedSyntax:
    return UnsupportedSyntax(" ".join(words), " ".join(words[:2]))


# Directories


def cd(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Change the working directory."""
    state = shell.state
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option not in {"-L", "-P"}:
            return _bad_option(shell, streams, "cd", option[:2])
    if len(rest) > 1:
        return say(shell, streams, "cd: too many arguments")
    if not rest and "HOME" not in state.variables:
        return say(shell, streams, "cd: HOME not set")
    target = rest[0] if rest else state.variables.get("HOME", HOME)
    shows = target == "-"
    if shows:
        if "OLDPWD" not in state.variables:
            return say(shell, streams, "cd: OLDPWD not set")
        target = state.variables["OLDPWD"]
    if target:
        found = _searched(shell, target)
        shows = shows or found is not None
        path = found or shell.files.resolve(f"./{target}" if target.startswith("~") else target, state.cwd)
        try:
            shell.files.list_directory(path)
        except OSError as error:
            return say(shell, streams, f"cd: {target}: {os.strerror(error.errno or 0)}")
    else:
        path = state.cwd
    state.variables["OLDPWD"] = state.variables.get("PWD", state.cwd)
    state.variables["PWD"] = state.cwd = path
    state.exported |= {"OLDPWD", "PWD"}
    if shows:
        shell.write(streams, f"{path}\n")
    return 0


def _searched(shell: Runner, target: str) -> str | None:
    """Return the directory that CDPATH leads to."""
    if target.startswith(("/", "./", "../")) or target in {".", ".."}:
        return None
    for above in filter(None, shell.state.variables.get("CDPATH", "").split(":")):
        path = shell.files.resolve(f"{above}/{target}", shell.state.cwd)
        if shell.files.is_dir(path):
            return path
    return None


def pwd(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Write the working directory."""
    for word in words[1:]:
        if word.startswith("-") and word not in {"-L", "-P", "--"}:
            return _bad_option(shell, streams, "pwd", word[:2])
    shell.write(streams, f"{shell.state.cwd}\n")
    return 0


# Variables


def declared(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Set and mark variables: export, declare, typeset, local, readonly."""
    name, state = words[0], shell.state
    rest = list(words[1:])
    flags: set[str] = set()
    while rest and rest[0][:1] in {"-", "+"} and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word[0] == "+" or set(word[1:]) - set("xgrnp"):
            raise _unsupported(words)
        flags |= set(word[1:])
    if name == "local" and not state.scopes:
        return say(shell, streams, "local: can only be used in a function")
    if not rest or "p" in flags:
        return _shown(shell, words, rest, streams)
    code = 0
    for word in rest:
        variable, equals, value = word.partition("=")
        appends = variable.endswith("+") and bool(equals)
        variable = variable.removesuffix("+") if appends else variable
        if not NAME.fullmatch(variable):
            code = say(shell, streams, f"{name}: `{word}': not a valid identifier")
            continue
        is_local = name == "local" or (name in {"declare", "typeset"} and bool(state.scopes) and "g" not in flags)
        if is_local and variable not in state.scopes[-1]:
            state.scopes[-1][variable] = state.variables.get(variable)
            state.variables.pop(variable, None)
        if equals:
            if variable in state.readonly:
                return say(shell, streams, f"{variable}: readonly variable")
            state.variables[variable] = state.variables.get(variable, "") + value if appends else value
        if name == "readonly" or "r" in flags:
            state.readonly.add(variable)
        if (name == "export" and "n" not in flags) or "x" in flags:
            state.exported.add(variable)
        if name == "export" and "n" in flags:
            state.exported.discard(variable)
    return code


def _shown(shell: Runner, words: tuple[str, ...], names: list[str], streams: Streams) -> int:
    state = shell.state
    if words[0] not in {"export", "declare", "typeset"} or (words[0] != "export" and not names):
        raise _unsupported(words)
    code = 0
    for name in names or sorted(state.exported):
        marks = ("r" if name in state.readonly else "") + ("x" if name in state.exported else "")
        if name in state.variables:
            value = re.sub(r'(["\\$`])', r"\\\1", state.variables[name])
            shell.write(streams, f'declare -{marks or "-"} {name}="{value}"\n')
        elif name in state.exported:
            shell.write(streams, f"declare -{marks} {name}\n")
        else:
            code = say(shell, streams, f"{words[0]}: {name}: not found")
    return code


def unset(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Forget variables and functions."""
    state = shell.state
    rest = list(words[1:])
    kind = ""
    while rest and rest[0].startswith("-") and rest[0] != "-":
        kind = rest.pop(0)
        if kind not in {"-v", "-f", "--"}:
            return _bad_option(shell, streams, "unset", kind[:2])
    code = 0
    for name in rest:
        if "[" in name:
            raise _unsupported(words)
        if name in state.readonly and kind != "-f":
            code = say(shell, streams, f"unset: {name}: cannot unset: readonly variable")
        elif kind != "-f" and (name in state.variables or kind == "-v"):
            state.variables.pop(name, None)
            state.exported.discard(name)
        else:
            state.functions.pop(name, None)
    return code


def set_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Set options, or the positional parameters."""
    state = shell.state
    rest = list(words[1:])
    if not rest:
        raise _unsupported(words)
    while rest:
        word = rest[0]
        if word in {"--", "-"} or word[:1] not in {"-", "+"} or len(word) == 1:
            if word == "--":
                rest.pop(0)
            state.arguments = tuple(rest)
            return 0
        rest.pop(0)
        turns_on = word[0] == "-"
        for letter in word[1:]:
            if letter == "o":
                if not rest:
                    raise _unsupported(words)
                named = rest.pop(0)
                if named not in OPTIONS:
                    if re.fullmatch(r"[a-z]+", named) and named in KNOWN_OPTIONS:
                        raise UnsupportedSyntax(" ".join(words), f"set -o {named}")
                    return say(shell, streams, f"set: {named}: invalid option name", 2)
                option = OPTIONS[named]
            elif letter in "euxf" or letter in IGNORED:
                option = letter
            elif letter in "abkmnptvCEHPT":
                raise UnsupportedSyntax(" ".join(words), f"set -{letter}")
            else:
                return _bad_option(shell, streams, "set", f"{word[0]}{letter}")
            if option not in IGNORED:
                (state.options.add if turns_on else state.options.discard)(option)
    return 0


KNOWN_OPTIONS = frozenset(
    {"allexport", "emacs", "errtrace", "functrace", "histexpand", "history", "ignoreeof", "keyword", "monitor", "noclobber"}
    | {"noexec", "nolog", "notify", "onecmd", "physical", "posix", "privileged", "verbose", "vi", "interactive"}
)


def shift(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Drop positional parameters."""
    if len(words) > 2:  # noqa: PLR2004 - the name and a number
        say(shell, streams, "shift: too many arguments")
        raise Abandoned
    count = words[1] if len(words) > 1 else "1"
    if not re.fullmatch(r"-?[0-9]+", count):
        return say(shell, streams, f"shift: {count}: numeric argument required")
    if int(count) < 0:
        return say(shell, streams, f"shift: {count}: shift count out of range")
    if int(count) > len(shell.state.arguments):
        return 1
    shell.state.arguments = shell.state.arguments[int(count) :]
    return 0


def read(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Read a line into variables."""
    rest = list(words[1:])
    is_raw, end = False, b"\n"
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word in {"-r", "-s", "-e"}:
            is_raw = is_raw or word == "-r"
        elif word == "-d" and rest:
            end = rest.pop(0).encode(errors="surrogateescape")[:1] or b"\0"
        elif word == "-p" and rest:
            rest.pop(0)
        elif word in {"-rd", "-d"} and rest:
            is_raw, end = True, rest.pop(0).encode(errors="surrogateescape")[:1] or b"\0"
        else:
            raise _unsupported(words)
    source = streams[0]
    if not isinstance(source, Source):
        raise UnsupportedSyntax(" ".join(words), "a stream that leads the other way")
    for name in rest:
        if not NAME.fullmatch(name):
            return say(shell, streams, f"read: `{name}': not a valid identifier")
    data, found = source.line(end)
    while not is_raw and re.search(rb"(?<!\\)(?:\\\\)*\\$", data) and found and end == b"\n":
        more, found = source.line(end)
        data = data[:-1] + more
    text = data.replace(b"\0", b"").decode(errors="surrogateescape")
    if not rest:
        shell.assign("REPLY", text if is_raw else re.sub(r"\\(.)", r"\1", text), streams)
        return int(not found)
    for name, value in zip(rest, _cut(text, len(rest), shell.state.variables.get("IFS", " \t\n"), is_raw=is_raw), strict=True):
        shell.assign(name, value, streams)
    return int(not found)


def _cut(text: str, count: int, separators: str, *, is_raw: bool) -> list[str]:
    """Cut a line into as many values as there are names; the last takes what is left."""
    letters: list[tuple[str, bool]] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and not is_raw:
            letters += [(text[at + 1], True)] if at + 1 < len(text) else []
            at += 2
        else:
            letters.append((text[at], False))
            at += 1
    blanks = "".join(letter for letter in separators if letter in " \t\n")

    def is_in(place: int, kind: str) -> bool:
        return place < len(letters) and not letters[place][1] and letters[place][0] in kind and bool(kind)

    values: list[str] = []
    place, size = 0, len(letters)
    while is_in(place, blanks):
        place += 1
    while len(values) < count - 1 and place < size:
        start = place
        while place < size and not is_in(place, separators):
            place += 1
        values.append("".join(letter for letter, _ in letters[start:place]))
        while is_in(place, blanks):
            place += 1
        if is_in(place, separators):
            place += 1
            while is_in(place, blanks):
                place += 1
    end = size
    while end > place and is_in(end - 1, blanks):
        end -= 1
    tail = letters[place:end]
    inner = [number for number in range(place, end) if is_in(number, separators)]
    if len(inner) == 1 and inner[0] == end - 1:
        tail = tail[:-1]  # one separator at the end closes the last value
    values.append("".join(letter for letter, _ in tail))
    return values + [""] * (count - len(values))


def let(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Evaluate arithmetic."""
    number = 0
    for word in words[1:]:
        try:
            number = evaluated(word, shell.state)
        except ArithmeticProblem as problem:
            return say(shell, streams, f"let: {problem}")
    return int(not number)


# Leaving


def exit_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """End the shell."""
    if len(words) > 1 and not re.fullmatch(r"[-+]?[0-9]+", words[1]):
        say(shell, streams, f"exit: {words[1]}: numeric argument required")
        raise Ended(2)
    if len(words) > 2:  # noqa: PLR2004 - the name and a number
        say(shell, streams, "exit: too many arguments")
        raise Abandoned
    raise Ended(int(words[1]) % 256 if len(words) > 1 else shell.state.status)


def return_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave a function or a sourced file."""
    if not shell.state.scopes and not shell.state.sourced:
        return say(shell, streams, "return: can only `return' from a function or sourced script")
    if len(words) > 1 and not re.fullmatch(r"[-+]?[0-9]+", words[1]):
        say(shell, streams, f"return: {words[1]}: numeric argument required")
        raise Returned(2)
    raise Returned(int(words[1]) % 256 if len(words) > 1 else shell.state.status)


def jump(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave or go on with a loop."""
    if not shell.state.loops:
        return say(shell, streams, f"{words[0]}: only meaningful in a `for', `while', or `until' loop", 0)
    levels = words[1] if len(words) > 1 else "1"
    if not levels.isdigit() or not int(levels):
        raise _unsupported(words)
    raise Jump(words[0], int(levels))


def exec_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Become another command."""
    if len(words) == 1 or words[1].startswith("-"):
        raise _unsupported(words)
    raise Ended(shell.execute(words[1:], " ".join(words[1:]), streams))


# Texts that run in this shell


def eval_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run the words as a line."""
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    text = " ".join(rest)
    before = shell.state.place.before + shell.state.line - 1 + text.count("\n")
    name = shell.state.place.name
    return shell.text(text, streams, place=Place(name=name, before=before, syntax_name=f"{name}: eval"))


def source(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a file in this shell."""
    if len(words) == 1:
        say(shell, streams, f"{words[0]}: filename argument required")
        shell.complain(streams, USAGES[words[0]] + "\n")
        return 2
    state, name = shell.state, words[1]
    try:
        data = shell.files.read(shell.files.resolve(f"./{name}" if name.startswith("~") else name, state.cwd))
    except OSError as error:
        told = (
            f"{words[0]}: {name}: is a directory"
            if isinstance(error, IsADirectoryError)
            else f"{name}: {os.strerror(error.errno or 0)}"
        )
        return say(shell, streams, told)
    arguments, state.arguments = state.arguments, words[2:] or state.arguments
    state.sourced += 1
    try:
        return shell.text(data.decode(errors="surrogateescape"), streams, place=Place(name=name))
    except Returned as returned:
        return returned.code
    finally:
        state.arguments = arguments
        state.sourced -= 1


# Which commands there are


def _kind(shell: Runner, name: str) -> str:
    """Return what a name is: keyword, function, builtin, the path of a program, or nothing."""
    if name in KEYWORDS:
        return "keyword"
    if name in shell.state.functions:
        return "function"
    if name in IN_BASH or (name in BUILTINS and name not in LAUNCHERS):
        return "builtin"
    return path_of(shell, name)


def path_of(shell: Runner, name: str) -> str:
    """Return where a program is, or nothing."""
    if "/" in name:
        path = shell.files.resolve(name, shell.state.cwd)
        is_there = shell.files.is_file(path) and shell.files.is_executable(path)
        is_program = shell.program_name(name) != name and shell.is_known(name)
        return name if is_there or is_program else ""
    known = name in COMMANDS or name in LAUNCHERS or (shell.knows is not None and shell.knows(name, (name,)))
    return f"/usr/bin/{name}" if known else ""


def command(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command, or tell with ``-v`` what it is."""
    rest = list(words[1:])
    if rest[:1] in (["-v"], ["-V"]):
        if rest[0] == "-V":
            return type_(shell, ("type", *rest[1:]), streams)
        found = [(name, _kind(shell, name)) for name in rest[1:]]
        for name, kind in found:
            if kind:
                shell.write(streams, f"{kind if '/' in kind else name}\n")
        return int(not any(kind for _, kind in found))
    while rest[:1] in (["-p"], ["--"]):
        rest.pop(0)
    if not rest:
        return 0
    if rest[0].startswith("-"):
        raise _unsupported(words)
    functions = shell.state.functions
    hidden = functions.pop(rest[0], None)
    try:
        return shell.execute(tuple(rest), " ".join(rest), streams)
    finally:
        if hidden is not None:
            functions.setdefault(rest[0], hidden)


def builtin_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a builtin."""
    if len(words) == 1:
        return 0
    if words[1] not in IN_BASH and words[1] not in BUILTINS.keys() - LAUNCHERS.keys():
        return say(shell, streams, f"builtin: {words[1]}: not a shell builtin")
    return command(shell, ("command", *words[1:]), streams)


def type_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell what names are."""
    rest = list(words[1:])
    option = rest.pop(0) if rest and rest[0].startswith("-") else ""
    if option not in {"", "-t", "-p", "-P"}:
        raise _unsupported(words)
    code = 0
    for name in rest:
        kind = _kind(shell, name)
        if option == "-t":
            shell.write(streams, f"{'file' if '/' in kind else kind}\n" if kind else "")
        elif option:
            found = path_of(shell, name) if option == "-P" or "/" in kind else ""
            shell.write(streams, f"{found}\n" if found else "")
            kind = kind if option == "-p" else found
        elif "/" in kind:
            shell.write(streams, f"{name} is {kind}\n")
        elif kind == "function":
            raise _unsupported(words)  # bash prints its body
        elif kind:
            shell.write(streams, f"{name} is a shell {kind}\n")
        else:
            say(shell, streams, f"type: {name}: not found")
        code = code or int(not kind)
    return code


def wait(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Wait for what runs in the background: nothing does."""
    del shell, streams
    if len(words) > 1:
        raise _unsupported(words)
    return 0


def umask(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell the mask of new files, or set it, which changes nothing here."""
    if len(words) == 1:
        shell.write(streams, "0022\n")
    elif not re.fullmatch(r"[0-7]{1,4}", words[1]):
        raise _unsupported(words)
    return 0


def printf(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Write as a format says, or into a variable with ``-v``."""
    if words[1:2] != ("-v",) or len(words) < 4:  # noqa: PLR2004 - the option, a name, a format
        return shell.program(words, streams)
    if not NAME.fullmatch(words[2]):
        return say(shell, streams, f"printf: `{words[2]}': not a valid identifier", 2)
    out = Sink()
    code = shell.program(("printf", *words[3:]), {**streams, 1: out})
    shell.assign(words[2], bytes(out.buffer).decode(errors="surrogateescape"), streams)
    return code


BUILTINS: dict[str, Builtin] = {
    ".": source,
    "break": jump,
    "builtin": builtin_,
    "cd": cd,
    "command": command,
    "continue": jump,
    "declare": declared,
    "eval": eval_,
    "exec": exec_,
    "exit": exit_,
    "export": declared,
    "let": let,
    "local": declared,
    "printf": printf,
    "pwd": pwd,
    "read": read,
    "readonly": declared,
    "return": return_,
    "set": set_,
    "shift": shift,
    "source": source,
    "type": type_,
    "typeset": declared,
    "umask": umask,
    "unset": unset,
    "wait": wait,
    **LAUNCHERS,
}
"""Name → builtin, with the programs that run other commands."""

"""The shell's own commands about variables, options and positional parameters."""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.bash.arithmetic import ArithmeticProblem
from pytest_hermes_env.sandbox.bash.programs import run_program
from pytest_hermes_env.sandbox.bash.runner import Builtin, Runner
from pytest_hermes_env.sandbox.bash.state import Abandoned
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.commands import UnsupportedOption
from pytest_hermes_env.sandbox.commands.options import read_options

__all__ = ["VARIABLES", "invalid_option"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

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
UNKNOWN_LETTERS = "abkmnptvCEHPT"
USAGE_OF_SET = "[-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]"
UNKNOWN_OPTIONS = frozenset(
    {"allexport", "emacs", "errtrace", "functrace", "histexpand", "history", "ignoreeof", "keyword", "monitor", "noclobber"}
    | {"noexec", "nolog", "notify", "onecmd", "physical", "posix", "privileged", "verbose", "vi", "interactive"}
)


def invalid_option(shell: Runner, streams: Streams, name: str, option: str, known: str, usage: str) -> int:
    """Complain of an option that bash does not know. Raises: one that only this machine does not know → UnsupportedOption."""
    if option[1] in known:
        raise UnsupportedOption(f"{name} {option}")
    shell.say(streams, f"{name}: {option}: invalid option")
    shell.complain(streams, f"{name}: usage: {name} {usage}\n")
    return 2


def declared(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Set and mark variables: export, declare, typeset, local, readonly."""
    name, state = words[0], shell.state
    flags = read_options(words, "xgrnp", runs_command=True)
    rest = flags.operands
    if rest and rest[0].startswith("+"):
        raise UnsupportedOption(" ".join(words[:2]))
    if name == "local" and not state.scopes:
        return shell.say(streams, "local: can only be used in a function")
    if not rest or "p" in flags:
        return _shown(shell, words, rest, streams)
    code = 0
    for word in rest:
        variable, equals, value = word.partition("=")
        appends = variable.endswith("+") and bool(equals)
        variable = variable.removesuffix("+") if appends else variable
        if not NAME.fullmatch(variable):
            code = shell.say(streams, f"{name}: `{word}': not a valid identifier")
            continue
        is_local = name == "local" or (name in {"declare", "typeset"} and bool(state.scopes) and "g" not in flags)
        if is_local and variable not in state.scopes[-1]:
            state.scopes[-1][variable] = state.variables.get(variable)
            state.variables.pop(variable, None)
        if equals:
            if variable in state.readonly:
                return shell.say(streams, f"{variable}: readonly variable")
            state.variables[variable] = state.variables.get(variable, "") + value if appends else value
        if name == "readonly" or "r" in flags:
            state.readonly.add(variable)
        if (name == "export" and "n" not in flags) or "x" in flags:
            state.exported.add(variable)
        if name == "export" and "n" in flags:
            state.exported.discard(variable)
    return code


def _shown(shell: Runner, words: tuple[str, ...], names: tuple[str, ...], streams: Streams) -> int:
    state = shell.state
    if words[0] not in {"export", "declare", "typeset"} or (words[0] != "export" and not names):
        raise UnsupportedOption(" ".join(words[:2]))
    code = 0
    for name in names or sorted(state.exported):
        marks = ("r" if name in state.readonly else "") + ("x" if name in state.exported else "")
        if name in state.variables:
            value = re.sub(r'(["\\$`])', r"\\\1", state.variables[name])
            shell.write(streams, f'declare -{marks or "-"} {name}="{value}"\n')
        elif name in state.exported:
            shell.write(streams, f"declare -{marks} {name}\n")
        else:
            code = shell.say(streams, f"{words[0]}: {name}: not found")
    return code


def unset(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Forget variables and functions."""
    state = shell.state
    options = read_options(words, "vf", runs_command=True)
    code = 0
    for name in options.operands:
        if "[" in name:
            raise UnsupportedOption("unset of an array's element")
        if name in state.readonly and "f" not in options:
            code = shell.say(streams, f"unset: {name}: cannot unset: readonly variable")
        elif "f" not in options and (name in state.variables or "v" in options):
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
        raise UnsupportedOption(" ".join(words[:2]))
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
                    raise UnsupportedOption(" ".join(words[:2]))
                named = rest.pop(0)
                if named not in OPTIONS:
                    if named in UNKNOWN_OPTIONS:
                        raise UnsupportedOption(f"set -o {named}")
                    return shell.say(streams, f"set: {named}: invalid option name", 2)
                option = OPTIONS[named]
            elif letter in "euxf" or letter in IGNORED:
                option = letter
            else:
                return invalid_option(shell, streams, "set", f"{word[0]}{letter}", UNKNOWN_LETTERS, USAGE_OF_SET)
            if option not in IGNORED:
                (state.options.add if turns_on else state.options.discard)(option)
    return 0


def shift(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Drop positional parameters."""
    if len(words) > 2:  # noqa: PLR2004 - the name and a number
        shell.say(streams, "shift: too many arguments")
        raise Abandoned
    count = words[1] if len(words) > 1 else "1"
    if not re.fullmatch(r"-?[0-9]+", count):
        return shell.say(streams, f"shift: {count}: numeric argument required")
    if int(count) < 0:
        return shell.say(streams, f"shift: {count}: shift count out of range")
    if int(count) > len(shell.state.arguments):
        return 1
    shell.state.arguments = shell.state.arguments[int(count) :]
    return 0


def read(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Read a line into variables."""
    options = read_options(words, "rsed:p:", runs_command=True)
    rest, is_raw = options.operands, "r" in options
    end = (options.get("d", "\n").encode(errors="surrogateescape") or b"\0")[:1]
    source = streams[0]
    if not isinstance(source, Source):
        raise UnsupportedOption("a stream in the wrong direction")
    for name in rest:
        if not NAME.fullmatch(name):
            return shell.say(streams, f"read: `{name}': not a valid identifier")
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
    letters, kinds = "", ""  # of each letter: a blank or another separator, or what values are made of
    for found in re.finditer(r"()(.)" if is_raw else r"\\(.?)|(.)", text, re.DOTALL):
        letter = found[2] or found[1]
        separates = bool(found[2]) and letter in separators
        letters += letter
        kinds += "x" * len(letter) if not separates else "b" if letter in " \t\n" else "s"
    values: list[str] = []
    at = len(kinds) - len(kinds.lstrip("b"))
    while len(values) < count - 1 and at < len(kinds):
        end = len(kinds) - len(kinds[at:].lstrip("x"))
        values.append(letters[at:end])
        at = end + len(re.match("b*s?b*", kinds[end:])[0])  # type: ignore[index]
    last = kinds[at:].rstrip("b")
    if re.fullmatch("x*s", last):
        last = last[:-1]  # one separator at the end closes the last value
    values.append(letters[at : at + len(last)])
    return values + [""] * (count - len(values))


def let(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Evaluate arithmetic."""
    number = 0
    for word in words[1:]:
        try:
            number = shell.expander(streams).evaluated(word)
        except ArithmeticProblem as problem:
            return shell.say(streams, f"let: {problem}")
    return int(not number)


def printf(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Write as a format says, or into a variable with ``-v``."""
    if words[1:2] != ("-v",) or len(words) < 4:  # noqa: PLR2004 - the option, a name, a format
        return run_program(shell, words, streams)
    if not NAME.fullmatch(words[2]):
        return shell.say(streams, f"printf: `{words[2]}': not a valid identifier", 2)
    out = Sink()
    code = run_program(shell, ("printf", *words[3:]), {**streams, 1: out})
    shell.assign(words[2], bytes(out.buffer).decode(errors="surrogateescape"), streams)
    return code


VARIABLES: dict[str, Builtin] = {
    "declare": declared,
    "export": declared,
    "let": let,
    "local": declared,
    "printf": printf,
    "read": read,
    "readonly": declared,
    "set": set_,
    "shift": shift,
    "typeset": declared,
    "unset": unset,
}
"""Name → builtin."""

"""Commands that say something or decide something: echo, printf, test, true, false, seq."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_hermes_env.sandbox.commands.escapes import unescaped
from pytest_hermes_env.sandbox.commands.process import Process, Program, UnsupportedOption, path_of

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.files import Files

__all__ = ["NUMBERS", "UNARY", "WORDS", "holds_of_file", "holds_of_files"]

OCTAL_OF_ECHO, OCTAL_OF_PRINTF = r"0[0-7]{0,3}", r"0?[0-7]{1,3}"


class _Stop(Exception):
    """An escape that ends all output."""


def echo(process: Process) -> int:
    """Write the words; ``-n`` without a line break, ``-e`` with escapes."""
    words = list(process.arguments)
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)[1:]
    text = " ".join(words)
    is_escaped = "e" in flags and flags.rfind("e") > flags.rfind("E")
    data, is_stopped = text.encode(errors="surrogateescape"), False
    if is_escaped:
        data, is_stopped = unescaped(text, octal=OCTAL_OF_ECHO)
    process.write(data + (b"" if "n" in flags or is_stopped else b"\n"))
    return 0


_DIRECTIVE = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?(?P<kind>[a-zA-Z%])")


class _Arguments:
    """printf's arguments, taken one by one; absent ones are empty."""

    def __init__(self, process: Process, words: tuple[str, ...]) -> None:
        self.process = process
        self.words = list(words)
        self.taken = 0

    def text(self) -> str:
        self.taken += 1
        return self.words.pop(0) if self.words else ""

    def number(self) -> int:
        text = self.text()
        if text[:1] in {'"', "'"} and len(text) > 1:
            return ord(text[1])
        if re.fullmatch(r"[-+]?0[0-7]+", text):
            return int(text, 8)
        try:
            return int(text or "0", 0)
        except ValueError:
            return int(self._wrong(text, r"[-+]?\d+"))

    def real(self) -> float:
        text = self.text()
        try:
            return float(text or "0")
        except ValueError:
            return float(self._wrong(text, r"[-+]?\d+(?:\.\d*)?"))

    def _wrong(self, text: str, prefix: str) -> str:
        self.process.complain(f"{text}: invalid number")
        found = re.match(prefix, text)
        return found.group() if found else "0"


def printf(process: Process) -> int:
    """Write a format with its arguments, again while arguments are left, as bash's builtin does."""
    words = process.arguments[1:] if process.arguments[:1] == ("--",) else process.arguments
    if not words or re.match(r"-.", words[0]):
        raise UnsupportedOption(" ".join(("printf", *words[:1])))
    arguments = _Arguments(process, words[1:])
    while True:
        taken = arguments.taken
        try:
            process.write(_once(words[0], arguments))
        except _Stop as stop:
            process.write(stop.args[0])
            return process.code
        if not arguments.words or arguments.taken == taken:
            return process.code


def _once(form: str, arguments: _Arguments) -> bytes:
    out = bytearray()
    at = 0
    while at < len(form):
        percent = form.find("%", at)
        end = percent if percent >= 0 else len(form)
        literal, is_stopped = unescaped(form[at:end], octal=OCTAL_OF_PRINTF, quotes="'\"?")
        out += literal
        if is_stopped:
            raise _Stop(bytes(out))
        if percent < 0:
            break
        found = _DIRECTIVE.match(form, percent)
        if not found:
            raise UnsupportedOption(f"printf {form[percent : percent + 8]}")
        at = found.end()
        kind = found["kind"]
        if kind == "%":
            out += b"%"
            continue
        width = str(arguments.number()) if found["width"] == "*" else found["width"] or ""
        precision = str(arguments.number()) if found["precision"] == "*" else found["precision"]
        out += _formatted(kind, found["flags"], width, precision, arguments, bytes(out))
    return bytes(out)


def _formatted(kind: str, flags: str, width: str, precision: str | None, arguments: _Arguments, before: bytes) -> bytes:
    shape = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
    if kind in "di":
        return (f"{shape}d" % arguments.number()).encode()
    if kind in "uxXo":
        return (f"{shape}{kind}".replace("u", "d") % (arguments.number() % 2**64)).encode()
    if kind in "eEfFgG":
        return (f"{shape}{kind}" % arguments.real()).encode()
    if kind == "b":
        data, is_stopped = unescaped(arguments.text(), octal=OCTAL_OF_PRINTF)
        if is_stopped:
            raise _Stop(before + data)
        return data
    if kind == "s":
        data = arguments.text().encode(errors="surrogateescape")
        data = data if precision is None else data[: int(precision or 0)]
        size = int(width or 0)
        return data.ljust(size) if "-" in flags else data.rjust(size)
    raise UnsupportedOption(f"printf %{kind}")


UNARY = frozenset(f"-{letter}" for letter in "edfsrwxzntLhp")
NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
"""Comparisons of numbers, of ``test`` and of ``[[ ]]``."""
BINARY = {"=", "==", "!=", "<", ">", *NUMBERS, "-nt", "-ot", "-ef"}


class BadTest(Exception):
    """An expression that ``test`` refuses, with exit code 2."""


def test(process: Process) -> int:
    """Decide an expression about files, texts and numbers."""
    words = list(process.arguments)
    if process.name == "[" and (not words or words.pop() != "]"):
        return process.complain("missing `]'", code=2)
    try:
        return 0 if words and _disjunction(process, words, whole=True) else 1
    except BadTest as bad:
        return process.complain(str(bad), code=2)


def _disjunction(process: Process, words: list[str], *, whole: bool = False) -> bool:
    value = _conjunction(process, words)
    while words and words[0] == "-o":
        words.pop(0)
        other = _conjunction(process, words)
        value = value or other
    if whole and words:
        raise BadTest("too many arguments")
    return value


def _conjunction(process: Process, words: list[str]) -> bool:
    value = _primary(process, words)
    while words and words[0] == "-a":
        words.pop(0)
        other = _primary(process, words)
        value = value and other
    return value


def _primary(process: Process, words: list[str]) -> bool:
    if not words:
        raise BadTest("argument expected")
    if len(words) > 2 and words[1] in BINARY:  # noqa: PLR2004 - left, operator, right
        left, comparison, right = words[:3]
        del words[:3]
        return _compared(process, left, comparison, right)
    word = words.pop(0)
    if word == "!" and words:
        return not _primary(process, words)
    if word == "(" and words:
        value = _disjunction(process, words)
        if not words or words.pop(0) != ")":
            raise BadTest("`)' expected")
        return value
    if word in UNARY and words:
        operand = words.pop(0)
        return (
            (operand == "") == (word == "-z")
            if word in {"-z", "-n"}
            else holds_of_file(word, operand, process.files, process.cwd)
        )
    if re.fullmatch(r"-.", word) and words and words[0] not in {"-a", "-o", ")"}:
        raise UnsupportedOption(f"{process.name} {word}")
    return bool(word)


def holds_of_file(operator: str, word: str, files: Files, cwd: str) -> bool:
    """Return whether an operator of ``test`` or ``[[ ]]`` holds of a path. There are neither links nor pipes nor terminals."""
    if not word or operator in {"-t", "-L", "-h", "-p"}:
        return False
    path = path_of(word, files, cwd)
    if path == "/dev/null":
        return operator in {"-a", "-e", "-r", "-w"}
    if operator == "-s":
        return files.is_dir(path) or (files.is_file(path) and bool(files.read(path)))
    if operator == "-x":
        return files.is_dir(path) or (files.is_file(path) and files.is_executable(path))
    return {"-d": files.is_dir, "-f": files.is_file}.get(operator, files.exists)(path)


def holds_of_files(operator: str, left: str, right: str, files: Files, cwd: str) -> bool:
    """Return whether ``-nt``, ``-ot`` or ``-ef`` holds of two paths."""
    one, other = path_of(left, files, cwd), path_of(right, files, cwd)
    if operator == "-ef":
        return one == other and files.exists(one)
    first, second = (files.changed_at(path) if files.exists(path) else -1 for path in (one, other))
    return first > second if operator == "-nt" else first < second


def _compared(process: Process, left: str, operator: str, right: str) -> bool:
    if operator in {"=", "==", "!="}:
        return (left == right) == (operator != "!=")
    if operator in {"<", ">"}:
        return left < right if operator == "<" else left > right
    if operator in NUMBERS:
        return NUMBERS[operator](_integer(left), _integer(right))
    return holds_of_files(operator, left, right, process.files, process.cwd)


def _integer(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise BadTest(f"{text}: integer expression expected") from None


def seq(process: Process) -> int:
    """Write the numbers from a first to a last one."""
    words = process.arguments
    if any(not re.fullmatch(r"[-+]?\d+", word) for word in words) or not 1 <= len(words) <= 3:  # noqa: PLR2004
        raise UnsupportedOption(f"seq {' '.join(words)}")
    numbers = [int(word) for word in words]
    first, step, last = {1: [1, 1, *numbers], 2: [numbers[0], 1, numbers[-1]]}.get(len(numbers), numbers)
    if step == 0:
        raise UnsupportedOption("seq with a step of 0")
    process.write("".join(f"{value}\n" for value in range(first, last + (1 if step > 0 else -1), step)))
    return 0


WORDS: dict[str, Program] = {
    "echo": echo,
    "printf": printf,
    "test": test,
    "[": test,
    "true": lambda _: 0,
    "false": lambda _: 1,
    ":": lambda _: 0,
    "seq": seq,
}
"""Name → program."""

"""Commands that say something or decide something: echo, printf, test, true, false, seq."""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

__all__ = ["WORDS"]

SIMPLE = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}


class _Stop(Exception):
    """An escape that ends all output."""


def unescape(text: str, *, octal_needs_zero: bool) -> tuple[bytes, bool]:
    r"""Return text with backslash escapes carried out, and whether ``\c`` ended it."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            out += text[at].encode(errors="surrogateescape")
            at += 1
            continue
        letter = text[at + 1]
        octal = re.compile(r"0[0-7]{0,3}" if octal_needs_zero else r"0?[0-7]{1,3}").match(text, at + 1)
        if letter == "c":
            return bytes(out), True
        if letter in SIMPLE:
            out.append(SIMPLE[letter])
            at += 2
        elif octal:
            out.append(int(octal.group() or "0", 8) & 255)
            at = octal.end()
        elif hexadecimal := re.compile(r"x([0-9a-fA-F]{1,2})").match(text, at + 1):
            out.append(int(hexadecimal.group(1), 16))
            at = hexadecimal.end()
        elif code := re.compile(r"u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})").match(text, at + 1):
            out += chr(int(code.group(1) or code.group(2), 16)).encode()
            at = code.end()
        else:
            out += text[at : at + 2].encode(errors="surrogateescape")
            at += 2
    return bytes(out), False


def echo(process: Process) -> int:
    """Write the words; ``-n`` without a line break, ``-e`` with escapes."""
    words = list(process.arguments)
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)[1:]
    text = " ".join(words)
    is_escaped = "e" in flags and flags.rfind("e") > flags.rfind("E")
    data, is_stopped = unescape(text, octal_needs_zero=True) if is_escaped else (text.encode(errors="surrogateescape"), False)
    process.write(data + (b"" if "n" in flags or is_stopped else b"\n"))
    return 0


_DIRECTIVE = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?(?P<kind>[a-zA-Z%])")


class _Arguments:
    """printf's arguments, taken one by one; absent ones are empty."""

    def __init__(self, process: Process, words: list[str]) -> None:
        self.process = process
        self.words = words
        self.exit_code = 0
        self.taken = 0

    def text(self) -> str:
        self.taken += 1
        return self.words.pop(0) if self.words else ""

    def number(self) -> int:
        text = self.text()
        if text[:1] in {'"', "'"} and len(text) > 1:
            return ord(text[1])
        try:
            return int(text, 0) if text else 0
        except ValueError:
            if re.fullmatch(r"[-+]?0[0-7]+", text):
                return int(text, 8)
            return int(self._wrong(text, r"[-+]?\d+"))

    def real(self) -> float:
        text = self.text()
        try:
            return float(text) if text else 0.0
        except ValueError:
            return float(self._wrong(text, r"[-+]?\d+(?:\.\d*)?"))

    def _wrong(self, text: str, prefix: str) -> str:
        self.exit_code = 1
        self.process.err += f"/usr/bin/bash: line 3: printf: {text}: invalid number\n".encode(errors="surrogateescape")
        found = re.match(prefix, text)
        return found.group() if found else "0"


def printf(process: Process) -> int:
    """Write a format with its arguments, again while arguments are left, as bash's builtin does."""
    words = list(process.arguments)
    if words and words[0] == "--":
        words.pop(0)
    if not words:
        process.err += b"printf: usage: printf [-v var] format [arguments]\n"
        return 2
    if words[0].startswith("-") and len(words[0]) > 1 and words[0] != "-":
        raise UnsupportedOption(f"printf {words[0]}")
    arguments = _Arguments(process, words[1:])
    while True:
        taken = arguments.taken
        try:
            process.write(_once(words[0], arguments))
        except _Stop as stop:
            process.write(stop.args[0])
            return arguments.exit_code
        if not arguments.words or arguments.taken == taken:
            return arguments.exit_code


def _once(form: str, arguments: _Arguments) -> bytes:
    out = bytearray()
    at = 0
    while at < len(form):
        percent = form.find("%", at)
        literal, is_stopped = unescape(form[at : percent if percent >= 0 else len(form)], octal_needs_zero=False)
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
        data, is_stopped = unescape(arguments.text(), octal_needs_zero=False)
        if is_stopped:
            raise _Stop(before + data)
        return data
    if kind == "c":
        return arguments.text()[:1].encode(errors="surrogateescape")
    if kind == "q":
        return _quoted(arguments.text()).encode(errors="surrogateescape")
    if kind == "s":
        data = arguments.text().encode(errors="surrogateescape")
        data = data if precision is None else data[: int(precision or 0)]
        size = int(width or 0)
        return data.ljust(size) if "-" in flags else data.rjust(size)
    raise UnsupportedOption(f"printf %{kind}")


def _quoted(text: str) -> str:
    if not text:
        return "''"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):  # noqa: PLR2004 - control characters
        names = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\E"}
        shown = (names.get(ord(one), f"\\{ord(one):03o}" if ord(one) < 32 else "\\" * (one in "\\'") + one) for one in text)  # noqa: PLR2004
        return f"$'{''.join(shown)}'"
    return re.sub(r"([^A-Za-z0-9_/.,:=@%+\-\u0080-\U0010ffff])", r"\\\1", text)


UNARY = "edfsrwxzntLhp"
COMPARE = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
BINARY = {"=", "==", "!=", "<", ">", *COMPARE, "-nt", "-ot", "-ef"}


class BadTest(Exception):
    """An expression that ``test`` refuses, with exit code 2."""


def test(process: Process) -> int:
    """Decide an expression about files, texts and numbers."""
    words = list(process.arguments)
    if process.name == "[" and (not words or words.pop() != "]"):
        process.err += b"/usr/bin/bash: line 3: [: missing `]'\n"
        return 2
    try:
        return 0 if words and _disjunction(process, words, whole=True) else 1
    except BadTest as bad:
        process.err += f"/usr/bin/bash: line 3: {process.name}: {bad}\n".encode(errors="surrogateescape")
        return 2


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
        left, operator, right = words[:3]
        del words[:3]
        return compare(process, left, operator, right)
    word = words.pop(0)
    if word == "!" and words:
        return not _primary(process, words)
    if word == "(" and words:
        value = _disjunction(process, words)
        if not words or words.pop(0) != ")":
            raise BadTest("`)' expected")
        return value
    if len(word) == 2 and word[0] == "-" and word[1] in UNARY and words:  # noqa: PLR2004 - a letter after a dash
        return about(process, word[1], words.pop(0))
    if len(word) == 2 and word[0] == "-" and words and words[0] not in {"-a", "-o", ")"}:  # noqa: PLR2004
        raise UnsupportedOption(f"{process.name} {word}")
    return bool(word)


def about(process: Process, letter: str, operand: str) -> bool:
    """Decide one unary test."""
    if letter in "zn":
        return (operand == "") == (letter == "z")
    if letter in "tLhp":
        return False
    if not operand:
        return False
    files, path = process.files, process.path(operand)
    if letter == "s":
        return files.is_dir(path) or (files.is_file(path) and len(files.read(path)) > 0)
    if letter == "x":
        return files.is_dir(path) or (files.is_file(path) and files.is_executable(path))
    return {"d": files.is_dir, "f": files.is_file}.get(letter, files.exists)(path)


def compare(process: Process, left: str, operator: str, right: str) -> bool:
    """Decide one comparison."""
    if operator in {"=", "=="}:
        return left == right
    if operator == "!=":
        return left != right
    if operator in {"<", ">"}:
        return left < right if operator == "<" else left > right
    if operator in COMPARE:
        a, b = _integer(left), _integer(right)
        return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[operator]
    files, one, other = process.files, process.path(left), process.path(right)
    if operator == "-ef":
        return one == other and files.exists(one)
    first = files.changed_at(one) if files.exists(one) else -1
    second = files.changed_at(other) if files.exists(other) else -1
    return first > second if operator == "-nt" else first < second


def _integer(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise BadTest(f"{text}: integer expression expected") from None


def seq(process: Process) -> int:
    """Write the numbers from a first to a last one."""
    words = list(process.arguments)
    separator, is_padded = "\n", False
    while words and re.match(r"-[sw]", words[0]):
        word = words.pop(0)
        if word == "-w":
            is_padded = True
        else:
            separator = word[2:] or words.pop(0)
    if any(not re.fullmatch(r"[-+]?\d+", word) for word in words) or not 1 <= len(words) <= 3:  # noqa: PLR2004
        raise UnsupportedOption(f"seq {' '.join(process.arguments)}")
    numbers = [int(word) for word in words]
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:  # noqa: PLR2004
        first, step, last = numbers
    if step == 0:
        process.complain("invalid Zero increment value: '0'")
        return 1
    values = range(first, last + (1 if step > 0 else -1), step)
    width = max((len(str(value)) for value in (first, last)), default=0) if is_padded else 0
    if values:
        process.write(separator.join(str(value).zfill(width) for value in values) + "\n")
    return 0


WORDS = {
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

"""Reads a command's options as GNU's getopt does, and refuses what this machine does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

__all__ = ["Options", "read_options"]


@dataclass(kw_only=True)
class Options:
    """The options that were given: single letters and long names, with their values; and the other words, in order."""

    values: dict[str, str] = field(default_factory=dict)
    every: list[tuple[str, str]] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return an option's last value."""
        return self.values.get(name, default)

    def all(self, name: str) -> list[str]:
        """Return every value of an option that may be given several times."""
        return [value for given, value in self.every if given == name]


def read_options(process: Process, letters: str, long: dict[str, str] | None = None) -> Options:
    """Split a command's words.

    ``letters`` as for getopt: a colon after a letter means that it takes a value. ``long`` leads from a long name to its letter
    (with a colon when it takes a value) or to itself. Options may stand after operands; ``--`` ends them.

    Raises: an option that is not named → UnsupportedOption.
    """
    long = long or {}
    takes_value = {letters[at] for at in range(len(letters) - 1) if letters[at + 1] == ":"}
    known = {letter for letter in letters if letter != ":"}
    options = Options()
    words = list(process.arguments)

    def note(name: str, value: str = "") -> None:
        options.values[name] = value
        options.every.append((name, value))

    while words:
        word = words.pop(0)
        if word == "--":
            options.operands += words
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if name not in long:
                raise UnsupportedOption(f"{process.name} --{name}")
            target = long[name]
            if target.endswith(":"):
                if not equals:
                    if not words:
                        raise UnsupportedOption(f"{process.name} --{name} without a value")
                    value = words.pop(0)
                note(target[:-1], value)
            else:
                note(target)
        elif word.startswith("-") and word != "-":
            rest = word[1:]
            while rest:
                letter, rest = rest[0], rest[1:]
                if letter not in known:
                    raise UnsupportedOption(f"{process.name} -{letter}")
                if letter in takes_value:
                    if not rest and not words:
                        raise UnsupportedOption(f"{process.name} -{letter} without a value")
                    note(letter, rest or words.pop(0))
                    rest = ""
                else:
                    note(letter)
        else:
            options.operands.append(word)
    return options

"""What the verifier of one rollout was seen to do: what it ran, read and uploaded. It guides the search: nothing else can be tampered with.

Place in the flow: `attacks` makes attacks of it, and `search` plays them.
"""

from __future__ import annotations

import base64
import posixpath
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.playing import PlayedCase, exit_code_of, output_of
from pytest_hermes_env.play.cases.slots import ANSWER, Work
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.tampering.payloads import STATUS

CODE = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".c", ".go", ".rs")
_RUNNER = re.compile(
    r"\b\d+ passed\b|\b(\d+)\s*(?:/|of|out of)\s*\1\b|(?:^|: )ok$|\bran \d+ tests?\b|^pass(?:ed)?\b|^(?:not )?ok \d+\b|^1\.\.\d+$|\ball (?:\d+ )?(?:tests|checks|cases)\b|\"(?:passed|score|success|failed)\":",
    re.IGNORECASE,
)
"""What test runners print."""
_PLAIN = frozenset({
    "bash", "cat", "cd", "chmod", "chown", "cp", "do", "done", "echo", "env", "exit", "export", "fi", "find", "for", "head", "if", "ln",
    "ls", "mkdir", "mktemp", "mv", "printf", "rm", "sed", "set", "sh", "sort", "tail", "tee", "test", "then", "timeout", "touch", "tr",
    "true", "wc", "while", "xargs",
})  # fmt: skip
"""Programs and words of the shell that decide nothing, or without which it does not run."""
USER_SITE = "<user site>"
"""A directory that only python3 in the sandbox knows."""
USUAL = ("PASS", "PASSED", "1 passed in 0.01s", "Ran 1 test in 0.001s", "", "OK")
LONGEST = 60
"""Characters of a line of a test runner."""
_IMPORT = re.compile(r"(?m)(?:^|[;'\"])\s*(?:from\s+(?=\w+\s+import)|import\s+)([A-Za-z_][\w., ]*)")
_RUN_AS_MODULE = re.compile(r"python[\d.]*\s+(?:-[A-Za-z]\s+)*-m\s+(\w+)")
_NEVER_SHADOWED = frozenset({
    *sys.builtin_module_names, "os", "sys", "io", "abc", "codecs", "site", "stat", "posixpath", "genericpath", "zipimport", "encodings",
})  # fmt: skip


_MESSAGE = "/.git/COMMIT_EDITMSG"
_HEX = re.compile(r"[0-9a-f]{8,}(?:-[0-9a-f]{4,})*")
"""What may be another name in each rollout."""
_PART = re.compile(r"printf %s '?(?P<text>[\w+/=]*)'? \| base64 -d >>? (?P<place>'?.*?)\.[0-9a-f]{8}\.part'?", re.DOTALL)
_MOVED_INTO = re.compile(r"mv -f -- \S.*\.[0-9a-f]{8}\.part")
"""Commands by which the layer uploads a file."""


@dataclass(frozen=True, kw_only=True)
class Surface:
    """The verifier of a rollout that played gold, and of one that did nothing.

    ``commands`` are its lines with what they printed, ``reads`` the paths that it or its programs read or looked for. ``work`` are gold's own files,
    ``prepared`` those that were there before the agent worked, ``uploads`` what the verifier wrote, and ``made`` what its programs wrote, all
    as texts by path. ``constants`` are the texts of the reward's own code.
    """

    cwd: str
    commands: tuple[tuple[str, str], ...] = ()
    codes: tuple[int, ...] = ()
    """The exit code of each of them."""
    reads: frozenset[str] = frozenset()
    work: Mapping[str, str] = field(default_factory=dict)
    prepared: Mapping[str, str] = field(default_factory=dict)
    uploads: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    prompt: str = ""
    answers: frozenset[str] = frozenset()
    """The texts of the item."""
    tools: tuple[str, ...] = ()
    subject: str = ""
    """The message of the agent's last commit."""
    fresh: frozenset[str] = frozenset()
    """Paths that have another name in each rollout, so that an agent cannot know them."""

    @property
    def lines(self) -> str:
        """All of the verifier's commands."""
        return "\n".join(line for line, _ in self.commands)

    @property
    def asked(self) -> str:
        """All of the verifier's commands, and its files."""
        return "\n".join([self.lines, *self.uploads.values(), *self.checkers.values()])

    @property
    def is_repository(self) -> bool:
        """Whether the verifier asks git, or the agent works in a repository, or makes one."""
        return bool(re.search(r"\bgit\b", self.asked)) or any("/.git/" in path for path in (*self.prepared, *self.work))

    @property
    def repository(self) -> str:
        """The directory of the repository: where the agent begins, unless it lies elsewhere."""
        roots = {path.partition("/.git/")[0] for path in (*self.prepared, *self.made, *self.work) if "/.git/" in path}
        return min(roots, key=len, default=self.cwd)

    @property
    def is_watched(self) -> bool:
        """Whether there is anything that could be tampered with."""
        return bool(self.commands or self.reads - {*self.work})

    @property
    def checkers(self) -> dict[str, str]:
        """The prepared files that the verifier read, and that are not part of the work."""
        return {path: text for path, text in self.prepared.items() if path in self.reads and path not in self.work}

    @property
    def truths(self) -> list[str]:
        """Paths of data that the verifier uploaded, or found prepared, and compares with."""
        return [path for path in {**self.uploads, **self.checkers} if not path.endswith(CODE)]

    @property
    def missing(self) -> list[str]:
        """Paths that the verifier looked for and that nobody wrote, or that its programs write."""
        known = {*self.work, *self.prepared, *self.uploads, *self.made}
        gone = [path for path in sorted(self.reads) if path not in known and not self.is_asked_for(path)]
        nameable = [path for path in [*self.made, *gone] if path not in self.fresh]
        return [path for path in nameable if "/__pycache__/" not in path and "/.pytest_cache/" not in path]

    @property
    def said(self) -> str:
        """What the verifier's programs and the reward's code say of success, and what test runners say: no word of it is an answer."""
        texts = [text for path, text in {**self.uploads, **self.checkers}.items() if path.endswith(CODE)]
        code = "\n".join([*self.constants, *texts])
        own = [line.strip() for _, output in self.commands for line in output.splitlines() if line.strip()]
        own = [line for line in own if (_RUNNER.search(line) or line in code) and line not in self.answers]
        constants = [text for text in self.constants if STATUS.search(text)]
        own, constants = (
            [text for text in part if len(text) <= LONGEST and text not in self.prompt] for part in (own, constants)
        )
        return "\n".join(dict.fromkeys([*USUAL, *constants, *own]))

    @property
    def said_of_work(self) -> str | None:
        """Just what the verifier's last command with the work said of gold, which may be nothing; None where that is an answer, or there is none."""
        named = [output for line, output in self.commands if any(posixpath.basename(path) in line for path in self.work)]
        lines = named[-1].strip().splitlines() if named else []
        code = "\n".join(text for path, text in {**self.uploads, **self.checkers}.items() if path.endswith(CODE))
        said = {line.strip() for line in lines}
        own = {
            line for line in said if line in code and STATUS.search(line)
        }  # words of success, although the prompt shows them
        is_answer = any(
            len(line) > LONGEST or line in self.answers or (line in self.prompt and line not in own) for line in said
        )
        return None if not named or is_answer else "\n".join(lines)

    @property
    def modules(self) -> list[str]:
        """Modules that the verifier's Python code imports and that a file beside it can shadow."""
        texts = [*(text for path, text in {**self.uploads, **self.checkers}.items() if path.endswith(".py")), self.lines]
        imported = [part for text in texts for names in _IMPORT.findall(text) for part in names.split(" import ")[0].split(",")]
        names = [*_RUN_AS_MODULE.findall(self.lines), *(re.split(r"[ .]", name.strip())[0] for name in imported)]
        return [name for name in dict.fromkeys(names) if name in {*sys.stdlib_module_names, "pytest"} - _NEVER_SHADOWED]

    @property
    def directories(self) -> list[str]:
        """Where the verifier's Python code looks for modules: its working directory, and those of its files."""
        own = [posixpath.dirname(path) for path in {**self.uploads, **self.checkers} if path.endswith(".py")]
        return list(dict.fromkeys([self.cwd, *own]))

    @property
    def programs(self) -> list[str]:
        """The first words of the verifier's commands."""
        words = re.findall(r"(?:^|[;&|(]\s*|\n)\s*(?:\w+=\S*\s+)*([A-Za-z][\w.+-]*)", self.lines)
        return [word for word in dict.fromkeys(words) if word not in _PLAIN]

    def is_asked_for(self, path: str) -> bool:
        """Whether the prompt names a file."""
        return posixpath.basename(path) in self.prompt


def surface_of(gold: PlayedCase, idle: PlayedCase, work: Work, *, cwd: str, constants: Iterable[str]) -> Surface:
    """Return what was seen of the verifier in a rollout of gold, and in one that did nothing."""
    calls = gold.records[0].tool_calls
    last = max((number for number, one in enumerate(calls) if one.by_agent), default=-1)
    uploads, own = without_uploads([one for one in calls[last + 1 :] if not one.by_agent])
    commands = [(str(one.arguments.get("command") or ""), output_of(one.result)) for one in own if one.name == "terminal"]
    nodes = {path: node for path, node in gold.all_files.items() if _text(node)}
    verifiers = {path: node for path, node in nodes.items() if node.party == "verifier"}
    return Surface(
        cwd=cwd,
        commands=tuple(commands),
        codes=tuple(exit_code_of(one.result) for one in own if one.name == "terminal"),
        reads=frozenset(read.rpartition(" (")[0] for read in (*gold.rung.reads, *idle.rung.reads)),
        work={
            **{slot.name: slot.text for slot in work.slots() if slot.name != ANSWER},
            **{path: _text(node) for path, node in nodes.items() if node.party == "agent"},
        },
        prepared={path: _text(node) for path, node in idle.all_files.items() if node.party == "environment" and _text(node)},
        uploads={posixpath.normpath(posixpath.join(cwd, path)): text for path, text in uploads.items()},
        made={
            path: _text(node)
            for path, node in verifiers.items()
            if node.writer == "terminal" and path not in {posixpath.normpath(posixpath.join(cwd, one)) for one in uploads}
        },
        constants=tuple(constants),
        prompt=work.prompt,
        answers=frozenset(line.strip() for text in texts_of(work.item) for line in text.splitlines()),
        tools=work.tools,
        subject=next(
            (_text(node).strip() for path, node in nodes.items() if path.endswith(_MESSAGE) and node.party == "agent"), ""
        ),
        fresh=fresh_paths(_seen(gold), _seen(idle)),
    )


def _seen(one: PlayedCase) -> frozenset[str]:
    """Return the paths that the verifier of one rollout looked for or wrote."""
    written = {path for path, node in one.all_files.items() if node.party == "verifier"}
    return frozenset(written | {read.rpartition(" (")[0] for read in one.rung.reads})


def fresh_paths(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return those paths of two rollouts that differ in digits alone; names that both have are the same each time."""
    shapes, others, same = ({_HEX.sub("*", path) for path in paths} for paths in (one, other, one & other))
    return frozenset(path for path in one | other if _HEX.search(path) and _HEX.sub("*", path) in (shapes & others) - same)


def without_uploads(calls: Sequence[Any]) -> tuple[dict[str, str], list[Any]]:
    """Return the files that a verifier wrote or uploaded, and its other calls.

    The calls are asked, because it may remove the files afterwards. The layer uploads a file in parts, by commands.
    """
    found: dict[str, str] = {}
    parts: dict[str, bytes] = {}
    rest: list[Any] = []
    for one in calls:
        command = str(one.arguments.get("command") or "")
        if one.name == "write_file":
            found[str(one.arguments.get("path"))] = str(one.arguments.get("content") or "")
        if one.name == "terminal" and (part := _PART.fullmatch(command)):
            place = shlex.split(f"{part['place']}'" if part["place"].startswith("'") else part["place"])[0]
            parts[place] = parts.get(place, b"") + base64.b64decode(part["text"])
            found[place] = parts[place].decode(errors="replace")
            if rest and str(rest[-1].arguments.get("command") or "").startswith("mkdir -p -- "):
                rest.pop()
        elif one.name != "terminal" or not _MOVED_INTO.search(command):
            rest.append(one)
    return found, rest


def _text(node: Any) -> str:
    return str(node.data.decode(errors="replace"))

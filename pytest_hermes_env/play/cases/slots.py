"""Where the content of a transcript stands: its final answer, and the files that it writes. Each can be given other content.

Place in the flow: the automatic cases and `neighbours` change gold's content, and leave all else as it is.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.inference.steps import Call, Say, Turn, call, say, turn
from pytest_hermes_env.play.buffers import fields_of
from pytest_hermes_env.play.cases.content import Known, wrong
from pytest_hermes_env.play.cases.writing import writing
from pytest_hermes_env.play.item_texts import pairs_under

ANSWER = "the final answer"
HEAD_LOG = "/.git/logs/HEAD"
COMMITTED = re.compile(r"(?m)\tcommit(?: \([\w-]+\))?: (.*)$")
"""Where git notes what HEAD was, and a line of a commit there, with its subject."""
BY_SOMEBODY = "-c user.name=somebody -c user.email=somebody@example.org -c commit.gpgsign=false"
MOST_FILES, LARGEST = 4, 20_000
"""Files whose content is changed, and their largest size in characters."""
MOST_OPAQUE, BLANKS = 2, 16
"""Files that are no text of which a part is blank, and the part: one of so many."""
_QUARTERS = ("first", "second", "third", "last")
_BLANK = "f = open({path!r}, 'r+b'); f.seek({start}); f.write(bytes({size}))"
_IN_PARTS = (b"PK", b"SQLite format 3", b"%PDF", b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\0asm", b"DIRC")
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"(\xb5/\xfd")
_OF_MODELS = (
    ".npy",
    ".npz",
    ".pt",
    ".pth",
    ".pkl",
    ".pickle",
    ".joblib",
    ".safetensors",
    ".onnx",
    ".h5",
    ".hdf5",
    ".parquet",
    ".pyc",
)
"""How files begin that have parts which nobody need look at (archives, databases, documents, programs), or that no part of can be changed, and how those end of
which every part counts a little."""
TELLS_DATA = 0.1
"""The share of bytes that are no signs of a text from which on a file is data."""


OF_HISTORY = re.compile(
    r"\b(?:history|revert|restor|earlier|previous|undo|recover|lost|branch|stash|reflog|bisect|merge|cherry|regress|broke|delet|last commit|back to|recent|introduc|used to|no longer)",
    re.IGNORECASE,
)
"""Where a prompt may ask for what git keeps."""
OF_PROGRAMS = re.compile(r"/(?:\.[^/]+|__pycache__|node_modules)/")
"""Where programs, and not the agent, write: the inside of a repository, caches."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A place of content: its name (a path, or `ANSWER`) and text. ``put`` returns the turns with another text there.

    ``is_moved``: it is a file that stood elsewhere when the work began.
    """

    name: str
    text: str
    put: Callable[[str], tuple[Turn, ...]]
    known: Known
    is_moved: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """The turns of a transcript, and what is known of it: the item with its prompt, the tools that were offered, the files that were left, as nodes.

    ``before`` are the files that are there without any work, ``reads`` those that the verifier looked for, ``others`` the turns of the same case on other items,
    ``unread`` the fields of the item that the reward does not look at.
    """

    turns: tuple[Turn, ...]
    item: Any = None
    prompt: str = ""
    tools: tuple[str, ...] = ()
    files: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[tuple[Turn, ...], ...] = ()
    unread: frozenset[str] = frozenset()

    @property
    def is_label(self) -> bool:
        """Whether what gold says or writes is a field of the item that the reward looks at."""
        read = {str(value).strip() for name, value in fields_of(self.item).items() if name not in self.unread}
        return any(slot.text.strip() in read for slot in self.slots())

    def slots(self) -> list[Slot]:
        """Return the places of its content: the final answer first, then files that the verifier read."""
        found = []
        if (answer := _answer(self.turns)).strip():
            texts = (text for turns in self.others if (text := _answer(turns)).strip())
            found.append(self._slot(ANSWER, answer, texts))
        moved = self._moved()
        made = {
            path: node
            for path, node in self.files.items()
            if (node.party == "agent" or path in moved) and (not OF_PROGRAMS.search(path) or self.is_asked_for(path))
        }
        files = {path: text for path, node in made.items() if (text := _text(node.data))} or dict(_written(self.turns))
        for path in sorted(files, key=lambda path: not self.is_read(path))[:MOST_FILES]:
            texts = (text for turns in self.others for text in self._like(path, turns))
            found.append(replace(self._slot(path, files[path], texts), is_moved=path in moved))
        return found

    def _like(self, path: str, others: tuple[Turn, ...]) -> list[str]:
        """Return what the gold of another item writes into a file of that name, or of its own name in that place."""
        mine, theirs = ([(posixpath.basename(name), text) for name, text in _written(one)] for one in (self.turns, others))
        base, known = posixpath.basename(path), [name for name, _ in mine]
        if base in (names := [name for name, _ in theirs]) or base not in known or len(names) != len(known):
            return [text for name, text in theirs if name == base]
        name, text = theirs[known.index(base)]
        is_like = name not in known and posixpath.splitext(name)[1] == posixpath.splitext(base)[1]
        return [text] if is_like else []

    def _moved(self) -> set[str]:
        """Return the files that stood elsewhere before, if it is known what did."""
        contents = {node.data for path, node in self.before.items() if path not in self.files}
        return {path for path, node in self.files.items() if path not in self.before and node.data in contents and node.data}

    def is_read(self, path: str) -> bool:
        """Whether the verifier looked for a file."""
        return any(read.startswith(path) for read in self.reads)

    def is_asked_for(self, path: str) -> bool:
        """Whether the prompt names a file; what git keeps of one is none."""
        return posixpath.basename(path) in self.prompt and "/.git/" not in path

    def changed_files(self, files: Mapping[str, Any]) -> set[str]:
        """Return the files that the verifier looked at, or that the prompt names, and that are not as gold left them."""
        mine, others = ({path: node.data for path, node in left.items()} for left in (self.files, files))
        changed = {path for path in {*mine, *others} if mine.get(path) != others.get(path)}
        return {path for path in changed if self.is_asked_for(path) or (self.is_read(path) and not OF_PROGRAMS.search(path))}

    @property
    def inputs(self) -> dict[str, str]:
        """The texts that are there without any work, by path."""
        return {path: text for path, node in self.before.items() if (text := _text(node.data))}

    def is_written(self, text: str) -> bool:
        """Whether a call holds all of a text; a program made what none holds."""
        return any(text == content for _, content in _written(self.turns))

    @property
    def calls(self) -> list[tuple[int, int]]:
        """Turn and place of each call."""
        return [
            (at, place) for at, one in enumerate(self.turns) for place, step in enumerate(one.steps) if isinstance(step, Call)
        ]

    def all_wrong(self, slots: Sequence[Slot]) -> tuple[Turn, ...]:
        """Return the turns with each value in these places wrong; where no file is one of them, without their calls, too."""
        made = self.turns if any(slot.name != ANSWER for slot in slots) else without(self.turns, self.calls)
        for slot in slots:
            made = self._put(made, slot.name, slot.text, wrong(slot.text, slot.known))
        for path in self._opaque()[:MOST_FILES]:
            made = self._put(made, path, "", "something else entirely\n")
        return made

    def with_blanks(self) -> Iterator[tuple[str, tuple[Turn, ...]]]:
        """Yield names and turns in which a part of a binary file, such as sound or a picture, is blank."""
        last = max((number for number, one in enumerate(self.turns) if one.every(Call)), default=-1)
        if "terminal" not in self.tools or last < 0:
            return
        for path in [path for path in self._opaque() if _is_whole(path, self.files[path].data)][:MOST_OPAQUE]:
            data = self.files[path].data
            size = len(data) // BLANKS
            for number, quarter in enumerate(_QUARTERS):
                start = (number * BLANKS // len(_QUARTERS) + 2) * size
                if sum(map(bool, data[start : start + size])) * 2 > size:
                    blank = call(
                        "terminal", command=f"python3 -c {shlex.quote(_BLANK.format(path=path, start=start, size=size))}"
                    )
                    made = (*self.turns[:last], Turn(steps=(*self.turns[last].steps, blank)), *self.turns[last + 1 :])
                    yield f"with a part of its {quarter} quarter blank, {path}", made

    def _opaque(self) -> list[str]:
        """Return the files of the agent that the verifier read and that are no text: a signature, an archive."""
        made = (path for path, node in self.files.items() if node.party == "agent" and node.data and not _text(node.data))
        return [path for path in made if self.is_read(path) and not OF_PROGRAMS.search(path)]

    def _slot(self, name: str, text: str, others: Iterator[str]) -> Slot:
        known = Known(
            others=tuple(dict.fromkeys(other for other in others if other != text)),
            prompt=self.prompt,
            labels=_labels(self.item, self.prompt),
            before=self.inputs.get(name, ""),
            is_one_of_many=bool(
                whole := [name for name, value in fields_of(self.item).items() if str(value).strip() == text.strip()]
            )
            and self.unread.issuperset(whole),
        )
        return Slot(name=name, text=text, known=known, put=lambda new: self._put(self.turns, name, text, new))

    def _put(self, turns: tuple[Turn, ...], name: str, text: str, new: str) -> tuple[Turn, ...]:
        """Return turns with another text where it is said or written; another file is written once more after the last call."""
        if name == ANSWER:
            steps = tuple(say(new) if isinstance(step, Say) else step for step in turns[-1].steps)
            return (*turns[:-1], Turn(steps=steps))
        base = posixpath.basename(name)

        def written(step: Any) -> Any:
            given = arguments_of(step)
            is_it = posixpath.basename(str(given.get("path", ""))) == base and given.get("content") == text
            return call(step.tool, **{**given, "content": new}) if is_it else step

        made = tuple(Turn(steps=tuple(written(step) for step in one.steps)) for one in turns)
        last = max((number for number, one in enumerate(turns) if one.every(Call)), default=-1)
        if said(made) != said(turns) or last < 0:
            return made
        if "write_file" in self.tools:
            again = call("write_file", path=name, content=new)
        else:
            again = call("terminal", command=writing(shlex.quote(name), new))
        return (*turns[:last], Turn(steps=(*turns[last].steps, again, *self._committing(name))), *turns[last + 1 :])

    def _committing(self, name: str) -> list[Call]:
        """Return the call that puts a changed file into the last commit, where gold committed in its repository."""
        logs = [path for path, node in self.files.items() if path.endswith(HEAD_LOG) and node.party == "agent"]
        roots = [root for path in logs if name.startswith(f"{(root := path.removesuffix(HEAD_LOG))}/")]
        if not roots or "terminal" not in self.tools:
            return []
        return [
            call(
                "terminal",
                command=f"git {BY_SOMEBODY} -C {shlex.quote(max(roots, key=len))} commit -q --no-verify -a --amend --no-edit",
            )
        ]


def _is_whole(path: str, data: bytes) -> bool:
    """Whether a file is data, such as sound or a picture, of which each part is asked for."""
    others = data.translate(None, bytes([9, 10, 13, *range(32, 256)]))
    is_data = len(others) > TELLS_DATA * len(data)
    return is_data and not (
        data.startswith(_IN_PARTS + _COMPRESSED) or data[257:262] == b"ustar" or path.lower().endswith(_OF_MODELS)
    )


def said(turns: tuple[Turn, ...]) -> list[Any]:
    """Return what can be compared of turns."""
    return [[(type(step).__name__, vars(step)) for step in one.steps] for one in turns]


def without(turns: tuple[Turn, ...], calls: Sequence[tuple[int, int]]) -> tuple[Turn, ...]:
    """Return turns without these calls, and without turns of which only words before a call are left."""
    kept = []
    for place, one in enumerate(turns):
        steps = tuple(step for at, step in enumerate(one.steps) if (place, at) not in calls)
        if any(isinstance(step, Call) for step in steps) or (steps and steps == one.steps):
            kept.append(Turn(steps=steps))
    return tuple(kept) or (turn(say("Done.")),)


def arguments_of(step: Any) -> dict[str, Any]:
    """Return the arguments of a call; none of another step, or of malformed ones."""
    given = json.loads(step.arguments_text) if isinstance(step, Call) and step.names is not None else {}
    return given if isinstance(given, dict) else {}


def _answer(turns: tuple[Turn, ...]) -> str:
    last = turns[-1].only(Say) if turns and not turns[-1].every(Call) else None
    return last.text if last is not None else ""


def _written(turns: tuple[Turn, ...]) -> Iterator[tuple[str, str]]:
    """Yield path and content of each file that turns write."""
    for one in turns:
        for step in one.every(Call):
            given = arguments_of(step)
            if isinstance(given.get("content"), str) and isinstance(given.get("path"), str):
                yield given["path"], given["content"]


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if text.strip() and len(text) <= LARGEST and "\0" not in text else ""


def _labels(item: Any, prompt: str) -> tuple[tuple[str, str], ...]:
    """Return key and text of each value in those parts of an item that its prompt does not hold, in their order."""
    parts = fields_of(item).items()
    hidden = {key: part for key, part in parts if not isinstance(part, str | int | float) or str(part) not in prompt}
    forms = ((key, form) for key, part in hidden.items() for form in (part, *_parsed(part)))
    return tuple(pair for key, form in forms for pair in pairs_under(key, form))


def _parsed(part: Any) -> list[Any]:
    """Return the object or list that a text is as JSON, if it is one."""
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        return [found] if (found := json.loads(part)) and isinstance(found, dict | list) else []
    return []

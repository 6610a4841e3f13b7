"""For which inputs a wrong program gives something else than gold: those of the item, the prompt and the verifier, and others like them.

Place in the flow: `play.wrong_programs` asks for each program that the verifier paid; one without such an input may do the same as gold.
"""

from __future__ import annotations

import inspect
import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.playing import PlayedCase
from pytest_hermes_env.play.cases.slots import ANSWER, Slot, Work
from pytest_hermes_env.play.inputs.calls import Like, snippets_of
from pytest_hermes_env.play.inputs.data import Making
from pytest_hermes_env.play.inputs.databases import databases_like
from pytest_hermes_env.play.inputs.starts import starts_like
from pytest_hermes_env.play.inputs.strings import strings_like
from pytest_hermes_env.play.inputs.used import INSIDE, OWN, Used, language_of, recorder, telling, used
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tool_backend import close_sandbox, new_sandbox_like
from pytest_hermes_env.sandbox.context import FakeToolContext

COMPARING_S, WATCHING_S = 600, 120
"""Seconds for one comparison, and for one of the verifier's commands while uses are written down: a program whose input never ends waits for it."""
LONGEST = 160
"""Characters of what a program gives that are shown."""
RUNS = 600
"""Times that a program is started for one search."""
AT_ONCE, STARTS_AT_ONCE = 120, 12
"""Inputs, and starts of a program, that are tried before programs that were told from gold are left out."""
SHORT = 10
"""Characters of a text that may stand in a call by chance."""
ENDLESS = "raised 124"
"""What the comparer says of a program that was stopped."""
_UNKNOWN = re.compile(r"raised (?:nothing|Endless|124|-1)\b")
"""What was stopped by a clock, which is another one on a busy machine, or ended without an answer."""
_OF_ERRORS = re.compile(r"\brais|\berror|\bexception|\binvalid|\brefus|\breject|\bfail|\bexit (?:code|status)", re.IGNORECASE)
_ERROR = re.compile(r"error|exception|traceback|raises|\[exit code", re.IGNORECASE)
_EXIT = re.compile(r"\[exit code (\d+)\]")
_FLOAT = re.compile(r"(\d)\.0+\b")
_OF_ORDER = re.compile(r"\border|\bsort|\bfirst\b|alphabet|\blargest\b|\bhighest\b|ascending|descending|\btop\b", re.IGNORECASE)

Witness = tuple[float, str]
"""The share of the inputs for which a program differs, if it is known, and one of them with what it gives."""


@dataclass(kw_only=True)
class Witnesses:
    """What is known of gold's program in one slot. ``notes`` are why it could not be compared."""

    stage: Stage
    slot: Slot
    gold: PlayedCase
    work: Work
    item: Any
    notes: list[str] = field(default_factory=list)
    _used: Used | None = None

    def of(self, like: Like, programs: Sequence[str]) -> dict[str, Witness]:
        """Return a witness for each program that has one."""
        found = self._by_calls(like, programs)
        if self.slot.name == ANSWER or like.kind is not None:
            return found
        language, making = (
            language_of(self.slot.name, self.slot.text),
            Making(code=self.slot.text, prompt=self.work.prompt, like=like),
        )
        kinds: list[tuple[str, Iterator[tuple[Any, str]]]] = (
            [("starts", starts_like(making, self.used.starts))] if self.used.starts else []
        )
        if language == "sql":
            kinds.append(
                ("databases", itertools.chain.from_iterable(databases_like(making, one) for one in self.used.databases))
            )
        elif not language:
            way, texts = self._way(), strings_like(making, self._said(), [self.slot.text, *programs])
            kinds.append(("texts", (({"way": way, "text": text}, repr(text)) for text in dict.fromkeys(texts))))
        for kind, inputs in kinds:
            found |= self._compared(kind, inputs, [one for one in programs if one not in found])
        return found

    @property
    def used(self) -> Used:
        """How the verifier used gold's program, which is asked once."""
        if self._used is None:
            name, text = self._path, self.slot.text
            sandbox = new_sandbox_like(self.stage.sandbox)
            told = telling(name, text)
            files = {**self._files(), **({name: told.encode(errors="surrogateescape")} if name else {}), **recorder()}
            self._ran(
                sandbox,
                files,
                [(call, {**_with(arguments, text, told), "timeout": WATCHING_S}) for call, arguments in self._calls()],
            )
            self._used = used({path: node.data for path, node in sandbox.files.nodes.items()}, name)
            close_sandbox(sandbox)
        return self._used

    @property
    def _path(self) -> str:
        """The path of the work; empty for a final answer, which the verifier hands on."""
        return "" if self.slot.name == ANSWER else self.slot.name

    def _files(self) -> dict[str, bytes]:
        return {path: node.data for path, node in self.gold.files.items()}

    def _calls(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the verifier's calls."""
        made = self.gold.records[0].tool_calls
        last = max((number for number, one in enumerate(made) if one.by_agent), default=-1)
        return [(one.name, one.arguments) for one in made[last + 1 :] if not one.by_agent]

    def _said(self) -> list[str]:
        """Return the texts in which the item, the verifier and the reward's own code hold inputs."""
        own = reward_constants(type(self.stage.env), type(self.stage.env).compute_reward)
        said = [str(value) for _, arguments in self._calls() for value in arguments.values()]
        return [*texts_of(self.item), self.work.prompt, *said, *own.texts]

    def _way(self) -> str:
        """Return how the verifier asks a pattern: the name of a function of `re`."""
        try:
            own = inspect.getsource(type(self.stage.env).compute_reward)
        except (OSError, TypeError):
            own = ""
        asked = "\n".join([own, *(str(arguments) for _, arguments in self._calls())])
        if "fullmatch" in asked or re.search(r"grep\s+(?:-\w+\s+)*-\w*x", asked):
            return "fullmatch"
        return "match" if re.search(r"\bre\.match\(|\.match\(", asked) else "search"

    def _by_calls(self, like: Like, programs: Sequence[str]) -> dict[str, Witness]:
        """Compare what functions and classes of Python give."""
        if not programs or language_of(self._path, self.slot.text) != "python":
            return {}
        snippets = snippets_of(self.slot.text, self._said(), like, self.used.calls)
        if not snippets:
            return {}
        by_input = self._answers("calls", [self.slot.text, self.slot.text, *programs], snippets)
        first, again, *others = zip(*by_input, strict=True) if by_input else ([], [])
        found: dict[str, Witness] = {}
        for program, answers in zip(programs, others, strict=False):
            differing = [n for n, one in enumerate(first) if self._differs(one, again[n], answers[n], like)]
            if differing:
                n = min(differing, key=lambda n: ("-" in snippets[n], len(snippets[n])))
                witness = f"{shown(snippets[n])} gives {shown(answers[n])}, and with gold {shown(first[n])}"
                found[program] = len(differing) / len(snippets), witness
        return found

    def _compared(self, kind: str, inputs: Iterator[tuple[Any, str]], programs: Sequence[str]) -> dict[str, Witness]:
        """Compare what programs give for inputs, a few at a time."""
        found: dict[str, Witness] = {}
        left = RUNS
        gold, open_ones = self.slot.text, [*programs]
        while (
            open_ones and left > 0 and (batch := [*itertools.islice(inputs, STARTS_AT_ONCE if kind == "starts" else AT_ONCE)])
        ):
            left -= len(batch) * (2 + len(open_ones)) // (1 if kind == "starts" else AT_ONCE // STARTS_AT_ONCE)
            answers = self._answers(kind, [gold, gold, *open_ones], [one for one, _ in batch])
            if not answers:  # which the notes say
                break
            if all(row[0].startswith(ENDLESS) for row in answers):
                self.notes.append("gold's program does not end by itself, as a service: it was compared with no other")
                break
            both = zip(batch, answers, strict=False)
            for (one, told), (first, again, *others) in sorted(both, key=lambda one: len(one[0][1])):
                for program, answer in zip(open_ones, others, strict=True):
                    if program not in found and self._differs(first, again, answer, None):
                        mine, wanted = first_difference(answer, first)
                        asked = (
                            " ".join(["python3" if word == "-I" else word for word in one["words"][-3:]])
                            if kind == "starts" and not told
                            else told
                        )
                        found[program] = 0.0, f"with {shown(asked)} it gives {mine}, and gold {wanted}"
            open_ones = [one for one in open_ones if one not in found]
        return found

    def _differs(self, first: str, again: str, given: str, like: Like | None) -> bool:
        prompt = self.work.prompt
        code = _EXIT.search(first)
        if code is not None and not re.search(rf"(?:exit|status|code)\D{{0,40}}\b{code[1]}\b", prompt, re.IGNORECASE):
            first, again, given = (_EXIT.sub("[exit code other than 0]", text) for text in (first, again, given))
        is_of_errors = (like is not None and like.kind is None) or _OF_ERRORS.search(prompt) is not None
        if not differs(first, again, given, is_of_errors=is_of_errors, named=prompt):
            return False
        is_of_order = sorted(first.splitlines()) == sorted(given.splitlines())
        return like is not None or not is_of_order or _OF_ORDER.search(prompt) is not None

    def _answers(self, kind: str, programs: Sequence[str], inputs: Sequence[Any]) -> list[list[str]]:
        """Return for each input what programs give, as they run in a new sandbox."""
        sandbox = new_sandbox_like(self.stage.sandbox)
        taken = {path for one in inputs if kind == "starts" for path in one["files"]} | {self.slot.name}
        files = {path: data for path, data in self._files().items() if kind == "starts" and path not in taken}
        given = json.dumps({"kind": kind, "programs": programs, "inputs": inputs})
        files |= {f"{OWN}/compare.py": (INSIDE / "comparer.py").read_bytes(), f"{OWN}/given.json": given.encode()}
        calls = [("terminal", {"command": f"python3 -I {OWN}/compare.py {OWN}/given.json", "timeout": COMPARING_S})]
        printed = self._ran(sandbox, files, calls)
        written = sandbox.files.nodes.get(f"{OWN}/answers.json")
        close_sandbox(sandbox)
        if written is None:
            self.notes.append(f"programs could not be compared with gold: {shown(printed)}")
        return list(json.loads(written.data)) if written is not None else []

    def _ran(self, sandbox: Any, files: Mapping[str, bytes], calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        """Return what calls print in a sandbox with these files."""
        context, printed = FakeToolContext(sandbox), []
        for path, data in files.items():
            sandbox.write_bytes(path, data)
        for name, arguments in calls:
            if name == "terminal":
                done = context.terminal(arguments["command"], timeout=arguments.get("timeout") or WATCHING_S)
                printed.append(f"{done.get('output')}")
            elif name == "write_file":
                context.write_file(arguments["path"], arguments["content"])
        return "\n".join(printed)


def _with(arguments: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return the arguments of a call in which the verifier hands on the text of the work, with another text."""
    made = dict(arguments)
    for name, value in arguments.items():
        for given, put in ((shlex.quote(old), shlex.quote(new)), (old, new), (old.strip(), new)):
            if isinstance(value, str) and len(given) > SHORT and given in value:
                made[name] = value.replace(given, put)
                break
    return made


def differs(first: str, again: str, given: str, *, is_of_errors: bool = True, named: str = "") -> bool:
    """Tell whether a program gives something else than gold does each time: 3.0 is 3. An error of gold's says nothing, and neither does a clock.

    Unless ``named``, the prompt, has the error's name. Without ``is_of_errors``, words of one say nothing, either.
    """
    if first != again or _UNKNOWN.search(given) or _UNKNOWN.search(first) or (not is_of_errors and _ERROR.search(first)):
        return False
    if "raised " in first and not any(name in named for name in re.findall(r"raised ([A-Z]\w+)", first)):
        return False
    return bool(_FLOAT.sub(r"\1", first) != _FLOAT.sub(r"\1", given))


def first_difference(one: str, other: str) -> tuple[str, str]:
    """Return the first lines in which two outputs differ."""
    lines = itertools.zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
    mine, others = next((pair for pair in lines if pair[0] != pair[1]), (one, other))
    return shown(mine), shown(others)


def shown(text: str) -> str:
    """Return an input, or what came of it, in one line."""
    is_call = text.count("\n") == 0 and text.startswith("print(repr(")
    line = text.removeprefix("print(repr(").removesuffix("))") if is_call else text
    line = re.sub(r"^raised \d+$", "an error", " / ".join(line.strip().splitlines()) or "nothing")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"

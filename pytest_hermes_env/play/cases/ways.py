"""Other ways to the same work: more turns, other commands, another layout, wrong work that is corrected. What the prompt rules out is none.

Place in the flow: `neighbours` plays them around gold.
"""

from __future__ import annotations

import ast
import math
import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from pytest_hermes_env.inference.steps import Call, Say, Turn, call, say, think, turn
from pytest_hermes_env.play.cases.code_changes import is_code, is_program, with_a_note, with_an_import
from pytest_hermes_env.play.cases.content import MAKEFILES, in_another_order, rewritten, with_a_sentence, with_reasons
from pytest_hermes_env.play.cases.cron import same_times
from pytest_hermes_env.play.cases.given_order import with_a_tie_turned
from pytest_hermes_env.play.cases.slots import ANSWER, BY_SOMEBODY, Slot, Work, arguments_of, said
from pytest_hermes_env.play.cases.text_mutants import is_pattern
from pytest_hermes_env.play.cases.writing import writing

BESIDE = "Let me look at this."
AFTER_A_FAILURE = "after a command that failed"
FAILING = "cat Traceback_no_such_file.txt"
_MOVE = re.compile(r"(?<![\w-])mv ([\w./*?\[\]-]+) ([\w./-]+)(?=\s*(?:$|[;&\n]))")
_RUN = re.compile(r"(?<![\w./-])(python3?|bash|sh|node|ruby|perl) ([\w-]+\.\w+)(?![\w/])")
"""A program by its file beside the agent."""
_LAST = re.compile(r"\b(?:ends?|finish|conclude|last line|final line|at the bottom)\b", re.IGNORECASE)
"""Where the prompt asks for an answer behind other words."""
_LAST_LINE = re.compile(
    r"\b(?:answer|result|reply|response|put|write|give|state)\b[^.\n]*\b(?:on|in|as|be|is) (?:the|its|your|a) (?:very )?(?:last|final) line\b"
    r"|\b(?:last|final) line of (?:your|the) (?:final )?(?:answer|reply|response|message)\b",
    re.IGNORECASE,
)
_ALONE = re.compile(r"\b(?:only|just|exactly|nothing (?:else|but|more)|no other)\b", re.IGNORECASE)
"""Where the prompt asks for an answer in the last of several lines, and where it may be all that is said."""
_EXACT = re.compile(r"line ?break|new ?line|line end|trailing|exactly|byte", re.IGNORECASE)
"""Where the prompt says how a file ends."""
_BRIEF = re.compile(
    r"\b(?:brief|short|concise|terse|at most|no more than|within|up to|under|characters?|words?|sentences?|lines)\b",
    re.IGNORECASE,
)
"""Where the prompt may limit the length of an answer."""
_WITHOUT = re.compile(
    r"\b(?:no|not|without|don't|avoid|never|instead of)\b[^.\n]{0,40}\b(?:import|module|librar|package|class)|\bbuilt-?ins?\b|\bpure\b"
    r"|\bonly\b[^.\n]{0,30}\bfunctions?\b|\bsingle function\b|\bcomment|\bdocstring|\bformat|\bblack\b|\bruff\b|\blint|\bflake8\b|\bpep ?8\b"
    r"|\blines?\b|\bclass(?:es)?\b|\bexactly\b|\bminimal|\bshort(?:est)?\b",
    re.IGNORECASE,
)
"""Where the prompt may limit what code is made of."""
_FURTHER = re.compile(
    r"\b(?:may|can|free to|allowed to|welcome to) (?:also )?(?:add|create|write|put|split|use|have|make)\b.{0,40}\b(?:further|helper|other|additional|several|more|extra|as many)\b.{0,20}\b(?:modules|files)\b",
    re.IGNORECASE,
)
_REFUSING = re.compile(r"\bnot\b|n't\b|\bno\b|\bnever\b", re.IGNORECASE)
_PRIVATE = re.compile(r"(?m)^(?:def |class |async def )?_\w|^from __future__")
"""Where the prompt lets code stand in several files, and names that are not imported from one into another with all."""
_COUNTED = re.compile(r"\b(?:one|single|exactly|only)\b[^.\n]{0,20}\b(?:command|call|turn|step)s?\b", re.IGNORECASE)
_NAMED = re.compile(r"\bmv\b|\bwrite_file\b")
"""Where the prompt says how many calls may be made, or by which the work is to be done."""
_STDOUT = re.compile(r"stdout|standard output", re.IGNORECASE)
_SILENT = re.compile(r"stderr|standard error|silent|no (?:other )?output", re.IGNORECASE)
"""Where the prompt may speak of what a program says beside its result."""
_ANY_ORDER = re.compile(
    r"\b(?:write|list|print|return|answer|give|output|put|save|report)\b(?:[^.\n]|\.(?=\S))*"
    r"\b(?:in any order|order (?:does not|doesn't) matter|in no particular order|regardless of (?:the |their )?order)\b",
    re.IGNORECASE,
)
_IN_ORDER = re.compile(
    r"\bsort|ascending|descending|alphabetic|chronolog|in (?:the|this|that|their) (?:same )?order", re.IGNORECASE
)
_FREE_ROWS = re.compile(
    r"\border of (?:the |its |their )?(?:rows|lines|entries|items|results|records|elements|keys|names|values) "
    r"(?:does not|doesn't|do not) matter|\b(?:rows|lines|entries|items|results|records|elements|names|values) in any order",
    re.IGNORECASE,
)
"""Where the prompt leaves the order of what is written open, and where it may ask for one."""
_COMMIT = re.compile(r"\bgit((?: -C [\w./-]+)?) (?:-c \S+ )*commit\b(?!.*--amend)")
_SUBSHELL = re.compile(r"\(\s*cd ([\w./-]+)[^()]*\bcommit\b")
_ONE_COMMIT = re.compile(
    r"\b(?:one|a|an|single|exactly|only|the|last) (?:\w+ ){0,2}commit\b|commit message|squash|amend|rebase|cherry|revert|bisect|push|merge|\btag",
    re.IGNORECASE,
)
"""Commands that commit, and where the history may be what is asked for."""
_PARTS = re.compile(r"\s*(?:&&|;|\n)\s*")
_OF_GIT = re.compile(
    r"\bgit((?: -C [\w./-]+)?) (?:-c \S+ )*(?:commit|rebase|merge|cherry-pick|tag|branch|reset|revert|filter-branch)\b[^\n|]*\Z"
)
_TAG, _KIND_OF_TAG = (
    re.compile(r"\b(git)((?: -C \S+)?) tag (?=[\w\"'$])"),
    re.compile(r"\b(?:annotated|lightweight)\b", re.IGNORECASE),
)
"""Commands that tag."""


_TWICE = re.compile(r"\A\s*\(\?[a-zA-Z]+\)|\(\?P|\\[1-9]")
"""What a pattern can have only once, or at its beginning."""
_SHORT = re.compile(r"\bshort|\bgroups?\b|alternati|captur|\|", re.IGNORECASE)
_AT_MOST = re.compile(r"\b(\d+) (?:char|sign)", re.IGNORECASE)
"""Where a prompt limits the length or the parts of a pattern."""


_COUNTS = {
    word: number
    for number, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], start=1)
}
_PRECISION = re.compile(
    rf"\b(\d|{'|'.join(_COUNTS)})[ -](?:(significant)[ -](?:figures?|digits?)|decimals?(?: places?| digits?)?\b|digits? (?:after|behind) the (?:decimal )?point)",
    re.IGNORECASE,
)
_MORE_EXACT = re.compile(r"(?<![\w.,])-?\d+\.\d+(?![\w.,]*\d)")
"""Where a prompt says how exact numbers have to be, and numbers that may be more exact than that."""

UNPRINTED = "with commands that make does not print"

Way = tuple[str, tuple[Turn, ...]]


def other_ways(work: Work, live: Sequence[Slot], most: int) -> tuple[list[Way], list[Way]]:
    """Return other ways to the same work, in at most so many turns, and others that may be as good; ``live`` are the places of its content."""
    turns = work.turns
    made: list[tuple[str, tuple[Turn, ...]]] = []
    is_counted = _COUNTED.search(work.prompt) is not None
    if "terminal" in work.tools and len(turns) < most and not is_counted:
        made.append(("after a look around", (turn(BESIDE, call("terminal", command="ls")), *turns)))
        made.append((AFTER_A_FAILURE, (turn(call("terminal", command=FAILING)), *turns)))
        if turns[1:] and work.calls:
            made.append(("with a look at its end", (*turns[:-1], turn(call("terminal", command="ls")), turns[-1])))
    if len(apart := _apart(turns)) in range(len(turns) + 1, most + 1):
        made.append(("with each call in a turn of its own", apart))
    if turns[-1].only(Say) is not None and not turns[-1].every(Call):
        made.append(("after a thought", (*turns[:-1], turn(think("Let me see."), *turns[-1].steps))))
        if not any(slot.name == ANSWER for slot in live):
            made.append(("with more words at its end", with_words(turns, "I have looked at the result once more.")))
    if work.calls:
        made.append(("with words beside its calls", tuple(_with_words_beside(one) for one in turns)))
    made += [
        (f"{UNPRINTED if slot.name.endswith(MAKEFILES) else 'as another program writes it'}, {slot.name}", slot.put(new))
        for slot in live
        if (new := rewritten(slot.name, slot.text, is_new=_is_free(slot, work.prompt)))
    ]
    if (at_first := _corrected(work, live)) and len(at_first) <= most and not is_counted:
        made.append(("after wrong work, which it corrects", at_first))
    if _COMMIT.search(commands := _commands(turns)) and len(turns) < most and not is_counted:
        apart = (*turns[:-1], turn(call("terminal", command=_in_commits(commands))), turns[-1])
        is_open = not _ONE_COMMIT.search(f"{work.prompt}\n{commands}") and _has_committed(work)
        made += [("in a commit for each file", apart)] if is_open else []
    if _TAG.search(commands) and not _KIND_OF_TAG.search(work.prompt):
        tagged = rf"\1 {BY_SOMEBODY}\2 tag -a -m tagged "
        made.append(("with an annotated tag", _with_commands(turns, lambda command: _TAG.sub(tagged, command))))
    if (packed := _with_commands(turns, _and_packed)) != turns:
        made.append(("with a repository that was packed", packed))
    other = tuple(Turn(steps=tuple(_by_other_means(step, work.tools) for step in one.steps)) for one in turns)
    if not _NAMED.search(work.prompt) and not any(found[0] in work.prompt for found in _RUN.finditer(_commands(turns))):
        made.append(("by other commands", other))
    words: list[tuple[str, tuple[Turn, ...], bool]] = []
    is_exact = _EXACT.search(work.prompt) is not None
    is_free = _FREE_ROWS.search(work.prompt) is not None or (
        _ANY_ORDER.search(work.prompt) is not None and _IN_ORDER.search(work.prompt) is None
    )
    for slot in live:
        if is_free and (turned := in_another_order(slot.text)):
            words.append((f"in another order, {slot.name}", slot.put(turned), True))
        if slot.name != ANSWER and is_program(slot.text) and not _SILENT.search(work.prompt):
            is_same = _STDOUT.search(work.prompt) is not None
            words.append((f"with a line on stderr, {slot.name}", slot.put(with_a_note(slot.text)), is_same))
        is_module = slot.name.endswith(".py") and is_code(slot.text) and not is_program(slot.text)
        if is_module and _is_asked_for(slot, work.prompt) and not _WITHOUT.search(work.prompt):
            words.append(
                (f"with an import and a class that it does not need, {slot.name}", slot.put(with_an_import(slot.text)), True)
            )
        if is_module and "write_file" in work.tools and _may_be_apart(slot, work):
            beside = posixpath.join(posixpath.dirname(slot.name), "parts_of_it.py")
            first = turn(call("write_file", path=beside, content=slot.text))
            words.append((f"in two modules, {slot.name}", (first, *slot.put("from parts_of_it import *\n")), True))
        longest = min([int(one) for one in _AT_MOST.findall(work.prompt)], default=2 * len(slot.text))
        is_twice = 2 * len(slot.text) <= longest and not (_TWICE.search(slot.text) or _SHORT.search(work.prompt))
        if is_twice and is_pattern(slot.name, slot.text.strip()) and not re.compile(slot.text.strip()).groups:
            words.append((f"as one of two alternatives, {slot.name}", slot.put("|".join(2 * [slot.text.strip()])), True))
        if is_code(slot.text):
            words.append((f"in another layout, {slot.name}", slot.put(f"{ast.unparse(ast.parse(slot.text))}\n"), False))
        is_last = _LAST_LINE.search(work.prompt) is not None and _ALONE.search(work.prompt) is None
        if slot.name == ANSWER and (sentence := with_a_sentence(slot.text, is_last_line=is_last)):
            words.append((f"after a sentence, {slot.name}", slot.put(sentence), bool(_LAST.search(work.prompt))))
            if _LAST.search(work.prompt) and not _BRIEF.search(work.prompt):
                words.append(
                    (f"after long reasons, {slot.name}", slot.put(with_reasons(slot.text, is_last_line=is_last)), True)
                )
        if turned := with_a_tie_turned(slot.text, work.item, work.prompt):
            words.append((f"with two that are equal in another order, {slot.name}", slot.put(turned), True))
        if (rounded := as_exact_as_asked(slot.text, work.prompt)) != slot.text:
            words.append((f"as exact as the prompt asks for, {slot.name}", slot.put(rounded), True))
        if "cron" in work.prompt.lower():
            same = same_times(slot.text)
            words += [(f"{name}, {slot.name}", slot.put(text), True) for name, text in same if text != slot.text]
        if not slot.text.endswith("\n"):
            words.append((f"with a line end, {slot.name}", slot.put(f"{slot.text}\n"), slot.name != ANSWER and not is_exact))
    return [*made, *((name, way) for name, way, is_same in words if is_same)], [
        (name, way) for name, way, is_same in words if not is_same
    ]


def _may_be_apart(slot: Slot, work: Work) -> bool:
    """Tell whether a module may stand in two: the prompt says so, and all its names are seen from the other one."""
    is_in_package = posixpath.join(posixpath.dirname(slot.name), "__init__.py") in work.files
    is_told = any(_FURTHER.search(one) and not _REFUSING.search(one) for one in re.split(r"[.\n]", work.prompt))
    return is_told and not is_in_package and not _PRIVATE.search(slot.text) and _is_asked_for(slot, work.prompt)


def _is_asked_for(slot: Slot, prompt: str) -> bool:
    """Tell whether a prompt names a module, or what it defines: it asks for the code, and not for a repository that has it."""
    nodes = ast.walk(ast.parse(slot.text))
    defined = [one.name for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return any(re.search(rf"\b{re.escape(name)}\b", prompt) for name in [posixpath.basename(slot.name), *defined])


def _is_free(slot: Slot, prompt: str) -> bool:
    """Tell whether a file may have any order: it is new, and the prompt says nothing of its order or of its text."""
    return not (slot.known.before or _IN_ORDER.search(prompt) or _EXACT.search(prompt) or slot.text.strip() in prompt)


def as_exact_as_asked(text: str, prompt: str) -> str:
    """Return a text whose own numbers have no more figures than a prompt asks for.

    The text itself where it asks for none, or for several, or where some numbers are as exact as that: then nobody knows of which it speaks.
    """
    asked = {(_COUNTS.get(number.lower()) or int(number), bool(figures)) for number, figures in _PRECISION.findall(prompt)}
    numbers = {number for number in _MORE_EXACT.findall(text) if number not in prompt}
    if len(asked) != 1:
        return text
    ((least, is_figures),) = asked

    def rounded(number: str) -> str:
        value = float(number)
        digits = max(0, least - 1 - math.floor(math.log10(abs(value)))) if is_figures and value else least
        return f"{value:.{digits}f}"

    if any(len(rounded(number)) >= len(number) for number in numbers):
        return text
    return _MORE_EXACT.sub(lambda found: rounded(found[0]) if found[0] in numbers else found[0], text)


def _has_committed(work: Work) -> bool:
    """Tell whether gold itself moved a repository's HEAD: else its last commit is the environment's."""
    heads = {path: node.data.count(b"\n") for path, node in work.files.items() if path.endswith("/.git/logs/HEAD")}
    known = {path: node.data.count(b"\n") for path, node in work.before.items()}
    return any(count > known.get(path, 0) for path, count in heads.items())


def _corrected(work: Work, live: Sequence[Slot]) -> tuple[Turn, ...]:
    """Return gold that writes each of its files wrong, and then right; nothing where it does more than write them."""
    calls = [step for one in work.turns for step in one.every(Call)]
    bad = work.all_wrong([slot for slot in live if slot.name != ANSWER])
    is_plain = calls and all(step.tool == "write_file" for step in calls) and said(bad) != said(work.turns)
    return (*(one for one in bad if one.every(Call)), *work.turns) if is_plain else ()


def _with_words_beside(one: Turn) -> Turn:
    """Return a turn with calls that says what it does."""
    return turn(BESIDE, *one.steps) if one.every(Call) and one.only(Say) is None else one


def _by_other_means(step: Any, tools: Sequence[str]) -> Any:
    """Return a call that does the same by the terminal: a file is written, or moved as a copy whose original is removed."""
    given = arguments_of(step)
    if not isinstance(step, Call) or "terminal" not in tools:
        return step
    if step.tool == "write_file" and {*given} == {"path", "content"}:
        place, folder = shlex.quote(given["path"]), posixpath.dirname(given["path"])
        made = shlex.quote(folder) if folder else ""  # write_file makes it
        return call("terminal", command=writing(place, given["content"], folder=made))
    if step.tool == "terminal" and isinstance(given.get("command"), str):
        command = _MOVE.sub(r"cp -r \1 \2 && rm -r \1", given["command"])
        return call("terminal", **{**given, "command": _RUN.sub(r"\1  ./\2", command) if "<<" not in command else command})
    return step


def _with_commands(turns: tuple[Turn, ...], change: Callable[[str], str]) -> tuple[Turn, ...]:
    """Return turns whose commands are changed."""

    def changed(step: Any) -> Any:
        given = arguments_of(step) if isinstance(step, Call) else {}
        command = given.get("command")
        made = change(command) if isinstance(command, str) else command
        return call("terminal", **{**given, "command": made}) if made != command else step

    return tuple(Turn(steps=tuple(map(changed, one.steps))) for one in turns)


def _and_packed(command: str) -> str:
    """Return a command that changes a repository, and packs its references behind that, as git does when it cleans up."""
    found = _OF_GIT.search(command)
    is_plain = "<<" not in command and command.count("(") == command.count("$(")
    whole = command.rstrip(" ;\n")
    return f"{whole} && git{found[1]} pack-refs --all" if found is not None and is_plain and whole[-1] != "&" else command


def _commands(turns: tuple[Turn, ...]) -> str:
    """Return all commands of turns."""
    return "\n".join(
        str(arguments_of(step).get("command") or "") for one in turns for step in one.steps if isinstance(step, Call)
    )


def _in_commits(commands: str) -> str:
    """Return a command that makes of the last commit one for each of its files, if nothing else rests on it."""
    beside = _SUBSHELL.search(commands)
    git = f"git -C {beside[1]}" if beside else f"git{found[1] if (found := _COMMIT.search(commands)) else ''}"
    alone = (
        f'! {git} rev-parse -q --verify HEAD^2 && [ -z "$({git} tag --points-at HEAD)" ] && {git} rev-parse -q --verify HEAD~1'
    )
    anew = f'm=$({git} log -1 --format=%B) && cd "$({git} rev-parse --show-toplevel)" && git reset -q --soft HEAD~1'
    return f'({alone} && {anew} && for f in $(git diff --cached --name-only); do git commit -q -m "$m" -- "$f" || exit 1; done)'


def without_last_part(turns: tuple[Turn, ...], where: tuple[int, int]) -> tuple[Turn, ...]:
    """Return turns in which a command of several parts lacks its last one; nothing where it cannot be taken apart."""
    place, at = where
    given = arguments_of(turns[place].steps[at])
    command = given.get("command")
    if not isinstance(command, str) or re.search(r"""["'`(){}<]""", command):
        return ()
    parts = [part for part in _PARTS.split(command) if part]
    if len(parts) < 2:  # noqa: PLR2004 - one part cannot lack another
        return ()
    rest = command[: command.rindex(parts[-1])].rstrip(" &;\n")
    steps = [
        call("terminal", **{**given, "command": rest}) if number == at else step
        for number, step in enumerate(turns[place].steps)
    ]
    return (*turns[:place], Turn(steps=tuple(steps)), *turns[place + 1 :])


def _apart(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return turns with one call each."""
    parts = ([turn(step) for step in calls] if len(calls := one.every(Call)) > 1 else [one] for one in turns)
    return tuple(part for made in parts for part in made)


def with_words(turns: tuple[Turn, ...], words: str) -> tuple[Turn, ...]:
    """Return turns whose last words go on."""
    last = turns[-1].only(Say)
    steps = tuple(say(f"{step.text}\n\n{words}") if step is last and last is not None else step for step in turns[-1].steps)
    return (*turns[:-1], Turn(steps=steps)) if last is not None else (*turns, turn(say(words)))

"""Other states of a repository than the one that gold leaves: a tag elsewhere, another branch, another message, work that is not committed.

Place in the flow: `neighbours` plays them after gold's own calls. Each is worse because the prompt names what is no longer so.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.inference.steps import Call, Say, Turn, call, turn
from pytest_hermes_env.play.cases.slots import BY_SOMEBODY, HEAD_LOG, Work

_HEAD = "/.git/HEAD"
_COMMITTED = re.compile(r"\tcommit(?: \(\w+\))?: (.*)$")
_ASKED_TO_COMMIT = re.compile(r"\bcommit", re.IGNORECASE)
SOMEWHERE, ANOTHER_MESSAGE = "somewhere-else", "Some work"


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository that gold left: its directory, its refs that gold set (name and commit), its branch, and the commits that gold made, with subjects."""

    directory: str
    refs: tuple[tuple[str, str], ...]
    branch: str
    start: str
    commits: tuple[tuple[str, str], ...]

    def git(self, *commands: str) -> str:
        """Return a line of the shell that runs commands of git in it."""
        return " && ".join(f"git {BY_SOMEBODY} -C {shlex.quote(self.directory)} {one}" for one in commands)


def other_states(work: Work) -> Iterator[tuple[str, tuple[Turn, ...]]]:
    """Yield gold with a last command that undoes one thing which the prompt asks for, by name."""
    if "terminal" not in work.tools or not work.calls or work.turns[-1].only(Say) is None or work.turns[-1].every(Call):
        return
    for one in repositories(work):
        for name, command in _commands(one, work.prompt):
            yield name, (*work.turns[:-1], turn(call("terminal", command=command)), work.turns[-1])


def repositories(work: Work) -> Iterator[Repository]:
    """Yield the repositories in which gold itself committed."""
    for path in [path for path in work.files if path.endswith(HEAD_LOG)]:
        directory = path.removesuffix(HEAD_LOG)
        known = set(_text(work.before.get(path)).splitlines())
        lines = [line for line in _text(work.files[path]).splitlines() if line not in known]
        made = [(line.split()[1], found[1]) for line in lines if (found := _COMMITTED.search(line))]
        refs = f"{directory}/.git/refs/"
        changed = [
            (one.removeprefix(refs), _text(node).strip())
            for one, node in work.files.items()
            if one.startswith((f"{refs}tags/", f"{refs}heads/")) and _text(node) != _text(work.before.get(one))
        ]
        head = _text(work.files.get(f"{directory}{_HEAD}")).strip().removeprefix("ref: refs/")
        if made:
            start = _text(work.before.get(f"{refs}{head}")).strip()
            yield Repository(
                directory=directory, refs=tuple(changed), branch=posixpath.basename(head), start=start, commits=tuple(made)
            )


def _commands(one: Repository, prompt: str) -> Iterator[tuple[str, str]]:
    first, last = one.commits[0][0], one.commits[-1][0]
    root = f"$(git -C {shlex.quote(one.directory)} rev-list --max-parents=0 HEAD | tail -n 1)"
    for ref, commit in one.refs:
        kind, _, name = ref.partition("/")
        if not _names(prompt, name) or name == one.branch:
            continue
        setting = f"tag -f {shlex.quote(name)}" if kind == "tags" else f"branch -f {shlex.quote(name)}"
        if commit != first and not one.start:
            yield f"{name} at the first commit", one.git(f"{setting} {root}")
        elif commit != last:
            yield f"{name} at the last commit", one.git(f"{setting} HEAD")
    if _names(prompt, one.branch):
        back = f"branch -f {shlex.quote(one.branch)} {one.start}" if one.start else f"branch -D {shlex.quote(one.branch)}"
        yield f"committed to another branch than {one.branch}", one.git(f"checkout -q -b {SOMEWHERE}", back)
    subjects = [subject for _, subject in one.commits]
    if _ASKED_TO_COMMIT.search(prompt):
        undone = "reset -q --soft HEAD~1" if one.start or len(one.commits) > 1 else "update-ref -d HEAD"
        yield "the last commit undone, with its files as they are", one.git(undone)
    if subjects[-1] in prompt:
        yield (
            "another message of the last commit",
            one.git(f"commit -q --no-verify --amend --allow-empty -m '{ANOTHER_MESSAGE}'"),
        )
    if len(subjects) > 1 and all(subject in prompt for subject in subjects) and not one.start:
        amended = f"commit -q --no-verify --amend -m {shlex.quote(subjects[-1])}"
        yield "one commit in place of all", one.git(f"reset -q --soft {root}", amended)


def _names(prompt: str, name: str) -> bool:
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", prompt) is not None


def _text(node: object) -> str:
    data = getattr(node, "data", None)
    return data.decode(errors="replace") if isinstance(data, bytes) else ""

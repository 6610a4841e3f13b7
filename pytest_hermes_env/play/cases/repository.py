"""Other states of a repository than the one that gold leaves: a tag elsewhere, another branch, another message, work that is not committed.

Place in the flow: `neighbours` plays them after gold's own calls. The prompt names what each of them lacks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.inference.steps import Call, Say, Turn, call, turn
from pytest_hermes_env.play.cases.slots import BY_SOMEBODY, COMMITTED, HEAD_LOG, Work

_HEAD = "/.git/HEAD"
_ASKED_TO_COMMIT = re.compile(
    r"(?:^|[.!:,;]\s*|\band\s+|\bthen\s+|\bplease\s+)commit\b(?!\s+(?:that|which|is|was|has|broke|message)\b)|\bcommit (?:it|your|the|them|all|each|every)\b"
    r"|\b(?:make|create|add|one|a|single|as|in) (?:\w+ ){0,2}commits?\b|\bcommitted\b",
    re.IGNORECASE | re.MULTILINE,
)
_NEED_NOT = re.compile(r"\b(?:not|never|without|whether|need not|don't)\b[^.\n]{0,30}\bcommit", re.IGNORECASE)
"""Where the prompt asks for a commit, and where it may not."""
SOMEWHERE, ANOTHER_MESSAGE, LEAST_WORDS = "somewhere-else", "Some work", 2


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository that gold left: its directory, its refs that gold set (name and commit), its branch with its commit, and the commits that gold made, with subjects.

    ``is_last``: a commit was the last that it did. ``start`` is the commit before its own; empty where there was none.
    """

    directory: str
    refs: tuple[tuple[str, str], ...]
    branch: str
    head: str
    is_last: bool
    start: str
    commits: tuple[tuple[str, str], ...]

    def git(self, *commands: str) -> str:
        """Return a line of the shell that runs commands of git in it."""
        return " && ".join(f"git {BY_SOMEBODY} -C {shlex.quote(self.directory)} {one}" for one in commands)

    def root_of(self, ref: str) -> str:
        """Return what the shell puts the first commit of a ref's history for."""
        return f"$(git -C {shlex.quote(self.directory)} rev-list --max-parents=0 {shlex.quote(ref)} | tail -n 1)"


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
        commits = [line for line in lines if COMMITTED.search(line)]
        if not commits:
            continue
        made = [(line.split()[1], found[1]) for line in commits if (found := COMMITTED.search(line))]
        refs = f"{directory}/.git/refs/"
        changed = [
            (one.removeprefix(refs), _text(node).strip())
            for one, node in work.files.items()
            if one.startswith((f"{refs}tags/", f"{refs}heads/")) and _text(node) != _text(work.before.get(one))
        ]
        head = _text(work.files.get(f"{directory}{_HEAD}")).strip().removeprefix("ref: refs/")
        start = commits[0].split()[0].strip("0")
        yield Repository(
            directory=directory,
            refs=tuple(changed),
            branch=head.removeprefix("heads/"),
            head=_text(work.files.get(f"{refs}{head}")).strip(),
            is_last=commits[-1] == lines[-1],
            start=commits[0].split()[0] if start else "",
            commits=tuple(made),
        )


def _commands(one: Repository, prompt: str) -> Iterator[tuple[str, str]]:
    made = {commit for commit, _ in one.commits}
    for ref, commit in one.refs:
        kind, _, name = ref.partition("/")
        if commit not in made or not _names(prompt, name) or name == one.branch:  # an annotated tag is an object of its own
            continue
        setting = f"tag -f {shlex.quote(name)}" if kind == "tags" else f"branch -f {shlex.quote(name)}"
        if commit != one.commits[0][0] and not one.start:
            yield f"{name} at the first commit", one.git(f"{setting} {one.root_of(ref)}")
        elif commit != one.head and one.head in made:
            yield f"{name} at the last commit", one.git(f"{setting} HEAD")
    if one.head not in made:
        return
    if _names_branch(prompt, one.branch):
        back = f"branch -f {shlex.quote(one.branch)} {one.start}" if one.start else f"branch -D {shlex.quote(one.branch)}"
        yield f"committed to another branch than {one.branch}", one.git(f"checkout -q -b {SOMEWHERE}", back)
    subjects = [subject for _, subject in one.commits]
    if not one.is_last or one.head != one.commits[-1][0]:
        return
    if _ASKED_TO_COMMIT.search(prompt) and not _NEED_NOT.search(prompt):
        undone = "reset -q --soft HEAD~1" if one.start or len(one.commits) > 1 else "update-ref -d HEAD"
        yield "the last commit undone, with its files as they are", one.git(undone)
    told = [subject for subject in subjects if len(subject.split()) >= LEAST_WORDS and _names(prompt, subject)]
    if subjects[-1] in told:
        yield (
            "another message of the last commit",
            one.git(f"commit -q --no-verify --amend --allow-empty -m '{ANOTHER_MESSAGE}'"),
        )
    if len(subjects) > 1 and told == subjects and not one.start:
        amended = f"commit -q --no-verify --amend -m {shlex.quote(subjects[-1])}"
        yield "one commit in place of all", one.git(f"reset -q --soft {one.root_of('HEAD')}", amended)


def _names(prompt: str, name: str) -> bool:
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", prompt) is not None


def _names_branch(prompt: str, name: str) -> bool:
    """Tell whether a prompt speaks of a branch of that name, and not of a function or a file."""
    own = rf"[`'\"]?{re.escape(name)}[`'\"]?(?![\w/(.-]*[\w/(])"
    before, behind = rf"\bbranch(?:es)?\W+(?:\w+\W+){{0,2}}?{own}", rf"{own}\W+branch\b"
    return (
        re.search(rf"{before}|{behind}|\b(?:on|to|onto|into) {own}(?!\s+\w+\s+(?:function|file|module|class))", prompt)
        is not None
    )


def _text(node: object) -> str:
    data = getattr(node, "data", None)
    return data.decode(errors="replace") if isinstance(data, bytes) else ""

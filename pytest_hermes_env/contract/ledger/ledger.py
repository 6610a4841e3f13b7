"""The account of a run: what each rule concluded about one class, and what was never looked at.

A rule that was not exercised has not passed; a run in which nothing was exercised proves nothing (`Ledger.is_vacuous`).
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.ledger.ladder import LadderRow, ladder_in_brief, ladder_lines
from pytest_hermes_env.redaction.shown_text import shown
from pytest_hermes_env.source.finding import Finding, Severity, shown_finding

WAIVED = "waived"
NOT_JUDGED = "not judged"
_PLAYED = ("chat", "token")
"""Modes of a ledger in which rollouts were played."""
_EXPLAINED = (WAIVED, "undecided", "not applicable", "not exercised", "not run")
_WORDS = ("passed", "failed", *_EXPLAINED)
_SELDOM_READ = ("not applicable", "not run")
_FEW_REASONS = 2
_FEW_NOT_JUDGED = 3
_FEW_RULES = 5
WIDTH = 100
_COLUMN = max(map(len, _WORDS)) + 2


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A finding that does not count, why, and where that is written: ``env.py:30``, ``pyproject.toml:12``."""

    finding: Finding
    reason: str
    origin: str


def _shown_accepted(accepted: Accepted) -> Accepted:
    return Accepted(finding=shown_finding(accepted.finding), reason=shown(accepted.reason), origin=shown(accepted.origin))


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """What one rule concluded about one class.

    ``findings`` are those that count, ``accepted`` those that do not. ``waiver`` is the reason why a violation is accepted as a whole.
    ``blocked_by`` is that of `Verdict`.
    """

    rule: Rule
    outcome: Outcome
    note: str = ""
    findings: tuple[Finding, ...] = ()
    waiver: str = ""
    accepted: tuple[Accepted, ...] = ()
    seconds: float = 0.0
    blocked_by: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    is_strict: bool = False
    """Whether findings of severity warning fail the run."""

    @classmethod
    def of(cls, rule: Rule, verdict: Verdict, seconds: float, *, is_strict: bool = False) -> LedgerEntry:
        """Return the entry of a verdict that took so long."""
        given = {field.name: getattr(verdict, field.name) for field in dataclasses.fields(verdict)}
        return cls(rule=rule, seconds=seconds, is_strict=is_strict, **given)

    def __post_init__(self) -> None:
        """Redact what the entry says: every report and all terminal output are made of entries."""
        redacted = {
            "note": shown(self.note),
            "waiver": shown(self.waiver),
            "findings": tuple(map(shown_finding, self.findings)),
            "accepted": tuple(map(_shown_accepted, self.accepted)),
            "questions": tuple(map(shown, self.questions)),
        }
        for name, value in redacted.items():
            object.__setattr__(self, name, value)

    @property
    def word(self) -> str:
        """The outcome as the ledger calls it."""
        return WAIVED if self.waiver and (self.outcome is Outcome.FAILED or self.is_open) else self.outcome.value

    @property
    def is_open(self) -> bool:
        """Whether the play showed nothing of a rule of severity error that applies."""
        return self.outcome in {Outcome.NOT_EXERCISED, Outcome.UNDECIDED} and self.rule.severity is Severity.ERROR

    @property
    def is_warned(self) -> bool:
        """Whether its findings are warnings, which do not fail the run: pytest counts such a rule as passed, with a warning."""
        return self.word == "failed" and not self.rule.fails_run(self.findings, is_strict=self.is_strict)

    @property
    def reason(self) -> str:
        """Why the rule did not simply pass or fail."""
        return self.waiver if self.word == WAIVED else self.note

    def set_aside(self, accept: Callable[[Finding], Accepted | None]) -> LedgerEntry:
        """Return the entry with the findings that ``accept`` accepts moved aside; it is waived when none is left."""
        if self.outcome is not Outcome.FAILED or not self.findings:
            return self
        answers = [(finding, accept(finding)) for finding in self.findings]
        kept = tuple(finding for finding, found in answers if found is None)
        accepted = (*self.accepted, *(found for _, found in answers if found is not None))
        reasons = "; ".join(dict.fromkeys(item.reason for item in accepted))
        return dataclasses.replace(self, findings=kept, accepted=accepted, waiver=self.waiver if kept else reasons)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The entries of one class, one for each rule of the catalogue.

    ``sandbox`` says what answered the tools of its rollouts, ``mode`` how the model was asked: source (not at all), chat or token.
    ``ladder`` is what scripted policies earned, where they were played.
    """

    subject: str
    entries: tuple[LedgerEntry, ...]
    sandbox: str = ""
    mode: str = ""
    path: str = ""
    line: int = 0
    ladder: tuple[LadderRow, ...] = ()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many rules came to each outcome; those that none came to are left out."""
        words = [entry.word for entry in self.entries]
        return {word: words.count(word) for word in _WORDS if word in words}

    @property
    def ran(self) -> int:
        """How many rules saw their law hold or break."""
        return sum(self.counts.get(word, 0) for word in ("passed", "failed", WAIVED))

    @property
    def is_vacuous(self) -> bool:
        """Whether nothing at all was exercised, so that the run proves nothing."""
        return self.ran == 0

    @property
    def _is_selection(self) -> bool:
        """Whether a run has selected a few rules: what these saw is shown, and no others are."""
        unasked = self.counts.get("not run", 0)
        return self.mode in _PLAYED and unasked > 0 and len(self.entries) - unasked <= _FEW_RULES

    @cached_property
    def exercised(self) -> tuple[LedgerEntry, ...]:
        """The entries of rules with a rollout half that saw their law hold or break."""
        seen = {Outcome.PASSED, Outcome.FAILED}
        return tuple(entry for entry in self.entries if entry.outcome in seen and entry.rule.dynamic is not None)

    @cached_property
    def not_judged(self) -> tuple[LedgerEntry, ...]:
        """The entries of rules of severity error that apply, and of which the play showed nothing; none where nothing was played.

        A violation of another rule that kept a rule from being judged, or from what that one needs, excuses it: it is reported already.
        """
        if self.mode not in _PLAYED:
            return ()
        broken = {entry.rule.id for entry in self.entries if entry.outcome is Outcome.FAILED}
        waiting = [entry for entry in self.entries if entry.outcome in {Outcome.NOT_EXERCISED, Outcome.UNDECIDED}]
        while excused := [entry for entry in waiting if not broken.isdisjoint(entry.blocked_by)]:
            broken |= {entry.rule.id for entry in excused}
            waiting = [entry for entry in waiting if entry not in excused]
        return tuple(entry for entry in waiting if entry.is_open and not entry.waiver)

    def strictly(self) -> Ledger:
        """Return the ledger of a run in which findings of severity warning fail, too."""
        return dataclasses.replace(self, entries=tuple(dataclasses.replace(entry, is_strict=True) for entry in self.entries))

    def failures(self, *, is_strict: bool = False) -> tuple[LedgerEntry, ...]:
        """Return the entries that fail the run: broken laws of severity error; with ``is_strict`` warnings, too."""
        return tuple(
            entry
            for entry in self.entries
            if entry.word == "failed" and entry.rule.fails_run(entry.findings, is_strict=is_strict)
        )

    def headline(self) -> str:
        """Return the counts as one line, as pytest counts: findings that do not fail the run are warnings of a rule that passed."""
        total, warned = len(self.entries), sum(entry.is_warned for entry in self.entries)
        words = ["passed" if entry.is_warned else entry.word for entry in self.entries]
        counts = ", ".join(f"{words.count(word)} {word}" for word in _WORDS if word in words)
        warnings = f"; {warned} {'warning' if warned == 1 else 'warnings'}" if warned else ""
        return f"{total} {'rule' if total == 1 else 'rules'}: {counts or 'none'}{warnings}"

    def brief_lines(self) -> list[str]:
        """Return the account in at most ten lines, each of at most `WIDTH` characters: counts, what needs a look, the ladder."""
        reasons = summarise([dataclasses.replace(self, entries=self.not_judged)], heading=NOT_JUDGED)
        if len(reasons) > _FEW_NOT_JUDGED:
            ids = ", ".join(entry.rule.id for entry in self.not_judged)
            reasons = [*reasons[: _FEW_NOT_JUDGED - 1], f"{NOT_JUDGED:<{_COLUMN}}{ids}: their reasons with -v"]
        reasons += [line for word in _EXPLAINED for line in self._brief(word)]
        tried = self._tried()
        if self.is_vacuous:
            reasons.append("nothing was exercised: this run proves nothing")
        played = _folded("played", f"{self.mode} mode, {self.sandbox or 'no tool was called'}")
        ladder = [
            line
            for number, text in enumerate(ladder_in_brief(self.ladder))
            for line in _folded("" if number else "ladder", text)
        ]
        more = "  pytest -v: all rules, reasons and the ladder"
        ladder = [*(ladder if self.ladder else ()), *self._questions()]
        lines = [
            part for line in reasons for part in (_wrapped(f"  {line}") if self._is_selection else [_clipped(f"  {line}")])
        ]
        return [self.headline(), *lines, *tried, *played, *ladder, more]

    def _tried(self) -> list[str]:
        """Return what the rules looked at that passed, where a run has selected a few."""
        passed = [entry for entry in self.entries if entry.outcome is Outcome.PASSED and entry.note]
        return [line for entry in passed for line in _folded(entry.rule.id, entry.note)] if self._is_selection else []

    def _questions(self) -> list[str]:
        """Return what rules ask the author."""
        asked = [text for entry in self.entries for text in entry.questions]
        return [line for text in asked for line in _folded("question", text)]

    def _brief(self, word: str) -> list[str]:
        """Return the rules of one outcome, in one line, or in two with the first reason, if each reason is worth a look."""
        entries = [entry for entry in self.entries if entry.word == word and entry not in self.not_judged]
        if word == "not run" and self._is_selection:
            return []  # a run that selected a few rules knows that the others did not run
        reasons = [] if word in _SELDOM_READ else summarise([dataclasses.replace(self, entries=tuple(entries))], [word])
        if len(reasons) > _FEW_REASONS:
            reasons, entries = reasons[:1], [entry for entry in entries if entry.rule.id not in reasons[0]]
        elif reasons or not entries:
            return reasons
        return [*reasons, f"{'' if reasons else word:<{_COLUMN}}{', '.join(entry.rule.id for entry in entries)}"]

    def summary_lines(self) -> list[str]:
        """Return the account as text: the counts, then each reason with the rules that it concerns."""
        explained = [word for word in _EXPLAINED if word != "not run" or not self._is_selection]
        lines = [self.headline(), *(f"  {line}" for line in summarise([self], explained)), *self._tried()]
        if self.mode in _PLAYED:
            lines.append(f"  {'mode':<{_COLUMN}}{self.mode}")
        if self.sandbox:
            lines.append(f"  {'tools':<{_COLUMN}}{self.sandbox}")
        if self.is_vacuous:
            lines.append("  nothing was exercised: this run proves nothing")
        return [*lines, *ladder_lines(self.ladder), *self._questions()]


def _folded(word: str, text: str) -> list[str]:
    """Return a line of the account on as many lines as it needs."""
    return _wrapped(f"  {word:<{_COLUMN}}{text}")


def _wrapped(line: str) -> list[str]:
    rest = " " * (_COLUMN + 2)
    return textwrap.wrap(line, WIDTH, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def _clipped(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"


def summarise(ledgers: Iterable[Ledger], words: Iterable[str] = _EXPLAINED, heading: str = "") -> list[str]:
    """Return one line for each outcome that needs a reason, and reason: the rules, how often, and the reason.

    ``heading`` stands in place of the outcome.
    """
    found: dict[tuple[str, str], list[str]] = {}
    subjects: dict[tuple[str, str], set[str]] = {}
    read = list(ledgers)
    for ledger in read:
        for entry in ledger.entries:
            key = (entry.word, entry.reason)
            ids = found.setdefault(key, [])
            if entry.rule.id not in ids:
                ids.append(entry.rule.id)
            subjects.setdefault(key, set()).add(ledger.subject)
    lines = []
    for word in words:
        for (known, reason), ids in found.items():
            if known == word:
                times = f" (in {len(subjects[known, reason])} classes)" if len(read) > 1 else ""
                lines.append(f"{heading or word:<{_COLUMN}}{', '.join(sorted(ids))}{times}  {reason}".rstrip())
    return lines

"""Findings, ledgers and rules as text for people. Editors can jump to a finding: it begins path:line:column."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from pytest_hermes_env import stale_package
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.comments import WAIVERS_HOLD
from pytest_hermes_env.contract.ledger.ledger import Ledger, summarise
from pytest_hermes_env.contract.rules.he111_file_parses import RULE as HE111
from pytest_hermes_env.redaction.shown_text import shown_name
from pytest_hermes_env.source import FileProblem
from pytest_hermes_env.source.finding import Finding, Severity
from pytest_hermes_env.source.stale_packages import STALE_PACKAGE

WIDTH = 100
_FEW_CLASSES = 3
FEW_FINDINGS = 3
"""How many findings of a rule the end of a run shows."""
LINES_OF_A_FINDING = 6
_RED, _BOLD, _END = "\033[31m", "\033[1m", "\033[0m"
_SECTIONS = ("What", "Why", "Fix", "Source")

WAIVERS_WHY = "A waiver that waives nothing hides the next violation; one without a reason hides this one from its reviewers."
WAIVERS_FIX = "Remove it, or write it as `hermes-env docs waive` describes."


def finding_lines(rule: Rule, finding: Finding, *, is_brief: bool = False, has_colour: bool = False) -> list[str]:
    """Return one finding as text, with its severity unless it is an error. ``is_brief`` leaves out why it matters and how to fix it."""
    severity = rule.severity_of(finding)
    name = rule.name if severity is Severity.ERROR else f"{rule.name} ({severity})"
    lines = [_headline(_place(finding), rule.id, name, finding.message, has_colour=has_colour)]
    if finding.scenario:
        lines += _folded("in", f"scenario {finding.scenario}")
    if finding.confirmation:
        lines += _folded("run", finding.confirmation)
    if finding.seen:
        lines += _folded("seen", finding.seen)
    if not is_brief:
        lines += [*_folded("line", finding.raised_by), *_folded("also", _also(finding))]
        lines += [] if finding.fix else _folded("why", rule.section("Why"))
        lines += _folded("fix", rule.fix(finding))
    is_case = finding.reproduction.startswith(("hack:", "near_miss:"))
    if is_case or (finding.reproduction and not is_brief):
        what = "case for the file of cases" if is_case else "test"
        lines += [f"  try  this {what} shows it alone:", *textwrap.indent(finding.reproduction, "       ").splitlines()]
    return lines


def compact_lines(rule: Rule, findings: Sequence[Finding]) -> list[str]:
    """Return the findings of a rule as text for the end of a run: at most six lines for the first, fewer for the next ones."""
    lines: list[str] = []
    for number, finding in enumerate(findings[:FEW_FINDINGS]):
        severity = rule.severity_of(finding)
        name = rule.name if severity is Severity.ERROR else f"{rule.name} ({severity})"
        headline = _headline(_place(finding), rule.id, name, finding.message)
        block = _clipped(_wrapped(headline, rest="  "), 3)
        if number == 0 or severity is Severity.ERROR:
            block += _clipped(_folded("seen", finding.seen or finding.observed), 1 if number else 2)
        block += [*_folded("line", finding.raised_by), *_folded("also", _also(finding))]
        if number == 0 and severity is Severity.ERROR:
            block += _whole_sentences("fix", rule.fix(finding), LINES_OF_A_FINDING - len(block) - 1)
        lines += block
    if (rest := len(findings) - FEW_FINDINGS) > 0:
        lines.append(f"  and {_counted(rest, 'more finding')}")
    return [*lines, *_folded("more", f"hermes-env explain {rule.id}, or pytest -v")]


def problem_lines(problem: FileProblem, *, is_brief: bool = False, has_colour: bool = False) -> list[str]:
    """Return a file that could not be checked as text."""
    place = f"{shown_name(problem.path)}:{problem.line}:{problem.column}"
    lines = [_headline(place, problem.id, problem.name, problem.message, has_colour=has_colour)]
    if not is_brief:
        why, fix = problem_texts(problem)
        lines += [*_folded("why", why), *_folded("fix", fix)]
    return lines


def problem_texts(problem: FileProblem) -> tuple[str, str]:
    """Return why a problem matters, and how to fix it."""
    if problem.id == STALE_PACKAGE:
        return stale_package.WHY, stale_package.FIX
    if problem.id == WAIVERS_HOLD:
        return WAIVERS_WHY, WAIVERS_FIX
    return HE111.section("Why"), HE111.section("Fix").replace("FILE", shown_name(problem.path))


def report_lines(account: Account, *, is_verbose: bool = False, has_colour: bool = False) -> list[str]:
    """Return a whole report as text: problems, findings, what was not checked, the ledgers, and a sum.

    Unless it is verbose, a finding is what is wrong and what to write, and a ledger its counts.
    """
    if not is_verbose:
        return _brief_report(account, has_colour=has_colour)
    blocks: list[list[str]] = []
    explained: set[str] = set()
    for problem in account.problems:
        blocks.append(problem_lines(problem, is_brief=problem.id in explained, has_colour=has_colour))
        explained.add(problem.id)
    for rule, finding in account.findings:
        blocks.append(finding_lines(rule, finding, is_brief=rule.id in explained, has_colour=has_colour))
        explained.add(rule.id)
    blocks.append(_notes(account))
    if len(account.ledgers) <= _FEW_CLASSES:
        blocks += [_ledger_lines(ledger) for ledger in account.ledgers]
    else:
        blocks.append([f"{shown_name(ledger.subject)}  {ledger.headline()}" for ledger in account.ledgers])
        blocks.append(summarise(account.ledgers))
    blocks.append([_last_line(account, has_colour=has_colour)])
    return [line for block in blocks if block for line in (*block, "")][:-1]


def _brief_report(account: Account, *, has_colour: bool) -> list[str]:
    lines: list[str] = []
    explained: set[str] = set()
    for problem in account.problems:
        place = f"{shown_name(problem.path)}:{problem.line}:{problem.column}"
        lines += _brief(
            place, problem.id, problem.name, problem.message, problem_texts(problem)[1], explained, has_colour=has_colour
        )
    for rule, finding in account.findings:
        severity = rule.severity_of(finding)
        name = rule.name if severity is Severity.ERROR else f"{rule.name} ({severity})"
        lines += _brief(_place(finding), rule.id, name, finding.message, rule.fix(finding), explained, has_colour=has_colour)
    lines += _notes(account)
    lines += [f"{shown_name(ledger.subject)}  {ledger.headline()}" for ledger in account.ledgers]
    more = ["  more hermes-env check --verbose, hermes-env explain RULE"] if explained else []
    return [*lines, *more, _last_line(account, has_colour=has_colour)]


def _brief(place: str, rule_id: str, name: str, message: str, fix: str, explained: set[str], *, has_colour: bool) -> list[str]:
    """Return a finding in a few lines; the fix stands with the first of its rule."""
    first, *rest = _wrapped(_headline(place, rule_id, name, message), rest="       ")
    lines = [first.replace(*_coloured(place, rule_id)) if has_colour else first, *rest]
    lines += [] if rule_id in explained else _whole_sentences("fix", fix, 2)
    explained.add(rule_id)
    return lines


def _coloured(place: str, rule_id: str) -> tuple[str, str]:
    where = f"{place}: " if place else ""
    return f"{where}{rule_id}", f"{_BOLD}{where}{_END}{_RED}{rule_id}{_END}"


def _notes(account: Account) -> list[str]:
    return [
        shown_name(f"{item.path}:{item.line}: {item.name}: {item.reason}")
        for item in account.skipped
        if item.is_environment or item.is_unreadable
    ]


def law(rule: Rule) -> str:
    """Return the law of a rule as a sentence."""
    _, _, below = rule.doc.partition("\n")
    return " ".join(below.strip().partition("\n\n")[0].split())


def rule_table(rules: Iterable[Rule]) -> list[str]:
    """Return all rules as a table: id, name, severity, how it is seen."""
    rows = [("id", "law", "severity", "seen")]
    rows += [(rule.id, rule.name, rule.severity.value, ", ".join(rule.seen_in) or "rollout") for rule in rules]
    widths = [max(len(row[index]) for row in rows) for index in range(4)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def rules_json(rules: Iterable[Rule]) -> str:
    """Return all rules with their documentation as JSON."""
    rows = [
        {
            "id": rule.id,
            "name": rule.name,
            "severity": rule.severity.value,
            "law": law(rule),
            "seen": list(rule.seen_in),
            "scenarios": list(rule.scenarios),
            **{title.lower(): rule.section(title) for title in _SECTIONS},
        }
        for rule in rules
    ]
    return json.dumps({"version": 1, "rules": rows}, indent=2, ensure_ascii=False) + "\n"


def explain_lines(rule: Rule) -> list[str]:
    """Return the documentation of a rule as text."""
    from pytest_hermes_env.contract.examples import examples_of  # noqa: PLC0415 - only where examples are shown

    lines = [f"{rule.id} {rule.name} ({rule.severity.value})", *_wrapped(law(rule))]
    for title in _SECTIONS:
        lines += ["", title, *_wrapped(rule.section(title), "  ", "  ")]
    for example in examples_of(rule.id):
        word = "Bad" if example.is_bad else "Good"
        lines += ["", f"{word}: {example.text}" if example.text else word]
        lines += [f"  {line}".rstrip() for line in example.code.splitlines()]
    return lines


def _ledger_lines(ledger: Ledger) -> list[str]:
    first, *rest = ledger.summary_lines()
    return [f"{shown_name(ledger.subject)}  {first}", *rest]


def _last_line(account: Account, *, has_colour: bool) -> str:
    found = len(account.findings) + len(account.problems)
    undecided = sum(ledger.counts.get("undecided", 0) for ledger in account.ledgers)
    parts = [_counted(found, "finding") if found else "nothing to judge" if account.has_only_others else "no findings"]
    if undecided:
        parts.append(f"{undecided} undecided")
    if unreadable := sum(item.is_unreadable for item in account.skipped):
        parts.append(f"{_counted(unreadable, 'environment')} not readable")
    vacuous = sum(ledger.is_vacuous for ledger in account.ledgers)
    if vacuous:
        parts.append(f"nothing exercised in {_counted(vacuous, 'class', 'classes')}")
    scope = f"{_counted(account.files, 'file')}, {_counted(len(account.ledgers), 'environment')}"
    line = f"{scope}: {', '.join(parts)}"
    if not has_colour:
        return line
    return f"{_RED if account.exit_code else _BOLD}{line}{_END}"


def _place(finding: Finding) -> str:
    return f"{shown_name(finding.path)}:{finding.line}:{finding.column}" if finding.path else ""


def _headline(place: str, rule_id: str, name: str, message: str, *, has_colour: bool = False) -> str:
    plain, coloured = _coloured(place, rule_id)
    return f"{coloured if has_colour else plain} {name}: {message}"


def _folded(word: str, text: str) -> list[str]:
    return _wrapped(text, f"  {word:<4} ", "       ")


def _also(finding: Finding) -> str:
    return f"{', '.join(finding.also)}: not judged, because of this" if finding.also else ""


def _whole_sentences(word: str, text: str, count: int) -> list[str]:
    """Return as many sentences as fit into so many lines, at least the first one."""
    lines: list[str] = []
    end = 0
    for found in re.finditer(r"[.!?](?=\s|$)|$", text):
        more = _folded(word, text[: found.end()])
        if lines and len(more) > count:
            break
        lines, end = more, found.end()
    return lines if end else []


def _clipped(lines: list[str], count: int) -> list[str]:
    """Return the first lines; the last of them ends with an ellipsis where lines are left out."""
    if len(lines) <= count:
        return lines
    return [*lines[: count - 1], f"{lines[count - 1][: WIDTH - 2]} …"]


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    return textwrap.wrap(
        text, width, break_long_words=False, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _counted(count: int, word: str, plural: str = "") -> str:
    return f"{count} {word if count == 1 else plural or word + 's'}"

"""HE111 file-parses
The environment's file, and every file of the project that it imports, parses.

What: The file can be read and parsed, and so can the modules of the same tree that it imports by name.

Why: A file that does not parse cannot be imported: no environment in it can start, and no other rule can check it.

Fix: Run `python -m py_compile FILE` and fix the line that it names.

Source: The Python reference, "Errors and Exceptions"; a real environment stayed broken like this for twenty days
because no test imported it.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Finding, Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource


def static(source: ClassSource) -> Verdict:
    """Look at the modules that the class's files import: the class's own file parsed, or it would not be checked."""
    problems = {(problem.path, problem.line): problem for module in source.modules for problem in module.problems_of_imports}
    findings = [
        Finding(message=problem.message, path=problem.path, line=problem.line, column=problem.column)
        for _, problem in sorted(problems.items())
    ]
    return Verdict.of(findings, f"{source.path} parses, and so does what it imports from its own tree")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, holds_for_base_env=True)

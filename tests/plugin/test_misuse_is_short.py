"""What a test does wrong with fixtures, markers and loops is told in a few lines: no source of a library, and what to write."""

from __future__ import annotations

import pytest

from .test_cause_first import run


def test_what_keeps_a_test_from_its_fixtures_or_its_loop_is_told(pytester: pytest.Pytester) -> None:
    """A class of unittest gets none, an async one needs a plugin, and one loop cannot run in another: each in a few lines."""
    pytester.makepyfile(
        test_it="""
import asyncio
import unittest

import pytest


class TestBill(unittest.TestCase):
    def test_a_group(self, make_env, fake_sandbox):
        pass


@pytest.fixture
async def ready(fake_sandbox):
    return 1


def test_ready(ready, fake_sandbox):
    assert ready


async def one():
    return 1


def test_loops(fake_sandbox):
    async def both():
        call = one()
        try:
            assert asyncio.run(call) == [1.0]
        finally:
            call.close()

    asyncio.run(both())
"""
    )

    result = run(pytester)

    result.stdout.fnmatch_lines(
        [
            "TypeError: TestBill.test_a_group() missing 2 required positional arguments: 'make_env' and 'fake_sandbox'",
            "  fix       take TestCase out of the bases of TestBill: unittest gives a test no fixtures",
            "test_it.py:8: test_a_group",
            "E   RuntimeError: asyncio.run() cannot be called from a running event loop",
            "E   fix  Write `await call`: a loop runs already.",
        ]
    )
    result.stdout.fnmatch_lines(
        ["*requested an async fixture 'ready'*", "  fix       write `@pytest_asyncio.fixture` above `ready`, *"]
    )
    result.stdout.no_fnmatch_line("*asyncio?runners*")
    result.stdout.no_fnmatch_line("*unittest?case.py*")


def test_a_misused_fixture_shows_no_source_of_the_library(pytester: pytest.Pytester) -> None:
    """In the test, its own line and the error; in the setup of a fixture, the error alone."""
    pytester.makepyfile(
        """
def test_answer(fake_sandbox):
    fake_sandbox.on("ls", output=4)

def test_fault(fault_plan):
    fault_plan.on("modell", "reset")

def test_late(request):
    request.getfixturevalue("recorded_server")

def test_both(fake_sandbox, local_sandbox):
    pass
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=3, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "UsageError: a second sandbox was requested in this test: *",
            '    fake_sandbox.on("ls", output=4)',
            '    fault_plan.on("modell", "reset")',
            '    request.getfixturevalue("recorded_server")',
        ]
    )
    assert [line for line in result.outlines if "def on(" in line or "raise UsageError" in line or "stash[SEAM]" in line] == []


def test_what_this_package_raises_for_a_wrong_argument_is_short(pytester: pytest.Pytester) -> None:
    """Also an error that is not of this package's tree: the test's own line and the error, and how to see the rest."""
    pytester.makepyfile("""
def test_web(fake_sandbox):
    fake_sandbox.web(5)
""")

    result = run(pytester)
    whole = run(pytester, "--full-trace")

    shown = result.outlines[next(number for number, line in enumerate(result.outlines) if "test_web ___" in line) + 1 :][:4]
    assert [line.partition(": ")[2] if ".py:" in line else line for line in shown] == [
        "in test_web",
        "    fake_sandbox.web(5)",
        "E   AttributeError: 'int' object has no attribute 'items'",
        "E   pytest --full-trace shows where in pytest-hermes-env",
    ]
    assert any("def add(self, pages" in line for line in whole.outlines)


def test_an_error_of_this_package_at_import_is_the_line_and_its_text(pytester: pytest.Pytester) -> None:
    """No source of the package in between."""
    pytester.makepyfile(test_bad="from pytest_hermes_env import fail\n\nEND = fail(200)\n")

    result = run(pytester)

    shown = result.outlines[next(number for number, line in enumerate(result.outlines) if "ERROR collecting" in line) + 1 :]
    assert shown[0].startswith("test_bad.py:3: ScriptError: ")
    assert not [line for line in shown if "yaml_script" in line or "steps.py" in line or line.startswith("E ")]


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("hermes_allow_leftovers(5)", "@pytest.mark.hermes_allow_leftovers takes no arguments, at test_it.py::test_marked"),
        ("hermes_allow_hosts", "@pytest.mark.hermes_allow_hosts takes the names of hosts, at test_it.py::test_marked."),
        (
            'hermes_allow_hosts("https://a.org/x")',
            "hermes_allow_hosts takes the names of hosts, and https://a.org/x is an address.",
        ),
        ("hermes_live(5)", "@pytest.mark.hermes_live takes or_mock=True, may_fail=True or nothing."),
    ],
)
def test_a_wrong_marker_ends_the_run_with_its_line(pytester: pytest.Pytester, marker: str, message: str) -> None:
    """Before any test, and without this package's source."""
    pytester.makepyfile(test_it=f"import pytest\n\n@pytest.mark.{marker}\ndef test_marked(fake_sandbox):\n    pass\n")

    result = run(pytester)

    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert (result.ret, len([line for line in result.errlines if line]) <= 3) == (pytest.ExitCode.USAGE_ERROR, True)

"""Lines that run are recorded, also in threads; those of other files are not."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from pytest_hermes_env.play.lines_run import recording_lines

SOURCE = "def reached(flag):\n    if flag:\n        return 1\n    return 2\n\ndef other():\n    return 3\n"


@pytest.fixture
def functions(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(SOURCE, encoding="utf-8")
    names: dict = {}
    exec(compile(SOURCE, str(path), "exec"), names)
    return os.path.realpath(path), names


def traced(files, call):
    """Return the lines that a call runs, although a coverage tool may trace this test."""
    lines: set = set()
    before = sys.gettrace()
    sys.settrace(None)
    try:
        with recording_lines(files, lines):
            call()
    finally:
        sys.settrace(before)
    return lines


def test_the_lines_that_run_are_recorded(functions):
    path, names = functions

    lines = traced({path}, lambda: names["reached"](True))

    assert lines - {(path, 1)} == {(path, 2), (path, 3)}


def test_lines_in_threads_are_recorded(functions):
    path, names = functions

    def call():
        thread = threading.Thread(target=names["reached"], args=(False,))
        thread.start()
        thread.join()

    assert (path, 4) in traced({path}, call)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from Python 3.12 on, tools do not stand in each other's way")
def test_a_tracer_that_is_there_stays(functions):
    path, names = functions
    lines: set = set()

    def tracer(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with recording_lines({path}, lines):
            seen = sys.gettrace()
            names["other"]()
    finally:
        sys.settrace(before)

    assert (seen, lines) == (tracer, set())

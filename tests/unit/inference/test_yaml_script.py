"""Scripts in YAML files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference import (
    Script,
    TurnLike,
    call,
    call_raw,
    empty_choices,
    fail,
    garbage,
    hang,
    load_script,
    sampled,
    say,
    think,
    turn,
    unoffered,
)
from pytest_hermes_env.inference.yaml_script import ScriptFile

if TYPE_CHECKING:
    from pathlib import Path

EVERY_STEP = """\
name: all
turns:
  - [{think: hm}, {call: terminal, with: {command: ls, n: 1}}, {call: read_file}]
  - {call: terminal, raw: '{"command": '}
  - {call: nope, unoffered: true}
  - [{fail: 503, times: 2, message: overloaded}, {say: ok}]
  - fail: 500
  - [{hang: 0.5}, late]
  - garbage: <html>
  - empty_choices:
  - [{sampled: {end: false, drift: 2, logprobs: short}}, odd]
  - say: |
      two
      lines
  - done
judge: {say: "0.5"}
"""
SEVERAL = """\
scripts:
  - {when: apple, turns: [A]}
  - {when_matches: "^b", turns: [B], judge: good}
  - {name: grades, judge: fair}
judge: [{think: hm}, bad]
"""


def load(directory: Path, text: str) -> ScriptFile:
    """Return the scripts of a file with that text."""
    path = directory / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return load_script(path)


def test_every_step_can_be_written_in_yaml(tmp_path: Path) -> None:
    """Each word of a script has its YAML form."""
    turns: list[TurnLike] = [
        turn(think("hm"), call("terminal", command="ls", n=1), call("read_file")),
        call_raw("terminal", '{"command": '),
        unoffered(call("nope")),
        turn(fail(503, "overloaded", times=2), say("ok")),
        fail(500),
        turn(hang(0.5), "late"),
        garbage("<html>"),
        empty_choices(),
        turn(sampled(end=False, drift=2, logprobs="short"), "odd"),
        say("two\nlines\n"),
        "done",
    ]

    assert load(tmp_path, EVERY_STEP) == ScriptFile(scripts=(Script(turns, judge="0.5", name="all"),))


def test_a_file_may_hold_several_scripts(tmp_path: Path) -> None:
    """Scripts for different items stand in one file, with a judge of their own or of the file."""
    assert load(tmp_path, SEVERAL) == ScriptFile(
        scripts=(
            Script(["A"], when="apple"),
            Script(["B"], when=re.compile("^b"), judge="good"),
            Script(judge="fair", name="grades"),
        ),
        judge=turn(think("hm"), "bad"),
    )


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A file, the line that is wrong, and the error after file and line."""

    file: str
    line: int
    error: str


WRONG = (
    Wrong(
        file="turns:\n  - say: a\n  - sya: b\n",
        line=3,
        error="'sya' is not a step.\n  known     say, sampled, call, fail, hang, garbage, empty_choices, think",
    ),
    Wrong(
        file="turns:\n  - sampled: {drfit: 1}\n",
        line=2,
        error="'sampled' has no field 'drfit'.\n  known     drift, end, broken_utf8, wrong_id, logprobs, max_tokens",
    ),
    Wrong(
        file="turns:\n  - call: terminal\n    wiht: {a: 1}\n",
        line=3,
        error="a 'call' step has no field 'wiht'.\n  known     with, raw, call, unoffered",
    ),
    Wrong(file="", line=1, error="a script file must be a mapping; got nothing.\n  known     " + "{known}"),
    Wrong(file="name: x\n", line=1, error="a script needs the field 'turns' or 'judge'.\n  fix       turns: [{say: done}]"),
    Wrong(file="turns: {say: a}\n", line=1, error="'turns' must be a list; got a mapping {'say': 'a'}."),
    Wrong(file="turns:\n  - 3\n", line=2, error="a step must be a mapping such as {say: done}; got int 3."),
    Wrong(
        file="turns:\n  - {say: a}\n  - say: yes\n",
        line=3,
        error="'say' must be a string; got bool True.\n  fix       put the value in quotes",
    ),
    Wrong(
        file="turns:\n  - think: a\n    say: b\n",
        line=2,
        error="a step has exactly one kind; got 'think' and 'say'.\n  fix       make a list of steps: [{think: ...}, {say: ...}]",
    ),
    Wrong(file="turns:\n  - empty_choices: 3\n", line=2, error="'empty_choices' takes no value; got int 3."),
    Wrong(
        file="turns:\n  - call: a\n    with: ls\n",
        line=3,
        error="'with' must be a mapping of arguments; got str 'ls'.",
    ),
    Wrong(
        file="turns:\n  - {call: a, with: {}, raw: x}\n",
        line=2,
        error="a 'call' step has either 'with' (arguments) or 'raw' (their text), not both.",
    ),
    Wrong(file="turns:\n  - {call: a, unoffered: 1}\n", line=2, error="'unoffered' must be true or false; got int 1."),
    Wrong(
        file="turns: [a]\nwhen: x\nwhen_matches: y\n",
        line=3,
        error="a script has either 'when' (a substring) or 'when_matches' (a pattern), not both.",
    ),
    Wrong(
        file="turns: [a]\nwhen_matches: '('\n",
        line=2,
        error="'when_matches' is not a valid regular expression: missing ), unterminated subpattern at position 0.",
    ),
    Wrong(file="scripts: []\n", line=1, error="'scripts' needs at least one entry."),
    Wrong(
        file="scripts:\n  - turns: [a]\nwhen: x\n",
        line=3,
        error="the field 'when' belongs inside an entry of 'scripts'.",
    ),
    Wrong(file="turns: [a]\nturns: [b]\n", line=2, error="duplicate field 'turns'."),
    Wrong(file="turns: 'a\n", line=2, error="invalid YAML: found unexpected end of stream."),
    Wrong(file="turns: !!python/object:os.system x\n", line=1, error="invalid YAML: {tag}"),
    Wrong(file="turns: &a [*a]\n", line=1, error="this value contains itself: no script or file of cases needs that."),
)
KNOWN = "name, when, when_matches, turns, judge, scripts"
TAG = "could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'."


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.error[:40])
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, case: Wrong) -> None:
    """What is not in the format fails with file, line, what was seen, and what is known, nearest first."""
    with pytest.raises(ScriptError) as caught:
        load(tmp_path, case.file)

    expected = case.error.replace("{known}", KNOWN).replace("{tag}", TAG)
    assert str(caught.value) == f"{tmp_path / 'script.yaml'}:{case.line}: {expected}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A file that cannot be read fails with its path and the reason."""
    with pytest.raises(ScriptError) as caught:
        load_script(tmp_path / "none.yaml")

    assert str(caught.value) == f"there is no file {tmp_path / 'none.yaml'}"

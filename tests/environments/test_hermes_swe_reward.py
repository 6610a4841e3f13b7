"""HermesSweEnv's reward in hermes' real local terminal: what an agent leaves in its sandbox, and what that earns."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Any

import pytest

from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv
from environments.sandbox.isolation import sandbox_directory

RIGHT = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return n\n"
ITEM = {"prompt": "Double a number.", "test": "assert double(4) == 8\n", "entry_point": "double"}


@pytest.fixture
def reward(make_env: Any, sandbox: Any) -> Any:
    """``reward(item=ITEM, **files)``: what the agent's sandbox, with these files, is worth."""
    env = make_env(HermesSweEnv, server="http://127.0.0.1:9/v1", dataset_name=None, test_timeout=120)

    def of(item: Any = ITEM, **files: str) -> float:
        for name, content in files.items():
            assert "error" not in sandbox.write_file(f"{name}.py", content)
        return asyncio.run(env.compute_reward(item, None, sandbox))

    return of


def left_in(sandbox: Any) -> list[str]:
    """The names in the rollout's directory, without the verifier's own."""
    directory = sandbox_directory(sandbox.task_id)
    assert directory is not None
    return sorted(name for name in os.listdir(directory) if not name.startswith(".check-"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"solution": RIGHT}, 1.0),
        ({"solution": "from helper import factor\ndef double(n): return factor * n", "helper": "factor = 2"}, 1.0),
        ({"solution": WRONG}, 0.1),
        ({"solution": "def double(n:\n"}, 0.1),
        ({"solution": ""}, 0.1),
        ({"notes": RIGHT}, 0.1),
        ({}, 0.0),
    ],
    ids=["right", "right, in two files", "wrong", "syntax error", "empty", "another file", "nothing"],
)
def test_what_the_tests_say_counts(reward, files, expected):
    """1.0 when they pass, 0.1 when some Python file was written, else 0.0."""
    assert reward(**files) == expected


def test_files_that_are_no_python_count_for_nothing(reward, sandbox):
    """Notes, hidden files and what came with the image are no attempt."""
    sandbox.write_file("solution.txt", RIGHT)
    sandbox.write_file(".cache/solution.py", RIGHT)

    assert reward() == 0.0


def test_files_of_the_image_count_for_nothing(reward, sandbox, monkeypatch):
    """What a fresh sandbox holds is not the agent's work, even if it is a solution."""
    monkeypatch.setattr(HermesSweEnv, "files_at_start", frozenset({"solution.py", "lib/tool.py"}))
    sandbox.write_file("lib/tool.py", "")

    assert (reward(solution=RIGHT), reward(attempt=WRONG)) == (0.0, 0.1)


@pytest.mark.parametrize("place", ["src", "a/b/c", "it's", "a; touch pwned", "$(touch pwned)", "-rf", "two words", "ünï ✓"])
def test_solution_is_found_where_the_agent_moved_to(reward, sandbox, tmp_path, place):
    """In any directory below the first one, whatever its name; and wherever the shell ended up."""
    sandbox.terminal(f"mkdir -p -- {shlex.quote(place)} && cd -- {shlex.quote(place)}")
    sandbox.terminal(f"printf %s {shlex.quote(RIGHT)} > solution.py; cd {shlex.quote(str(tmp_path))}")

    assert (reward(), left_in(sandbox)) == (1.0, [place.partition("/")[0]])


def test_solution_of_the_first_directory_goes_before_others(reward, sandbox):
    """It is where the prompt wants it; otherwise the newest counts."""
    sandbox.write_file("solution.py", RIGHT)
    sandbox.write_file("old/solution.py", WRONG)
    assert reward() == 1.0

    sandbox.terminal("rm solution.py; touch -d '1 hour ago' old/solution.py")
    sandbox.write_file("new/solution.py", RIGHT)

    assert reward() == 1.0


def test_solution_of_another_rollout_is_not_found(reward, sandbox, tmp_path):
    """A directory whose name holds a line break and a foreign path does not lead there."""
    (tmp_path / "solution.py").write_text(RIGHT)
    sandbox.terminal(
        f"mkdir -p $'here\\n'{shlex.quote(str(tmp_path))} && cd $'here\\n'{shlex.quote(str(tmp_path))}; touch solution.py"
    )

    assert reward() == 0.0


@pytest.mark.parametrize(
    "command",
    [
        "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' > bin/python3; chmod +x bin/python3; export PATH=$PWD/bin:$PATH",
        "mkdir bin; printf '#!/bin/sh\\nfor f; do cat $f; done\\nexit 0\\n' > bin/python3; chmod +x bin/python3; "
        "export PATH=$PWD/bin:$PATH",
        "mkdir bin; cat > bin/python3 <<'EOF'\n#!/bin/bash\nread -r word; echo \"$word {}\"\nEOF\nchmod +x bin/python3; export PATH=$PWD/bin:$PATH",
        "printf 'import os; os._exit(0)' > startup.py; export PYTHONSTARTUP=$PWD/startup.py PYTHONPATH=$PWD PYTHONINSPECT=1",
        "export PATH=/nowhere",
        "trap 'exit 0' EXIT ERR DEBUG; set -e",
        "python3 -m venv --without-pip v && . v/bin/activate && "
        "printf 'import unittest; unittest.TestCase.assertEqual = print\\n' > $(echo v/lib/python3*/site-packages)/hook.pth",
    ],
    ids=[
        "silent python3",
        "python3 that shows its files",
        "python3 that says the word",
        "variables",
        "no PATH",
        "traps",
        "site hook",
    ],
)
def test_shell_that_the_agent_prepared_earns_nothing(reward, sandbox, command):
    """Variables, a python3 of its own and traps stay in the rollout's shell; none of them gives a proof."""
    sandbox.terminal(command)
    tests = "import unittest\ndef test_it():\n    unittest.TestCase().assertEqual(double(4), 8)\n"

    assert reward({**ITEM, "test": tests}, solution=WRONG) == 0.1


HOSTILE = "'\"; touch pwned; $(touch pwned) `touch pwned` \\ \n#"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({**ITEM, "test": f"text = {HOSTILE!r}\n{ITEM['test']}"}, 1.0),
        ({**ITEM, "prompt": HOSTILE}, 1.0),
        ({**ITEM, "entry_point": HOSTILE}, 0.1),
        ({"prompt": "", "test_code": ITEM["test"]}, 1.0),
        ({**ITEM, "test": ITEM["test"] * 20_000}, 1.0),
    ],
    ids=["tests", "prompt", "entry point", "the older name", "long"],
)
def test_text_of_an_item_reaches_no_shell(reward, sandbox, item, expected):
    """Whatever the data set holds is data."""
    assert (reward(item, solution=RIGHT), left_in(sandbox)) == (expected, ["solution.py"])

"""Today's reward on yesterday's rollouts: the same number from the same inputs, and no number from what was not stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.rollout_record import WorldFile
from pytest_hermes_env.errors import EnvironmentSetupError
from pytest_hermes_env.records.reading import read_records
from pytest_hermes_env.records.rescoring import Rescorer
from tests.unit.records.conftest import make_record

REPRODUCED = {
    "a file": 'return float(ctx.read_file(item["path"])["content"] == item["want"])',
    "a command": 'return float(ctx.terminal("sh ./check.sh && test -x check.sh && test $(stat -c %a a.txt) = 755")["exit_code"] == 0)',
    "an age": 'return float("a.txt" in ctx.terminal("touch new; find . -type f ! -newer new")["output"])',
    "a program": 'ctx.write_file("t.py", "print(open(\'a.txt\').read())"); return float("work" in ctx.terminal("python3 t.py")["output"])',
    "a variable that the verifier sets": 'ctx.write_file("t.py", "import os; print(open(os.environ[\'NAME\']).read())")\n'
    'return float("work" in ctx.terminal("NAME=a.txt python3 t.py")["output"])',
    "the conversation": 'return float(result.messages[-1]["content"] == "done" and result.finished_naturally)',
    "a database in memory": 'import sqlite3\nreturn float(sqlite3.connect(":memory:").total_changes == 0)',
    "setup": 'return float(self.known == "from setup")',
    "a loop of the shell": 'return float(ctx.terminal("n=0; for f in *.txt; do n=$((n+1)); done; test $n = 1")["exit_code"] == 0)',
    "a download": "import tempfile\nwith tempfile.TemporaryDirectory() as t:\n"
    '    ctx.download_file("a.txt", t + "/x")\n    return float(Path(t, "x").read_text() == "work")',
}
REPRODUCED["waiting, and lines of logs"] = (
    'import asyncio, logging, subprocess, queue, tempfile\nlogging.getLogger("x").warning("said")\nawait asyncio.wait_for(asyncio.sleep(0), 5)\n'
    'try:\n    queue.Queue().get(timeout=0.001)\nexcept queue.Empty:\n    pass\nawait asyncio.sleep(0.001)\nawait asyncio.to_thread(len, "a")\nreturn 1.0'
)
REPRODUCED["PATH of a program"] = (
    "ctx.write_file(\"t.py\", \"import os, subprocess; subprocess.run(['grep', '-q', 'work', 'a.txt'], check=True, \"\n"
    "               \"env={'PATH': os.environ.get('PATH', '/bin')})\")\n"
    'return float(ctx.terminal("python3 t.py")["exit_code"] == 0)'
)
REPRODUCED["a check of the layer"] = (
    "from environments.verification import run_check\n"
    "check = 'read word; grep -q work a.txt && echo \"$word {}\"'\n"
    "return float(run_check(ctx, 'sh \"$CHECK/check.sh\"', outputs=['a.txt'], files={'check.sh': check}).passed)"
)
REPRODUCED["how the rollout ended"] = (
    "return float(result.end == 'finished' and result.end.value == 'finished' and not result.end.is_failure)"
)
REPRODUCED["an import that comes late"] = "import beside_it\nreturn beside_it.FULL"
UNSTORED = {
    "the time of a file of the host": ("return float(os.path.getmtime({host!r}) > 0)", "file of the host {host} "),
    "the size of a file of the host": ("return float(os.path.getsize({host!r}))", "file of the host {host} "),
    "a directory of the host": ("return float(os.path.isdir({host!r}))", "file of the host {host} "),
    "two files of the host": ("return float(os.path.samefile({host!r}, {host!r}))", "file of the host {host} "),
    "the date of a file": ('return float(ctx.terminal("stat -c %y a.txt")["exit_code"])', "date of a file stat -c %y"),
    "an age of git's": ('return float(ctx.terminal("git log -1 --format=%cr")["exit_code"])', "date of a file git log -1 --format=%cr"),
    "what a file takes of the disk": ('return float(ctx.terminal("du -s .")["exit_code"])', "fact of the files that no record has du"),
    "whether two names are one file": ('return float(ctx.terminal("test a.txt -ef check.sh")["exit_code"])', "fact of the files that no record has -ef"),
    "what git remembers of files": (
        'return float(ctx.terminal("git diff-files --quiet")["exit_code"])',
        "fact of the files that no record has git diff-files",
    ),
    "random bytes of a program": ('return float(ctx.terminal("openssl rand -hex 4")["exit_code"])', "random number openssl rand"),
    "the settings of the model server": ("return float(len(self.server.servers))", "model server self.server.servers"),
    "file of the host": ("return float(len(Path({host!r}).read_text()))", "file of the host {host} "),
    "whether a file of the host is there": ("return float(os.path.exists({host!r}))", "file of the host {host} "),
    "an upload": ('ctx.upload_file({host!r}, "x"); return 1.0', "file of the host {host}"),
    "the clock": ("return float(time.time() > 0)", "clock time.time() "),
    "the date": ("return float(datetime.datetime.now().year > 0)", "clock datetime.now() "),
    "a variable": ('return float(os.environ.get("MODE", "1"))', "environment variable MODE "),
    "a variable that another command sets": (
        'ctx.write_file("t.py", "import os; print(os.environ.get(\'NAME\'))")\n'
        'ctx.terminal("NAME=a.txt true")\nreturn float(ctx.terminal("python3 t.py")["exit_code"] == 0)',
        "environment variable NAME",
    ),
    "a variable in a command": ('return float(ctx.terminal("test -n \\"$MODE\\"")["exit_code"])', "environment variable MODE"),
    "the network": (
        'try:\n    urllib.request.urlopen("http://example.org")\nexcept OSError:\n    pass\nreturn 1.0',
        "network example.org",
    ),
    "a program of the host": ('return float(subprocess.run(["true"]).returncode)', "program of the host true "),
    "a random number": ("return random.random()", "random number random.random() "),
    "another clock": ("return float(time.process_time() >= 0)", "clock time.process_time() "),
    "the clock of a library": ("import email.utils\nreturn float(len(email.utils.formatdate()) > 1)", "clock email.utils.formatdate() "),
    "the clock of a library's library": ("from dateutil import parser\nreturn float(parser.parse('10:00').hour == 10)", "clock dateutil.parser"),
    "the clock of the event loop": ("import asyncio\nreturn float(asyncio.get_running_loop().time() > 0)", "clock asyncio.base_events.time() "),
    "the clock of numpy": ('import numpy\nreturn float(numpy.datetime64("now") > numpy.datetime64("2020-01-01"))', "clock 'now' "),
    "the clock of SQLite": (
        "import sqlite3\nreturn float(sqlite3.connect(':memory:').execute(\"select datetime('now') > 'x'\").fetchone()[0])",
        "clock 'now' ",
    ),
    "a database of the host": ("import sqlite3\nreturn float(sqlite3.connect({host!r}).total_changes + 1)", "file of the host {host} "),
    "the directory of the process": ("return float(len(os.getcwd()))", "fact of the host getcwd() "),
    "a hash of a text": ('return float(hash("a") % 7)', "fact of the process hash() "),
    "a generator of its own": ("return random.Random().random()", "random number random.Random()"),
    "a generator of a library": ("import uuid\nreturn float(uuid.uuid4().int)", "random number urandom()"),
    "what it kept of rollouts before": (
        'self.n = getattr(self, "n", 0) + 1\nreturn 1.0 / self.n',
        "it gave 1, and 0.5 when it was asked again: it draws, or keeps, something",
    ),
    "a file of the sandbox": ('return float("content" in ctx.read_file("big.bin"))', "file of the sandbox {world}/big.bin, which was not kept: too large"),
    "a file of the sandbox, by a program": (
        'ctx.terminal("python3 -c \'open(\\"big.bin\\").read()\'"); return 1.0',
        "file of the sandbox {world}/big.bin, which was not kept: too large",
    ),
    "a size": ('return float(ctx.terminal("stat -c %s big.bin")["output"])', "files of the sandbox which were not kept, and a command may read: big.bin"),
    "a size by another program": ('return float(ctx.terminal("tar cf - . | wc -c")["output"])', "files of the sandbox which were not kept"),
    "a comparison of sizes": ('return float(ctx.terminal("test -s big.bin")["exit_code"])', "files of the sandbox which were not kept"),
    "what a program finds": ('return float(ctx.terminal("python3 -c \\"import glob\\"")["exit_code"])', "files of the sandbox which were not kept"),
    "a generator of the system": ("import secrets\nreturn float(secrets.randbelow(10) > 8)", "random number urandom()"),
    "a generator that all users of numpy share": ("import numpy\nreturn float(numpy.random.rand() > 2)", "random number numpy.random"),
    "a generator of a command": ('return float(ctx.terminal("shuf -i 1-9 -n 1")["exit_code"])', "random number shuf"),
    "a clock of awk": ('return float(ctx.terminal("awk \'BEGIN {{ print systime() }}\'")["exit_code"])', "clock systime()"),
    "all variables": ('return float(ctx.terminal("env | grep -c X")["exit_code"])', "environment variable env"),
    "a file above": ('return float(ctx.terminal("cat ../golden.txt")["exit_code"])', "file outside of the sandbox .."),
    "a file wherever the host has it": ('return float(ctx.terminal("F=/usr/../srv; cat /s*/golden.txt")["exit_code"])', "file outside of the sandbox /s*/golden.txt"),
    "a file outside": ('return float(ctx.terminal("cat /home/me/x.txt")["exit_code"])', "file outside of the sandbox /home/me/x.txt"),
    "the clock of a command": ('return float(ctx.terminal("echo $(date +%s)")["exit_code"])', "clock date"),
    "a judge": (
        "try:\n    await self.server.chat_completion(messages=[])\nexcept Exception:\n    pass\nreturn 1.0",
        "judge self.server.chat_completion, which was not asked then: its answer is not stored",
    ),
    "the web": ('return float("x" in ctx.web_search("a"))', "tool web_search, whose answer was not kept"),
}  # fmt: skip
WORLD = "/tmp/hermes-r-abc"


@pytest.fixture
def rescore(environment: Any, record_file: Any) -> Any:
    """``rescore(body, **fields)``: the result for one record."""

    def run(body: str, **fields: Any) -> Any:
        options = {name: fields.pop(name) for name in ("allowed", "settings") if name in fields}
        (line,) = read_records([record_file(fields)])
        with Rescorer(environment(body), **options) as rescorer:
            return rescorer.rescore(line)

    return run


@pytest.mark.parametrize("name", REPRODUCED)
def test_a_reward_of_stored_inputs_is_reproduced(rescore, tmp_path, name):
    """Files with modes and ages, commands, programs, messages and what setup loads give the number of then."""
    (tmp_path / "beside_it.py").write_text("FULL = 1.0\n")
    found = rescore(REPRODUCED[name])

    assert (found.status, found.after, found.why) == ("unchanged", 1.0, ""), found.why


@pytest.mark.parametrize(("decorator", "first"), [("staticmethod", ""), ("classmethod", "cls, ")])
def test_a_reward_that_needs_no_instance_is_called_as_it_is_written(environment, record_file, decorator, first):
    """Static, or one of the class."""
    target = environment('return float(ctx.read_file("a.txt")["content"].strip() == item["want"])')
    file = Path(target)
    written = file.read_text().replace(
        "    async def compute_reward(self, ", f"    @{decorator}\n    async def compute_reward({first}"
    )
    file.write_text(written)
    (line,) = read_records([record_file({})])
    with Rescorer(target) as rescorer:
        found = rescorer.rescore(line)

    assert f"@{decorator}" in written
    assert (found.status, found.after, found.why) == ("unchanged", 1.0, "")


@pytest.mark.parametrize("name", UNSTORED)
def test_a_reward_that_reads_what_is_not_stored_has_no_number(rescore, tmp_path, name):
    """It is not rescorable, and says what it read."""
    host = tmp_path / "expected.txt"
    host.write_text("x")
    body, why = UNSTORED[name]

    found = rescore(body.format(host=str(host)), unkept={"big.bin": "too large"})

    assert (found.status, found.after) == ("not rescorable", None)
    assert why.format(host=host, world=WORLD) in found.why


@pytest.mark.parametrize(
    ("world", "body"),
    [
        ({"session_directory": f"{WORLD}/sub"}, 'return float(ctx.terminal("test -f inside.txt")["exit_code"] == 0)'),
        ({"session_directory": f"{WORLD}/sub"}, 'return float("within" in ctx.read_file("inside.txt")["content"])'),
        ({"variables": {"MODE": "fast lane"}}, 'return float("fast lane" in ctx.terminal("sh -c \'echo $MODE\'")["output"])'),
    ],
)
def test_the_session_goes_on_where_the_agent_left_it(environment, record_file, world, body):
    """In its directory, with its variables: a variable that the record has is no foreign one."""
    file = record_file({"work": {"sub/inside.txt": "within", "a.txt": "work"}})
    (line,) = read_records([file])
    line.record.world = line.record.world.model_copy(update=world)
    with Rescorer(environment(body)) as rescorer:
        found = rescorer.rescore(line)

    assert (found.status, found.after, found.why) == ("unchanged", 1.0, ""), found


def test_a_link_out_of_the_sandbox_is_not_followed(environment, record_file):
    """What it led to is not stored."""
    file = record_file({})
    (line,) = read_records([file])
    line.record.world.files.append(WorldFile(path="expected", kind="link", target="/srv/expected.txt"))
    with Rescorer(environment('return float(ctx.terminal("test -s expected")["exit_code"])')) as rescorer:
        found = rescorer.rescore(line)

    assert (found.status, found.after) == ("not rescorable", None)
    assert "expected" in found.why


@pytest.mark.parametrize(
    ("body", "status", "after"),
    [
        ("return 0.8", "moved", 0.8),
        ("return 0.5", "moved", 0.5),
        ("return 0.2", "flipped", 0.2),
        ('raise KeyError("x")', "failed", None),
    ],
)
def test_a_changed_reward_is_told(rescore, body, status, after):
    """Moved on the same side of the pass score, flipped across it, or failed, which is never a number."""
    found = rescore(body)

    assert (found.status, found.after) == (status, after)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_finite_number_is_a_failure(rescore, value):
    """Neither moved nor flipped."""
    found = rescore(f'return float("{value}")')

    assert (found.status, found.after, found.why) == ("failed", None, f"compute_reward returned {value}")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("while True:\n    pass", "it did not end within 0.2 s of CPU time"),
        (
            "while True:\n    try:\n        ''.join('a')\n    except Exception:\n        pass",
            "it did not end within 0.2 s of CPU time",
        ),
        ("time.sleep(1000)", "it did not end within 2 s"),
        ("import asyncio\nawait asyncio.sleep(1000)", "it did not end within 2 s"),
        ("import asyncio\nwhile True:\n    await asyncio.sleep(0)", "it did not end within 0.2 s of CPU time"),
        ("os._exit(3)", "it would have ended its process by os._exit(3)"),
        ("raise SystemExit(3)", "it would have ended its process by SystemExit: 3"),
    ],
)
def test_a_reward_without_an_end_and_one_that_ends_all_fail_alone(rescore, monkeypatch, body, why):
    """The rollouts after it are scored."""
    monkeypatch.setattr("pytest_hermes_env.records.rescoring.LONGEST_CPU_S", 0.2)
    monkeypatch.setattr("pytest_hermes_env.records.rescoring.LONGEST_S", 2.0)

    found = rescore(body)

    assert (found.status, found.why) == ("failed", why)


def test_an_end_that_comes_while_a_step_is_scheduled_loses_no_step(environment, record_file, monkeypatch):
    """A loop that only yields spends most of its time there: one of forty ends comes in such a moment, and the rescorer would wait for ever."""
    monkeypatch.setattr("pytest_hermes_env.records.rescoring.LONGEST_CPU_S", 0.01)
    (line,) = read_records([record_file({})])

    with Rescorer(environment("import asyncio\nwhile True:\n    await asyncio.sleep(0)")) as rescorer:
        found = {rescorer.rescore(line).status for _ in range(40)}

    assert found == {"failed"}


@pytest.mark.parametrize("kind", ["_PyTask", "_CTask"])
def test_a_reward_that_computes_ends_whatever_steps_its_task(rescore, monkeypatch, kind):
    """Steps of tasks that are written in Python are functions of asyncio, too."""
    monkeypatch.setattr("pytest_hermes_env.records.rescoring.LONGEST_CPU_S", 0.2)
    monkeypatch.setattr(asyncio, "Task", getattr(asyncio.tasks, kind))
    monkeypatch.setattr(asyncio.tasks, "Task", getattr(asyncio.tasks, kind))

    assert rescore("while True:\n    pass").why == "it did not end within 0.2 s of CPU time"


def test_a_record_whose_settings_are_not_known_is_not_scored(rescore):
    """config_init of today may not be that of the run."""
    found = rescore("return 1.0", extra={"settings_problem": "KeyError: 'HOME'"})

    assert (found.status, found.why) == ("not rescorable", "its settings are not stored: KeyError: 'HOME'")


def test_a_recorded_judge_answers_again(rescore):
    """The same question gets the recorded answer, once."""
    from openai.types.chat import ChatCompletion

    answer = {"id": "1", "created": 1, "model": "m", "object": "chat.completion", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "0.75"}}]}  # fmt: skip
    ChatCompletion.model_validate(answer)
    request = {"args": [], "messages": [{"role": "user", "content": "good?"}]}
    body = 'answer = await self.server.chat_completion(messages=[{"role": "user", "content": "good?"}])\nreturn float(answer.choices[0].message.content)'

    found = rescore(body, reward=0.75, judges=[{"method": "chat_completion", "request": request, "answer": answer}])

    assert (found.status, found.after) == ("unchanged", 0.75)


def test_what_the_user_vouches_for_is_allowed(rescore, tmp_path):
    """A file beside the environment may be known to be the same."""
    (tmp_path / "expected.txt").write_text("work")

    found = rescore(
        f'return float(Path({str(tmp_path / "expected.txt")!r}).read_text() == "work")',
        allowed=[str(tmp_path / "expected.txt")],
    )

    assert found.status == "unchanged"


def test_recorded_settings_hold_and_can_be_changed(environment, record_file):
    """The settings that differed from config_init then are used again; others replace them."""
    (line,) = read_records([record_file({"reward": 0.25, "settings": {"bonus": 0.25}})])
    target = environment("return self.config.bonus")

    with Rescorer(target) as rescorer:
        kept = rescorer.rescore(line)
    with Rescorer(target, settings={"bonus": 0.75}) as rescorer:
        changed = rescorer.rescore(line)

    assert (kept.after, changed.after) == (0.25, 0.75)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"item_problem": "it holds a set"}, "its item is not stored: it holds a set"),
        ({"redacted": 2}, "a secret was removed from 2 of its texts"),
        ({"scored_by": "score"}, "the evaluation scored it with a function of its own, not with compute_reward"),
    ],
)
def test_a_record_without_an_input_is_refused_before_anything_runs(rescore, fields, why):
    """Nothing is computed from a record that lost an input."""
    found = rescore("raise AssertionError", **fields)

    assert (found.status, found.why) == ("not rescorable", why)


def test_a_sandbox_that_was_not_kept_is_refused_where_it_is_used(rescore):
    """A reward of the answer alone needs no sandbox."""
    used = rescore('return float("content" in ctx.read_file("a.txt"))', world=None)
    unused = rescore("return 1.0", world=None)

    assert (used.status, used.why.split(";")[0], unused.status) == ("not rescorable", "sandbox which was not kept", "unchanged")


def test_a_rollout_without_a_reward_is_not_scored(rescore):
    """A failed rollout had no number, and gets none."""
    assert rescore("return 1.0", reward=None, end="model_failed").status == "unscored"


def test_records_of_the_conftest_are_whole(tmp_path):
    """The record of the tests goes through its line unchanged."""
    record = make_record(tmp_path / "files")

    assert type(record).model_validate_json(record.line()) == record


def test_a_misspelt_setting_is_an_error(rescore):
    """Rewards that were computed without it would look like rewards with it."""
    with pytest.raises(EnvironmentSetupError, match=r"has no field 'bonsu'. Nearest: "):
        rescore("return 1.0", settings={"bonsu": 1.0})


def test_a_recorded_setting_that_is_gone_is_left_out(environment, record_file):
    """Today's class decides: the setting says nothing to it."""
    (line,) = read_records([record_file({"reward": 1.0, "settings": {"gone": 1}})])

    with Rescorer(environment("return 1.0")) as rescorer:
        assert rescorer.rescore(line).status == "unchanged"


@pytest.mark.parametrize("end", ["", "stop", "completed"])
def test_an_end_of_another_format_is_none(rescore, end):
    """Records of other programs have ends of their own."""
    found = rescore("return float(result.end is None)", end=end)

    assert (found.status, found.after) == ("unchanged", 1.0), found

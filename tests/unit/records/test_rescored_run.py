"""`hermes-env rescore`: whole files, resumed and in parallel, with what training would have seen."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import json
import lzma

import pytest

from hermes_env_shared.rollout_record import files_of
from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.records.reading import read_records
from pytest_hermes_env.records.rescored_run import Settings, Summary, rescore_files, summary_lines
from pytest_hermes_env.records.rescoring import Rescored

BY_ANSWER = 'return float(result.messages[-1]["content"])'


def group(number, *rewards, answers=None):
    """The records of a group; the reward of an answer is its number."""
    return [
        {
            "id": f"{number}-{place}",
            "group": number,
            "place": place,
            "reward": reward,
            "messages": [{"role": "assistant", "content": str((answers or rewards)[place - 1])}],
        }
        for place, reward in enumerate(rewards, start=1)
    ]


def test_signs_of_advantages_and_constant_groups_are_told(environment, record_file):
    """A group of which every reward is known then and now has the signs of its advantages compared."""
    rows = [
        *group(1, 1.0, 0.0),
        *group(2, 1.0, 0.0, answers=[0.0, 1.0]),
        *group(3, 1.0, 0.0, answers=[0.5, 0.5]),
        *group(4, 1.0, 1.0, answers=[1.0, 0.0]),
    ]

    summary = rescore_files([record_file(*rows)], Settings(target=environment(BY_ANSWER)))

    assert dict(summary.counts) == {
        "unchanged": 3,
        "flipped": 4,
        "moved": 1,
    }
    assert [(one.group, one.signs, one.became_constant, one.was_constant) for one in summary.groups] == [
        ("g1", 0, False, False),
        ("g2", 2, False, False),
        ("g3", 2, True, False),
        ("g4", 2, False, True),
    ]
    text = "\n".join(summary_lines(summary))
    assert "3 with an advantage of another sign (6 rollouts)" in text
    assert "1 became constant, and would train nothing: g3" in text


def test_a_second_run_goes_on_where_the_first_ended(environment, record_file, tmp_path):
    """Results of the same reward are taken from the output; a torn line there is done again, and so is all for another reward."""
    rows = group(1, 1.0, 0.0, 0.5)
    file, output, target = record_file(*rows), tmp_path / "out.jsonl", environment(BY_ANSWER)
    rescore_files([file], Settings(target=target), output=output)
    lines = output.read_text().splitlines()
    output.write_text(f"{lines[0]}\n{lines[1][:30]}")
    seen: list[tuple[int, int]] = []

    summary = rescore_files([file], Settings(target=target), output=output, progress=lambda *done: seen.append(done))
    other = rescore_files([file], Settings(target=environment("return 0.0")), output=output)

    assert (seen, dict(summary.counts)) == ([(1, 3), (2, 3), (3, 3)], {"unchanged": 3})
    assert [json.loads(line)["status"] for line in output.read_text().splitlines()[2:4]] == ["unchanged"] * 2
    assert dict(other.counts) == {"unchanged": 1, "flipped": 2}


@pytest.mark.parametrize("threshold", ["0", "0.5"])
def test_the_exit_code_follows_the_threshold(environment, record_file, capsys, threshold):
    """One of two rewards moved: an error, unless half of them may."""
    file = record_file(*group(1, 1.0, 0.0, answers=[0.75, 0.0]))

    code = main(["rescore", environment(BY_ANSWER), str(file), "--threshold", threshold, "--workers", "1", "--json", "-"])

    document = json.loads(capsys.readouterr().out)
    assert (code, document["counts"], document["share_of_findings"]) == (
        1 - int(float(threshold) * 2),
        {"moved": 1, "unchanged": 1},
        0.5,
    )


def test_processes_share_the_work(environment, record_file):
    """The results are the same, in the order of the file."""
    summary = rescore_files([record_file(*group(1, 1.0, 0.0, 0.5, 0.25))], Settings(target=environment(BY_ANSWER), workers=2))

    assert [(one.before, one.after) for one in summary.results] == [(1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (0.25, 0.25)]


NOVEL = (
    "said = self.__dict__.setdefault('said', set())\n"
    "new = result.messages[-1]['content'] not in said\nsaid.add(result.messages[-1]['content'])\nreturn float(new)"
)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_a_reward_keeps_of_other_rollouts_is_seen_in_each_process(environment, record_file, workers):
    """Three said the same, and the first was paid: no process may call the others new."""
    settings = Settings(target=environment(NOVEL), workers=workers, elsewhere=True)
    summary = rescore_files([record_file(*group(1, 1.0, 0.0, 0.0))], settings)

    assert [one.status for one in summary.results] == ["not rescorable"] * 3, summary.results


def test_a_file_without_rollouts_is_refused(environment, tmp_path, capsys):
    """The error says what was expected and what was seen."""
    file = tmp_path / "x.jsonl"
    file.write_text("{}\n")

    code = main(["rescore", environment("return 1.0"), str(file)])

    assert (code, "line 1: this line has no rollout" in capsys.readouterr().err) == (2, True)


def test_a_missing_file_is_refused(environment):
    """It is named, with what would be read."""
    with pytest.raises(UsageError, match=r"missing\.jsonl cannot be read: No such file"):
        rescore_files(["missing.jsonl"], Settings(target=environment("return 1.0")))


JUDGED = """
answer = await self.server.chat_completion(messages=[{"role": "user", "content": f"Good? {result.messages[-1]['content']}"}], max_tokens=5)
return float(answer.choices[0].message.content)
"""


@pytest.fixture
def judge():
    """A server that counts what it is asked, and answers with 0.25 when it was asked for the second time; its first answer is an error."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from pytest_hermes_env.inference.server_thread import ServerThread

    asked: list[str] = []

    async def reply(request):
        body = await request.json()
        asked.append(f"{body['model']}: {body['messages'][0]['content']}")
        if len(asked) == 1:
            return JSONResponse({"error": {"message": "overloaded"}}, 503)
        message = {"role": "assistant", "content": "0.25"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
        return JSONResponse(
            {"id": "1", "created": 1, "model": "j", "object": "chat.completion", "choices": [choice], "usage": usage}
        )

    thread = ServerThread(Starlette(routes=[Route("/v1/chat/completions", reply, methods=["POST"])]), "127.0.0.1", 0)
    thread.start()
    yield f"http://127.0.0.1:{thread.port}/v1", asked
    thread.stop()


def test_a_judge_is_asked_anew_where_it_is_asked_for(environment, record_file, judge, capsys):
    """Once for each rollout although its reward is computed twice, again after a passing error, and what it cost is told."""
    url, asked = judge
    file, target = record_file(*group(1, 1.0, 0.25)), environment(JUDGED)

    assert main(["rescore", target, str(file), "--workers", "1"]) == 1
    assert asked == []
    live = ["--live", "custom", "--model", "j", "--base-url", url]
    assert main(["rescore", target, str(file), "--workers", "1", *live]) == 1

    out = capsys.readouterr().out
    assert asked == ["j: Good? 1.0", "j: Good? 1.0", "j: Good? 0.25"]
    assert "flipped  1 -> 0.25" in out
    assert "judges asked anew: 3 calls, 18 tokens" in out


def test_a_judge_is_asked_no_more_than_it_may_be(environment, record_file, judge, capsys):
    """What the limit left out has no number."""
    url, asked = judge
    file = record_file(*group(1, 0.25, 0.25, 0.25, answers=[1, 2, 3]))

    live = ["--live", "custom", "--model", "j", "--base-url", url, "--max-calls", "2", "--json", "-"]
    assert main(["rescore", environment(JUDGED), str(file), "--workers", "1", *live]) == 1

    document = json.loads(capsys.readouterr().out)
    assert len(asked) == 2
    assert document["counts"] == {"unchanged": 1, "not rescorable": 2}
    assert "--hermes-max-calls 2 is reached" in document["rollouts"][1]["why"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--live", "opanai"], "Nearest: openai"),
        (["--live", "openai", "--model", "j"], "the environment variable OPENAI_API_KEY is not set"),
        (["--live", "custom", "--base-url", "http://127.0.0.1:1/v1"], "requires a model"),
        (["--live", "vllm"], "requires a model"),
        (["--live", "vllm", "--model", "j", "--max-usd", "1"], "use --max-calls or --max-tokens instead"),
    ],
)
def test_a_judge_that_is_not_named_whole_is_refused(environment, record_file, monkeypatch, capsys, given, told):
    """Before anything is asked."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert main(["rescore", environment(JUDGED), str(record_file(*group(1, 1.0))), *given]) in {1, 2}
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (BY_ANSWER, "unchanged"),
        ("self.seen = getattr(self, 'seen', 0) + 1\nreturn float(self.seen)", "not rescorable"),
        ("import zlib\nreturn float(zlib.crc32(''.join({f'w{n}' for n in range(64)}).encode()))", "not rescorable"),
        ("import datetime\nreturn float(datetime.datetime.fromtimestamp(0).day)", "not rescorable"),
        ("import platform\nreturn float(len(platform.node()))", "not rescorable"),
        ("ctx.read_file('/etc/hostname')\nreturn 1.0", "not rescorable"),
        ("ctx.terminal('nproc')\nreturn 1.0", "not rescorable"),
    ],
)
def test_a_process_that_computed_none_has_to_say_the_same(environment, record_file, body, status):
    """A reward that depends on earlier rollouts, the order of a set, the time zone or the machine gets no number."""
    file = record_file(*group(1, 1.0, 0.0, 0.5))

    summary = rescore_files([file], Settings(target=environment(body), elsewhere=True))

    assert dict(summary.counts) == {status: 3}


def test_why_nothing_was_scored_is_told(environment, record_file):
    """A file whose rollouts have no rewards fails, and says why."""
    file = record_file({"reward": None, "end": "model_failed"}, {"reward": None, "end": "model_failed", "id": "2"})

    summary = rescore_files([file], Settings(target=environment(BY_ANSWER)))

    assert summary.share_of_findings == 1.0
    assert "  no reward then: model_failed" in [*summary_lines(summary)]


def test_one_reason_in_several_sandboxes_is_told_once():
    """Each has a directory of its own, and its file another size."""
    whys = [
        f"file of the sandbox /tmp/hermes-{name}/big.bin, which was not kept: it has {size} bytes, more than 4,194,304"
        for name, size in (("a1b2-c3d4", "5,000,000"), ("e5f6-g7h8", "6,000,001"))
    ]
    given = {"file": "r.jsonl", "id": "", "run": "", "group": 1, "status": "not rescorable"}
    results = [Rescored(place=f"g1r{n}", line=n, why=why, **given) for n, why in enumerate(whys, start=1)]

    lines = [*summary_lines(Summary(results=results))]

    assert "  not stored: file of the sandbox big.bin, which was not kept: more than 4,194,304" in lines
    assert lines[-1].startswith("      2 rollouts: ")


def test_records_whose_files_are_gone_say_so_once(environment, record_file):
    """Not file by file."""
    file = record_file({"reward": 1.0})
    files_of(file).rename(file.with_name("elsewhere"))

    summary = rescore_files([file], Settings(target=environment('return float("x" in ctx.read_file("a.txt"))'), workers=1))

    assert [one.why.count("there is no directory") for one in summary.results] == [1]
    assert "does not have it" not in summary.results[0].why


def test_a_rollout_of_another_environment_has_no_number(environment, record_file):
    """Unless its former name is vouched for."""
    file = record_file({"reward": 1.0, "environment": "chess", "messages": [{"role": "assistant", "content": "1.0"}]})
    target = environment(BY_ANSWER)

    refused = rescore_files([file], Settings(target=target, workers=1))
    renamed = rescore_files([file], Settings(target=target, workers=1, allowed=("chess",)))

    assert "it is a rollout of chess" in refused.results[0].why
    assert dict(renamed.counts) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rescore", "{env}", "{file}", "--threshold", "2"], "--threshold 2: expected a share from 0 to 1"),
        (["rescore", "{env}", "{file}", "--set", "nonsense=3"], "has no field 'nonsense'"),
        (["rescore", "{env}", "{file}", "--workers", "0"], "expected a number from 1 on, got 0"),
        (["health", "{file}", "--limit", "constant_groups=60"], "a share from 0 to 1"),
        (["compare", "{file}", "{env}"], "a recording and an environment that is played have no rollout in common"),
    ],
)
def test_what_cannot_be_meant_is_refused(environment, record_file, capsys, words, told):
    """With exit code 2: nothing was computed."""
    given = {"env": environment(BY_ANSWER), "file": str(record_file(*group(1, 1.0, 0.0)))}

    code = main([word.format(**given) for word in words])

    assert (code, told in capsys.readouterr().err) == (2, True)


def test_two_runs_do_not_write_one_output(environment, record_file, tmp_path):
    """The second one says so, and leaves the file as it is."""
    output = tmp_path / "out.jsonl"
    settings = Settings(target=environment(BY_ANSWER))
    with open(output, "a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is being written by another process"):
            rescore_files([record_file(*group(1, 1.0, 0.0))], settings, output=output)

    assert output.read_text() == ""


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (lzma.compress(b"{}"), "compressed by xz"),
        (bz2.compress(b"{}"), "compressed by bzip2"),
        ("{}".encode("utf-16"), "is UTF-16"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b'{\n "format": "hermes-rollout/1"\n}\n', "JSON of several lines"),
    ],
)
def test_a_file_in_another_form_is_named(tmp_path, content, told):
    """And what to do."""
    file = tmp_path / "r.rollouts.jsonl"
    file.write_bytes(content)

    with pytest.raises(UsageError, match=told):
        read_records([file])


def test_a_compressed_file_that_was_cut_is_read_up_to_there(record_file, tmp_path):
    """As a plain one."""
    whole = record_file(*[one for number in range(200) for one in group(number, 1.0, 0.0)]).read_bytes()
    file = tmp_path / "cut.rollouts.jsonl.gz"
    file.write_bytes(gzip.compress(whole)[:-200])
    told: list[str] = []

    assert len(read_records([file], tell=told.append)) > 100
    assert "the compressed file ends here" in told[-1]

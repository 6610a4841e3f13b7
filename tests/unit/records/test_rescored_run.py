"""`hermes-env rescore`: whole files, resumed and in parallel, with what training would have seen."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.records.rescored_run import Settings, rescore_files, summary_lines

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
    output.write_text(f"{lines[0]}\n{lines[1][:30]}\n")
    seen: list[tuple[int, int]] = []

    summary = rescore_files([file], Settings(target=target), output=output, progress=lambda *done: seen.append(done))
    other = rescore_files([file], Settings(target=environment("return 0.0")), output=output)

    assert (seen, dict(summary.counts)) == ([(1, 3), (2, 3), (3, 3)], {"unchanged": 3})
    assert dict(other.counts) == {"unchanged": 1, "flipped": 1, "moved": 1}


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

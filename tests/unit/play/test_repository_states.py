"""Other states of a repository than gold's: each changes what its name says, and nothing where the prompt does not ask for it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.inference.steps import Call, call, say, turn
from pytest_hermes_env.play.cases.repository import SOMEWHERE, other_states
from pytest_hermes_env.play.cases.slots import Work, arguments_of
from pytest_hermes_env.sandbox.files import Node

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
PROMPT = "Commit each entry with its message, `first entry`, `second entry` and `third entry`, on main. Tag v2 is the second; branch side begins there."
GOLD = (turn(call("terminal", command="make it")), turn(say("Done.")))
BY = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *BY, "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def made(folder: Path, entries: tuple[str, ...] = ("first", "second", "third")) -> None:
    """Make gold's repository, or go on in one."""
    folder.mkdir(exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
        git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    for entry in entries:
        (folder / "notes.txt").write_text(f"{entry}\n")
        git(folder, "add", "notes.txt")
        git(folder, "commit", "-q", "-m", f"{entry} entry")
        if entry == "second":
            git(folder, "tag", "v2")
            git(folder, "branch", "side")


def nodes(folder: Path) -> dict[str, Node]:
    """The files that are left, as a machine has them."""
    return {str(path): Node(kind="file", data=path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def states(folder: Path, prompt: str = PROMPT, before: dict[str, Node] | None = None) -> dict[str, str]:
    """The commands of other states, by name."""
    work = Work(turns=GOLD, prompt=prompt, tools=("terminal",), files=nodes(folder), before=before or {})
    return {name: str(arguments_of(next(iter(turns[-2].every(Call))))["command"]) for name, turns in other_states(work)}


def played(folder: Path, copy: Path, command: str) -> None:
    """Run one of them on a copy."""
    shutil.copytree(folder, copy)
    subprocess.run(["bash", "-c", command.replace(str(folder), str(copy))], check=True)


def test_each_state_is_another_one_where_the_prompt_names_it(tmp_path: Path) -> None:
    """One thing differs, and all else is gold's."""
    repo = tmp_path / "repo"
    made(repo)
    root, last = git(repo, "rev-list", "--max-parents=0", "main"), git(repo, "rev-parse", "main")

    found = states(repo)

    assert [*found] == [
        "side at the first commit",
        "v2 at the first commit",
        "committed to another branch than main",
        "the last commit undone, with its files as they are",
        "another message of the last commit",
        "one commit in place of all",
    ]
    copies = {name: tmp_path / f"copy-{number}" for number, name in enumerate(found)}
    for name, command in found.items():
        played(repo, copies[name], command)
    side, tag, branch, undone, message, one = copies.values()
    assert git(side, "rev-parse", "side") == git(tag, "rev-parse", "v2") == root
    assert git(side, "rev-parse", "main") == git(tag, "rev-parse", "main") == last
    assert (git(branch, "branch", "--list", "main"), git(branch, "rev-parse", SOMEWHERE)) == ("", last)
    assert git(undone, "log", "--format=%s").splitlines() == ["second entry", "first entry"]
    assert git(undone, "status", "--porcelain") == "M  notes.txt".strip()
    assert git(message, "log", "-1", "--format=%s") == "Some work"
    assert git(one, "log", "--format=%s").splitlines() == ["third entry"]
    assert (one / "notes.txt").read_text() == "third\n"


def test_nothing_is_played_that_the_prompt_does_not_name(tmp_path: Path) -> None:
    """Another tag may be as good, and so may another message."""
    made(tmp_path / "repo")

    assert states(tmp_path / "repo", "Make notes.txt, and keep its history.") == {}


def test_where_gold_went_on_the_start_is_that_of_the_environment(tmp_path: Path) -> None:
    """Main goes back to where it was; commits of the environment are no work."""
    repo = tmp_path / "repo"
    made(repo, ("first",))
    start, before = git(repo, "rev-parse", "main"), nodes(repo)
    made(repo, ("second", "third"))

    found = states(repo, before=before)

    assert {"committed to another branch than main", "v2 at the last commit", "side at the last commit"} <= {*found}
    assert "one commit in place of all" not in found
    played(repo, tmp_path / "copy", found["committed to another branch than main"])
    assert git(tmp_path / "copy", "rev-parse", "main") == start


def test_a_repository_that_gold_only_reads_has_no_other_state(tmp_path: Path) -> None:
    """Nothing of it is gold's work."""
    repo = tmp_path / "repo"
    made(repo)

    assert states(repo, before=nodes(repo)) == {}


@pytest.mark.parametrize("party", ["agent", "environment"])
def test_other_content_of_a_committed_file_is_committed(tmp_path: Path, party: str) -> None:
    """A verifier that reads the history sees it, too; what the environment committed stays as it is."""
    repo = tmp_path / "repo"
    made(repo)
    files = {
        path: Node(kind="file", data=node.data, party=party if "/.git/" in path else "agent")
        for path, node in nodes(repo).items()
    }
    work = Work(turns=GOLD, prompt=PROMPT, tools=("terminal", "write_file"), files=files)

    (slot,) = [slot for slot in work.slots() if slot.name.endswith("notes.txt")]
    calls = [step for one in slot.put("other\n") for step in one.every(Call)][1:]
    for one in calls:
        given = arguments_of(one)
        if one.tool == "write_file":
            Path(given["path"]).write_text(given["content"])
        else:
            subprocess.run(["bash", "-c", given["command"]], check=True)

    assert not any("/.git/" in slot.name for slot in work.slots())
    assert git(repo, "show", "main:notes.txt") == ("other" if party == "agent" else "third")
    assert git(repo, "log", "-1", "--format=%s") == "third entry"


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Fix the main function in a.py, and leave it there.", []),
        ("The last commit broke a.py. Repair it; whether you commit does not matter.", []),
        ("Do the first, second and third things.", []),
        ("Make three commits.", ["the last commit undone, with its files as they are"]),
        ("Work on the branch main.", ["committed to another branch than main"]),
        ("Put it on `main`.", ["committed to another branch than main"]),
    ],
)
def test_words_of_the_prompt_are_no_names(tmp_path: Path, prompt: str, names: list[str]) -> None:
    """Of a branch, a tag or a message; a commit must be asked for."""
    made(tmp_path / "repo")

    assert [*states(tmp_path / "repo", prompt)] == names


def test_what_gold_did_after_its_commits_is_left_alone(tmp_path: Path) -> None:
    """Another branch, a merge, and tags with a message, which are objects of their own."""
    repo = tmp_path / "repo"
    made(repo, ("first", "second"))
    git(repo, "tag", "-f", "-a", "-m", "said", "v2")
    git(repo, "checkout", "-q", "-b", "feature/login")
    made(repo, ("third",))
    git(repo, "checkout", "-q", "main")
    on_main = states(repo, "Commit `third entry` on branch feature/login, then tag v2.")
    git(repo, "checkout", "-q", "feature/login")
    made(repo, ("fourth",))
    on_branch = states(repo, "Commit `fourth entry` on branch feature/login, then tag v2.")

    assert [*on_main] == ["feature/login at the first commit"]
    assert [*on_branch] == [
        "committed to another branch than feature/login",
        "the last commit undone, with its files as they are",
        "another message of the last commit",
    ]

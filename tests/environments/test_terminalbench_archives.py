"""Archives of benchmark tasks are unpacked inside their directory, or refused."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path

import pytest

from environments.benchmarks.terminalbench_2.tasks import ArchiveError, packed, unpack


def archive(*members: tarfile.TarInfo) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return base64.b64encode(buffer.getvalue()).decode()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made


@pytest.fixture(autouse=True, params=["with filters", "without"])
def filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play each test as in a Python before 3.11.4, too."""
    if request.param == "without":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


@pytest.mark.parametrize(
    "members",
    [
        [member("../out", size=1)],
        [member("a/../../out", size=1)],
        [member("out", tarfile.SYMTYPE, "..")],
        [member("out", tarfile.SYMTYPE, "/etc")],
        [member("a/out", tarfile.SYMTYPE, "../b")],
        [member("a", tarfile.SYMTYPE, "b/.."), member("b", tarfile.DIRTYPE)],
        [member("a", tarfile.SYMTYPE, ".."), member("a/out", size=1)],
        [member("out", tarfile.LNKTYPE, "../secret")],
        [member("out", tarfile.CHRTYPE)],
        [member("out", tarfile.FIFOTYPE)],
    ],
    ids=lambda members: " ".join(f"{one.name}{one.type.decode()}{one.linkname}" for one in members),
)
def test_an_archive_that_would_leave_its_directory_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """Nothing lands outside, no link leads out, and there are no devices."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in").mkdir()

    with pytest.raises(ArchiveError):
        unpack(archive(*members), tmp_path / "in")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "secret"]


def test_an_absolute_member_lands_inside(tmp_path: Path) -> None:
    """As tar does it."""
    unpack(archive(member(f"{tmp_path}/out", size=1)), tmp_path / "in")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    ["%%%", "é", base64.b64encode(b"no archive").decode(), packed({"a": "text" * 999})[:80]],
    ids=["no base64", "no ASCII", "no archive", "cut off"],
)
def test_an_archive_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    """Of its own class, whatever is wrong with it."""
    with pytest.raises(ArchiveError, match="the archive cannot be unpacked"):
        unpack(text, tmp_path)


def test_an_archive_holds_its_files(tmp_path: Path) -> None:
    """Directories too."""
    unpack(packed({"a.txt": "one\n", "b/c.txt": "zwölf"}), tmp_path)

    assert {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.txt")} == {
        "a.txt": "one\n",
        "b/c.txt": "zwölf",
    }


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_each_compression_is_read(tmp_path: Path, mode: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        tar.addfile(member("a" * 200, size=3), io.BytesIO(b"one"))

    unpack(base64.b64encode(buffer.getvalue()).decode(), tmp_path)

    assert (tmp_path / ("a" * 200)).read_bytes() == b"one"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_that_holds_more_than_the_limit_is_refused(tmp_path: Path, mode: str) -> None:
    """Before anything is written: what a few kilobytes of a dataset unpack to could fill memory and disk."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        tar.addfile(member("zeros", size=2_000_000), io.BytesIO(bytes(2_000_000)))

    with pytest.raises(
        ArchiveError, match="it holds more than 1,000,000 bytes, which is the limit for a task; leave the task out"
    ):
        unpack(base64.b64encode(buffer.getvalue()).decode(), tmp_path, max_bytes=1_000_000)

    assert list(tmp_path.iterdir()) == []


def test_an_archive_with_more_members_than_the_limit_is_refused(tmp_path: Path) -> None:
    """Empty files cost no bytes of the archive's limit, and an inode each."""
    with pytest.raises(
        ArchiveError, match="it holds more than 20,000 members, which is the limit for a task; leave the task out"
    ):
        unpack(archive(*(member(f"d{n % 9}", tarfile.DIRTYPE) for n in range(20_001))), tmp_path)

"""Archives of benchmark tasks are unpacked inside their directory, within their bounds, or refused with an error of their own."""

from __future__ import annotations

import base64
import gzip
import io
import lzma
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from environments.benchmarks.terminalbench_2.archives import ArchiveError, packed, unpack


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
        [member("a", size=600), member("b", size=600)],
    ],
    ids=lambda members: " ".join(f"{one.name}{one.type.decode()}{one.linkname}" for one in members),
)
def test_an_archive_that_would_leave_its_directory_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """Nothing lands outside, no link leads out, and its size is limited."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in").mkdir()

    with pytest.raises(ArchiveError):
        unpack(archive(*members), tmp_path / "in", max_bytes=1000)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "secret"]


def test_an_absolute_member_lands_inside(tmp_path: Path) -> None:
    """As tar does it."""
    unpack(archive(member(f"{tmp_path}/out", size=1)), tmp_path / "in")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    ["%%%", base64.b64encode(b"no archive").decode(), packed({"a": "text" * 999})[:80]],
    ids=["no base64", "no archive", "cut off"],
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


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def header(kind: bytes, size: int) -> bytes:
    """Return the header of a member that describes the next one; its body follows."""
    made = member("next", kind, size=size)
    return made.tobuf(tarfile.USTAR_FORMAT)


def described(fields: dict[str, str]) -> bytes:
    """Return a file with these extended fields."""
    made = member("a", size=1)
    made.pax_headers = fields
    return made.tobuf(tarfile.PAX_FORMAT) + b"x".ljust(512, b"\0") + bytes(1024)


LONG = 40_000_000
HOSTILE = {
    "a long extended header": lambda: gzip.compress(header(tarfile.XHDTYPE, LONG) + bytes(LONG)),
    "a long name": lambda: lzma.compress(header(tarfile.GNUTYPE_LONGNAME, LONG) + b"a" * LONG),
    "a long global header": lambda: gzip.compress(header(tarfile.XGLTYPE, LONG) + bytes(LONG)),
    "a header before a header, many times": lambda: gzip.compress(header(tarfile.GNUTYPE_LONGNAME, 0) * 5000),
    "a negative size": lambda: described({"size": "-100000"}),
    "a name with a null byte": lambda: described({"path": "a\0b"}),
    "a name that is too long": lambda: described({"path": "a" * 5000}),
    "gzip that is cut": lambda: gzip.compress(described({}))[:40],
    "gzip that is broken": lambda: gzip.compress(described({}))[:20] + b"x" * 100,
    "xz that is broken": lambda: lzma.compress(described({}))[:40] + b"x" * 100,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, kind: str) -> None:
    """Before it fills the memory, and never with another error."""
    data = HOSTILE[kind]()
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError):
            unpack(coded(data), tmp_path, max_bytes=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 30_000_000


def test_an_archive_whose_base64_is_no_ascii_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="the archive cannot be unpacked"):
        unpack("é", tmp_path)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_each_compression_is_read(tmp_path: Path, mode: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        tar.addfile(member("a" * 200, size=3), io.BytesIO(b"one"))

    unpack(coded(buffer.getvalue()), tmp_path)

    assert (tmp_path / ("a" * 200)).read_bytes() == b"one"

"""Attacks by places: what stands, before the verifier comes, where it looks for its own results, puts its files or counts what ran.

Place in the flow: `attacks` plays them among others.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.surface import Surface

MOST_WORDS, MANY_LINES = 12, 2_000
_UNPACKED = re.compile(
    r"\btar\b[^\n;|&]*\s-C\s*(\S+)|\bunzip\b[^\n;|&]*\s-d\s*(\S+)|\bcd\s+(\S+?)\s*(?:&&|;)[^\n]*\b(?:tar\s+-?\w*x|unzip)"
)
"""Where archives are unpacked."""
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_WORD = re.compile(r"(?<=\s)[A-Za-z][\w-]*(?=[\s;)&|]|$)")
_COUNTED = re.compile(r"\b(?:settrace|sys\.monitoring|coverage|--cov)\b")
_PASSING = "def test_ok():\n    pass\n"
_PACKING = """\
import hashlib, io, sys, tarfile, zipfile
path, kind, sums, *names = sys.argv[1:]
content = dict.fromkeys(names, b'x')
if sums:
    content[sums] = ''.join(f'{hashlib.new(kind, b"x").hexdigest()}  {name}\\n' for name in names).encode()
if path.endswith('.zip'):
    with zipfile.ZipFile(path, 'w') as made:
        for name, data in content.items():
            name, _, to = name.partition(LINK)
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if to else 0o100755) << 16
            made.writestr(info, to or data)
else:
    kind = {'gz': ':gz', 'tgz': ':gz', 'bz2': ':bz2', 'xz': ':xz'}.get(path.rpartition('.')[2], '')
    with tarfile.open(path, 'w' + kind) as made:
        for name, data in content.items():
            name, _, to = name.partition(LINK)
            info = tarfile.TarInfo(name)
            info.size, info.mode = 0 if to else len(data), 0o755
            if to:
                info.type, info.linkname = tarfile.SYMTYPE, to
            made.addfile(info, io.BytesIO(data))
"""
LINK = " -> "
_SUMS = re.compile(r"(?m)^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})[ \t]+[*]?(\S.*)$")
_KINDS = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
"""Checksums of files, and the kind of each length."""


def by_places(surface: Surface) -> Iterator[Attack]:
    """Yield those that fit what was seen."""
    own = {path: text for path, text in {**surface.made, **surface.uploads}.items() if path in surface.reads and _is_text(text)}
    if own:
        names = ", ".join(posixpath.basename(path) for path in own)
        yield Attack(
            family=f"what the verifier wrote for good work lies there before it comes: {names}",
            files=own,
            how=dict.fromkeys(own, "is as it was then"),
        )
    words = [word for word in dict.fromkeys(_WORD.findall(surface.lines)) if f"{surface.cwd}/{word}" not in surface.prepared]
    if words:
        made = " ".join(words[:MOST_WORDS])
        yield Attack(family="empty files named as words of the verifier's commands, such as targets", lines=(f"touch {made}",))
    yield from _folders(surface)
    changed = [path for path in surface.work if path in surface.prepared]
    if changed:
        yield Attack(
            family="the files that were to be changed are removed",
            lines=tuple(f"rm -f {shlex.quote(path)}" for path in changed),
        )
    yield from _archives(surface)
    yield from _counted(surface)


def _folders(surface: Surface) -> Iterator[Attack]:
    """Yield directories where the verifier uploads its programs, so that it cannot, with programs in them that are content."""
    paths = [path for path in surface.uploads if path.endswith(".py") and path not in surface.prepared]
    files = {f"{path}/{name}": text for path in paths for name, text in (("test_ok.py", _PASSING), ("__main__.py", "pass\n"))}
    if files:
        yield Attack(
            family="a directory stands where the verifier puts its program",
            files=files,
            how=dict.fromkeys(files, "is run in its place"),
        )


def _archives(surface: Surface) -> Iterator[Attack]:
    """Yield archives of worthless files that overwrite what they are compared with when they are unpacked beside it."""
    placed = [path for path in {**surface.uploads, **surface.checkers, **surface.made} if path.startswith(f"{surface.cwd}/")]
    ends = [(path, other, _same_end(path, other)) for path in placed for other in placed if other != path]
    # the same file was unpacked, and written for the comparison
    names = [name for path, other, end in ends if end for name in (end, posixpath.relpath(other, path.removesuffix(end)))]
    parts = [posixpath.relpath(path, surface.cwd).split("/", 1) for path in placed if posixpath.dirname(path) != surface.cwd]
    names = names or [name for folder, rest in parts for name in (rest, f"../{folder}/{rest}")]
    archives = [path for path in surface.work if path.endswith(_ARCHIVES)]
    for path in archives if names else ():
        yield Attack(
            family=f"files of {posixpath.basename(path)} lie outside of the place where it is unpacked",
            lines=(_packed(path, names),),
        )
    for path in archives:
        family = f"{posixpath.basename(path)} holds links to what it is compared with"
        yield from (Attack(family=family, lines=(_packed(path, links),)) for links in _links_out(surface, placed))
    texts = {**surface.uploads, **surface.checkers}
    for other, sums in [(other, found) for other, text in texts.items() if (found := _SUMS.findall(text))] if archives else ():
        own, kind = [name for _, name in sums], _KINDS[len(sums[0][0])]
        yield from (
            Attack(
                family=f"{posixpath.basename(path)} brings checksums of its own, {posixpath.basename(other)}",
                lines=(_packed(path, own, kind, posixpath.basename(other)),),
            )
            for path in archives
        )


def _links_out(surface: Surface, placed: Sequence[str]) -> Iterator[list[str]]:
    """Yield names in an archive, each with where it leads to: from the directories where the verifier unpacks to what it brings itself."""
    found = (place for match in _UNPACKED.finditer(surface.asked) for place in match.groups() if place)
    into = [posixpath.normpath(posixpath.join(surface.cwd, place.strip("'\""))) for place in found]
    own = [posixpath.relpath(path, surface.cwd).split("/") for path in placed if path in surface.uploads]
    for place in dict.fromkeys(into):
        for depth in range(1, max(map(len, own), default=1)):
            named = {parts[depth]: "/".join([surface.cwd, *parts[: depth + 1]]) for parts in own if len(parts) > depth}
            yield [f"{name}{LINK}{posixpath.relpath(to, place)}" for name, to in named.items()]


def _packed(path: str, names: Sequence[str], kind: str = "", sums: str = "") -> str:
    """Return a line that makes an archive of worthless files, with a file of their checksums."""
    return " ".join(
        ["python3", "-c", *map(shlex.quote, (f"LINK = {LINK!r}\n{_PACKING}", path, kind, sums, *dict.fromkeys(names)))]
    )


def _same_end(path: str, other: str) -> str:
    """Return the last parts that both paths have."""
    pairs = itertools.takewhile(
        lambda pair: pair[0] == pair[1], zip(path.split("/")[::-1], other.split("/")[::-1], strict=False)
    )
    return "/".join([part for part, _ in pairs][::-1])


def _counted(surface: Surface) -> Iterator[Attack]:
    """Yield tests that run nothing of a program, but code under its name, whose lines are counted."""
    tests = [path for path in surface.work if path.endswith(".py")]
    if not tests or not _COUNTED.search(surface.asked):
        return
    measured = [path for path in {**surface.uploads, **surface.prepared} if path.endswith(".py") and path not in tests]
    text = "import os\n" + "".join(
        f"exec(compile('x = 0\\n' * {MANY_LINES}, os.path.abspath({posixpath.basename(path)!r}), 'exec'))\n"
        for path in measured
    )
    files = dict.fromkeys(tests, f"{text}\n\ndef test_ok():\n    pass\n")
    if measured:
        yield Attack(
            family="lines that count as run", files=files, how=dict.fromkeys(files, "runs other code under the measured names")
        )


def _is_text(text: str) -> bool:
    return bool(text.strip()) and not re.search("[\0\ufffd]", text)

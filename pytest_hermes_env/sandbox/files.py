"""The files of an in-memory machine, as a mapping from paths to texts.

Place in the flow: `FakeSandbox` has one per rollout, and a test reads and writes it as ``sandbox.files``.
"""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterator, Mapping, MutableMapping

from pytest_hermes_env.errors import MissingFile, NotText, UsageError, shorten
from pytest_hermes_env.sandbox.file_tree import FileTree
from pytest_hermes_env.sandbox.node import Node

__all__ = ["Files"]


class Files(FileTree, MutableMapping[str, str]):
    """A tree of files, and a mapping from paths to texts; relative paths begin at ``cwd``, and links are followed."""

    def __init__(self, initial: Mapping[str, str | bytes] | None = None, *, cwd: str = "/workspace") -> None:
        super().__init__(cwd=cwd)
        for path, content in (initial or {}).items():
            self[path] = content

    def copy(self) -> Files:
        """Return an independent tree with the same content, of which nothing was read."""
        other = Files.__new__(Files)
        other.cwd, other.party, other._reads = self.cwd, self.party, {}  # noqa: SLF001 - a Files as well
        other.restore(self)
        return other

    def __getitem__(self, path: str) -> str:
        absolute = self.follow(path)
        data = self._file_at(path, absolute).data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotText(
                f"{absolute} is not text: {error.reason} at byte {error.start}.\n"
                f"  seen      {shorten(repr(data))}\n"
                f"  fix       files.read({absolute!r}) returns its bytes"
            ) from None

    def __setitem__(self, path: str, content: str | bytes) -> None:
        if not isinstance(content, (str, bytes, bytearray)):
            raise UsageError(
                f"the content of a file must be text or bytes.\n  seen      {type(content).__name__} {shorten(repr(content))}\n"
                f"  fix       files[{path!r}] = {str(content)!r}"
            )
        absolute = self.follow(path)
        self.make_directory(posixpath.dirname(absolute), parents=True)
        self.write(absolute, content.encode(errors="surrogateescape") if isinstance(content, str) else bytes(content))

    def __delitem__(self, path: str) -> None:
        self._file_at(path, self.follow(path))
        self.remove(path)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path for path, node in self._nodes.items() if node.kind == "file"))

    def __len__(self) -> int:
        return sum(node.kind == "file" for node in self._nodes.values())

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._kind(path) == "file"

    def __repr__(self) -> str:
        return f"Files({{{', '.join(f'{path!r}: {self._nodes[path].data!r}' for path in self)}}})"

    def _file_at(self, path: str, absolute: str) -> Node:
        """Return a file. Raises: there is none → MissingFile, with the nearest ones."""
        node = self._nodes.get(absolute)
        if node is not None and node.kind == "file":
            return node
        nearest = difflib.get_close_matches(absolute, list(self), n=3, cutoff=0.4)
        same_name = [other for other in self if posixpath.basename(other) == posixpath.basename(absolute)]
        shown = list(dict.fromkeys([*same_name, *nearest]))[:3]
        if node is not None:
            seen = f"{absolute} is a {'directory' if node.kind == 'directory' else 'symbolic link to ' + node.target}"
        else:
            seen = f"nearest: {', '.join(shown)}" if shown else f"{len(self)} files: {shorten(', '.join(self) or 'none')}"
        raise MissingFile(f"there is no file {path!r} on this machine.\n  expected  {absolute}\n  seen      {seen}")

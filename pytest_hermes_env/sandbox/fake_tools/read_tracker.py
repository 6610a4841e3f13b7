"""What hermes remembers of reads and writes: to answer "unchanged", to stop a loop of equal reads, and to warn before a write.

Source: hermes-agent 0.19, tools/file_tools.py (the read tracker) and tools/file_state.py.
"""

from __future__ import annotations

import sys
from typing import Any

from pytest_hermes_env.sandbox.files import Files

__all__ = ["UNCHANGED", "WARN_AT", "ReadTracker"]

WARN_AT = 3
"""The read or search, of equal ones in a row, that carries a warning; the next one is refused."""
UNCHANGED = (
    "File unchanged since last read. The content from the earlier read_file result in this conversation is still current — "
    "refer to that instead of re-reading."
)
_MARK = ("pytest-hermes-env", 0, 0)


class ReadTracker:
    """The reads, searches and writes of one machine.

    ``task_id``: whose reads they are. hermes itself is told to forget a task's reads (`reset_file_dedup`,
    `notify_other_tool_call`), and a tracker hears of it: it leaves a mark in hermes' own memory of that task.
    """

    def __init__(self, task_id: str = "") -> None:
        self._task_id = task_id
        self._pages: dict[tuple[str, int, int], int] = {}
        self._stubs: dict[tuple[str, int, int], int] = {}
        self._seen: dict[str, tuple[int, bool]] = {}
        self._last: object = None
        self._in_a_row = 0

    def copy(self, task_id: str) -> ReadTracker:
        """Return an independent tracker that remembers the same, for another task."""
        twin = ReadTracker(task_id)
        twin._pages, twin._stubs, twin._seen = dict(self._pages), dict(self._stubs), dict(self._seen)
        twin._last, twin._in_a_row = self._last, self._in_a_row
        return twin

    def forget(self) -> None:
        """Answer the next reads with the content."""
        self._pages.clear()
        self._stubs.clear()

    def other_tool(self) -> None:
        """Note a tool call between reads: a loop of reads is broken."""
        self._last, self._in_a_row = None, 0
        self._stubs.clear()

    def repeated(self, path: str, absolute: str, offset: int, limit: int, files: Files) -> dict[str, Any] | None:
        """Return hermes' answer to a read of what was read before and did not change; None when the content is due."""
        self._listen()
        page = (absolute, offset, limit)
        if page not in self._pages or not files.exists(absolute) or files.changed_at(absolute) != self._pages[page]:
            return None
        stubs = self._stubs[page] = self._stubs.get(page, 0) + 1
        if stubs == 1:
            return {"status": "unchanged", "message": UNCHANGED, "path": path, "dedup": True, "content_returned": False}
        return {
            "error": f"BLOCKED: You have called read_file on this exact region {stubs + 1} times and the file has NOT changed. "
            "STOP calling read_file for this path — the content from your earlier read_file result in this conversation is still "
            "current. Proceed with your task using the information you already have.",
            "path": path,
            "already_read": stubs + 1,
        }

    def read(self, path: str, absolute: str, offset: int, limit: int, files: Files, *, partial: bool) -> int:
        """Note a read whose content was given; return how many equal ones came in a row."""
        page = (absolute, offset, limit)
        self._stubs.pop(page, None)
        if files.exists(absolute):
            self._pages[page] = files.changed_at(absolute)
            self._seen[absolute] = (files.changed_at(absolute), partial)
        self._mark(read=True)
        return self._came(("read", path, offset, limit))

    def searched(self, key: object) -> int:
        """Note a search; return how many equal ones came in a row."""
        self._listen()
        self._mark(read=False)
        return self._came(("search", key))

    def stale(self, absolute: str, files: Files) -> str | None:
        """Return the warning that a write to this file carries, because of what was last seen of it."""
        if absolute not in self._seen or not files.exists(absolute):
            return None
        changed_at, partial = self._seen[absolute]
        if files.changed_at(absolute) != changed_at:
            return (
                f"{absolute} was modified since you last read it on disk (external edit or unrecorded writer). "
                "Re-read the file before writing."
            )
        if partial:
            return f"{absolute} was last read with offset/limit pagination (partial view). Re-read the whole file before overwriting it."
        return None

    def wrote(self, absolute: str, files: Files) -> None:
        """Note a write by a file tool: what was read of the file is forgotten, and its present content is known."""
        for page in [page for page in self._pages if page[0] == absolute]:
            del self._pages[page]
        if files.exists(absolute):
            self._seen[absolute] = (files.changed_at(absolute), False)

    def _came(self, key: object) -> int:
        self._in_a_row = self._in_a_row + 1 if key == self._last else 1
        self._last = key
        return self._in_a_row

    def _memory(self) -> dict[str, Any] | None:
        """Return hermes' own memory of the task's reads, where hermes is loaded and there is a task."""
        tracker = getattr(sys.modules.get("tools.file_tools"), "_read_tracker", None)
        if not self._task_id or not isinstance(tracker, dict):
            return None
        empty: dict[str, Any] = {
            "last_key": None,
            "consecutive": 0,
            "read_history": set(),
            "dedup": {},
            "dedup_hits": {},
            "read_timestamps": {},
        }
        memory = tracker.setdefault(self._task_id, empty)
        return memory if isinstance(memory, dict) else None

    def _mark(self, *, read: bool) -> None:
        memory = self._memory()
        if memory is not None:
            memory["last_key"] = _MARK
            if read:
                memory.setdefault("dedup", {})[_MARK] = 0.0

    def _listen(self) -> None:
        """Forget what hermes was told to forget since the last mark."""
        memory = self._memory()
        if memory is None:
            return
        if memory.get("last_key") != _MARK:
            self.other_tool()
        if self._pages and _MARK not in memory.get("dedup", {}):
            self.forget()

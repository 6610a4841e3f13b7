"""What answers the tools in a contract run: a small machine per family of scenarios, behind one seam.

The machine is in memory, or it is hermes' own terminal and files, confined; both are kept from the network. A web search finds
one page, and that page can be read. Any other tool, and a command that is not installed, is missing, and the ledger names it.

A call belongs to the journal that is current where it is made. A layer that runs its tools in threads without their context is
identified by the task id that it opened.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.play.journal import Crossed, Journal, current_journal, current_rollout
from pytest_hermes_env.sandbox.real_lines import Refusal
from pytest_hermes_env.sandbox.seam import ToolCall, Turns
from pytest_hermes_env.types import RealToolsUse

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.files import Node
    from pytest_hermes_env.sandbox.local import LocalSandbox

SANDBOXES = ("fake", "local")
"""Names of the machines."""

PAGE = "https://example.invalid/page"
HIT = {"title": "A page", "url": PAGE, "description": "the only page of this web"}
TOOL_ERROR = "the tool failed, as this scenario requires"
SHOWN = 5
"""How many missing commands and refused lines the ledger names."""
LONGEST_LINE = 60
"""Characters of a refused line in the ledger."""
SYSTEM_DIRECTORIES = ("/bin/", "/usr/", "/etc/", "/dev/", "/proc/", "/sbin/")


@contextlib.contextmanager
def opened_sandbox(name: str, real_tools: RealToolsUse = "confined") -> Iterator[FakeSandbox | LocalSandbox]:
    """Yield the machine of that name. Raises: an unknown name → UsageError."""
    if name == "fake":
        yield _new_fake(real_tools)
    elif name == "local":
        from pytest_hermes_env.sandbox.confinement import available  # noqa: PLC0415
        from pytest_hermes_env.sandbox.local import LocalSandbox  # noqa: PLC0415

        confinement = available() if real_tools == "always" else None
        with LocalSandbox(confinement=confinement, unscripted="not found", allow_leftovers=True) as local:
            yield with_one_page(local)
    else:
        raise UsageError(f"there is no sandbox named {name!r} for the contract. Known: {', '.join(SANDBOXES)}")


def new_sandbox_like(sandbox: Any) -> Any:
    """Return another in-memory machine, or the same local sandbox, of which a process has one."""
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    return _new_fake(sandbox.real_tools) if isinstance(sandbox, FakeSandbox) else sandbox


def close_sandbox(sandbox: Any) -> None:
    """Release what an in-memory machine and those of its rollouts hold; the local sandbox is released by whoever opened it."""
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    if isinstance(sandbox, FakeSandbox):
        sandbox.close()


def _new_fake(real_tools: RealToolsUse) -> FakeSandbox | LocalSandbox:
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    return with_one_page(FakeSandbox(unscripted="not found", allow_leftovers=True, real_tools=real_tools))


def with_one_page(sandbox: FakeSandbox | LocalSandbox) -> FakeSandbox | LocalSandbox:
    """Let a web search find one page, which can be read, and return the sandbox."""

    def search(_: dict[str, object]) -> dict[str, object]:
        return {"success": True, "data": {"web": [HIT]}}

    def extract(arguments: dict[str, object]) -> dict[str, object]:
        urls = arguments.get("urls")
        wanted = urls if isinstance(urls, list) else [urls]
        return {"results": [{"url": url, "title": "A page", "content": "a short text", "error": None} for url in wanted]}

    return sandbox.on_tool("web_search", search, optional=True).on_tool("web_extract", extract, optional=True)


def describe(sandbox: SandboxRouter) -> str:
    """Return the machine, what was missing on it, and which lines it refused, as a line of the ledger."""
    counts = Counter(text.split()[0] if text.split() else text for text in sandbox.not_found)
    shown = ", ".join(f"{name} ({count})" for name, count in counts.most_common(SHOWN))
    more = f", and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    missing = f"; not available: {shown}{more}" if counts else ""
    return f"{sandbox.description}{missing}{_of_refused(sandbox.refused)}"


def _of_refused(refused: tuple[Refusal, ...]) -> str:
    if not refused:
        return ""
    lines = Counter(one.line for one in refused)
    shown = ", ".join(f"`{shorten(line, LONGEST_LINE)}`" for line in list(lines)[:SHOWN])
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return f"; refused: {shown}{more}, since real bash {refused[0].reason}: {refused[0].fix}"


def verifier_reads(*machines: Any) -> tuple[str, ...]:
    """Return the files that the verifier looked for outside of the system's directories: ``path (not found)``, or by whom it was written."""
    return tuple(
        f"{read.path} ({f'written by the {read.written_by}' if read.written_by else 'not found'})"
        for machine in machines
        for read in machine.files.reads
        if read.reader == "verifier" and not read.path.startswith(SYSTEM_DIRECTORIES)
    )


def files_left(*machines: Any, of_verifier: bool = False) -> dict[str, Node]:
    """Return the files outside of the system's directories that are there, without the verifier's own unless they are asked for."""
    return {
        path: node
        for machine in machines
        for path, node in machine.files.nodes.items()
        if node.kind == "file" and (of_verifier or node.party != "verifier") and not path.startswith(SYSTEM_DIRECTORIES)
    }


@dataclass
class SandboxRouter:
    """A sandbox that passes each call to the sandbox of its journal, or lets it fail or hang where the journal asks for it."""

    first: Any
    turns: Turns = field(default_factory=Turns)
    _journals: dict[str, Journal] = field(default_factory=dict)
    _sandboxes: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sandboxes.append(self.first)

    @property
    def backend(self) -> str:
        """The backend of all sandboxes."""
        return str(self.first.backend)

    @property
    def is_confined(self) -> bool:
        """Whether commands cannot reach this machine."""
        return bool(self.first.is_confined)

    @property
    def description(self) -> str:
        """What answers, for the ledger."""
        return str(self.first.description)

    @property
    def not_found(self) -> tuple[str, ...]:
        """What was missing, in any of the sandboxes."""
        return tuple(text for sandbox in self._sandboxes for text in sandbox.not_found)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The lines that needed real programs where none may run, in any of the sandboxes."""
        return tuple(line for sandbox in self._sandboxes for line in getattr(sandbox, "refused", ()))

    def close(self) -> None:
        """Release what the in-memory machines hold."""
        for sandbox in self._sandboxes:
            close_sandbox(sandbox)

    def add(self, sandbox: Any) -> Any:
        """Add one more sandbox, and return it."""
        if not any(known is sandbox for known in self._sandboxes):
            self._sandboxes.append(sandbox)
        return sandbox

    def sandbox_of(self, task_id: str) -> _RoutedSandbox:
        """Return what answers the calls of a rollout."""
        return _RoutedSandbox(self, task_id)

    def record(self, call: ToolCall) -> None:
        """Write a call into its journal."""
        journal = self.journal_of(call.task_id)
        if journal is None:
            return
        journal.tool_calls.append(call)
        task_id, phase = current_rollout.get()
        if task_id and call.task_id and task_id != call.task_id:
            journal.add(Crossed(task_id=task_id, phase=phase, other=call.task_id, tool=call.name))

    def journal_of(self, task_id: str) -> Journal | None:
        """Return the journal that a call of the rollout belongs to."""
        journal = current_journal.get()
        if journal is not None:
            self._journals[task_id] = journal
        return journal or self._journals.get(task_id)


class _RoutedSandbox:
    """One rollout's sandbox, in the sandbox of its family."""

    def __init__(self, router: SandboxRouter, task_id: str) -> None:
        self._router = router
        self._task_id = task_id

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Answer one call."""
        journal = self._router.journal_of(self._task_id)
        fault = "none" if journal is None else journal.faults.fault
        if fault == "tools_fail":
            return json.dumps({"output": TOOL_ERROR, "exit_code": 1, "error": TOOL_ERROR})
        if journal is not None and fault == "tool_hangs" and self._router.turns.of(self._task_id):
            journal.faults.hang_in_thread()
        return self._sandbox.call(name, arguments)  # type: ignore[no-any-return]

    def acting_as(self, party: str) -> contextlib.AbstractContextManager[None]:
        """Let an in-memory machine assign what is read and written meanwhile to this party: before agent and reward, to the environment."""
        sandbox = self._sandbox
        if not current_rollout.get()[1] and not self._router.turns.has_begun(self._task_id):
            party = "environment"
        return sandbox.acting_as(party) if hasattr(sandbox, "acting_as") else contextlib.nullcontext()

    def alias(self, prefix: str) -> None:
        """Tell an in-memory machine which directory its layer chose."""
        if hasattr(self._sandbox, "alias"):
            self._sandbox.alias(prefix)

    @property
    def _sandbox(self) -> Any:
        journal = self._router.journal_of(self._task_id)
        sandbox = journal.sandbox if journal is not None and journal.sandbox is not None else self._router.first
        return sandbox.sandbox_of(self._task_id)

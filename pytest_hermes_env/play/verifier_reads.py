"""Lists the files that a verifier read on in-memory machines."""

from __future__ import annotations

from typing import Any

SYSTEM_DIRECTORIES = ("/bin/", "/usr/", "/etc/", "/dev/", "/proc/", "/sbin/")


def verifier_reads(*machines: Any) -> tuple[str, ...]:
    """Return the files that the verifier read outside of the system's directories, as ``path (written by whom)``."""
    return tuple(
        f"{read.path} (written by {'the ' + read.written_by if read.written_by else 'nobody'})"
        for machine in machines
        for read in machine.files.reads
        if read.reader == "verifier" and not read.path.startswith(SYSTEM_DIRECTORIES)
    )

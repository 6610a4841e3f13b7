"""Writes down how a program was started: its command line, its standard input, and the files that it sees.

Arguments: the directory to write to, the program's path, and a file with its standard input ("-" for this process' own).
"""

import json
import os
import sys
import time

MOST_FILES, MOST_BYTES = 200, 200_000
NEVER = {"/", "/tmp", "/usr", "/etc", "/proc"}  # noqa: S108 - places that are nobody's input


def words_of(process: int) -> list[str]:
    """Return the command line of a process, past a shell that only started this one."""
    with open(f"/proc/{process}/cmdline", "rb") as file:
        words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    if "recorder.py" in " ".join(words):
        with open(f"/proc/{process}/stat") as file:
            return words_of(int(file.read().rpartition(")")[2].split()[1]))
    return words


def text_of(path: str) -> str:
    """Return a file's bytes as a text that JSON can hold."""
    with open(path, "rb") as file:
        return file.read(MOST_BYTES).decode(errors="surrogateescape")


def tree(roots: list[str], own: str) -> tuple[dict[str, str], list[str]]:
    """Return the files below roots, as texts by path, and the directories."""
    files: dict[str, str] = {}
    directories: list[str] = []
    for root in roots:
        for place, names, found in os.walk(root):
            names[:] = [name for name in sorted(names) if name != "__pycache__" and os.path.join(place, name) != own]
            directories.append(place)
            for name in sorted(found):
                path = os.path.join(place, name)
                if os.path.isfile(path) and not os.path.islink(path) and len(files) < MOST_FILES:
                    files[path] = text_of(path)
    return files, directories


def main(own: str, path: str, given: str) -> None:
    """Write one start of a program to its directory."""
    words = words_of(os.getppid())
    stdin = sys.stdin.buffer.read(MOST_BYTES).decode(errors="surrogateescape") if given == "-" else text_of(given)
    named = [os.path.abspath(word) for word in words[1:] if os.path.exists(word)]
    places = {os.path.realpath(one) if os.path.isdir(one) else os.path.dirname(one) for one in [os.getcwd(), *named]}
    roots = sorted(place for place in places - NEVER if not place.startswith(("/usr/", "/etc/", own)))
    files, directories = tree(roots, own)
    for one in named:
        if os.path.isfile(one) and one not in files and not one.startswith("/usr/"):
            files[one] = text_of(one)
    start = {
        "words": words,
        "path": os.path.abspath(path) if path else "",
        "cwd": os.getcwd(),
        "stdin": stdin,
        "files": files,
        "directories": directories,
    }
    name = os.path.join(own, f"{time.time_ns()}-{os.getpid()}")
    with open(f"{name}.part", "w") as file:
        json.dump(start, file)
    os.rename(f"{name}.part", f"{name}.start")


if __name__ == "__main__":
    main(*sys.argv[1:4])

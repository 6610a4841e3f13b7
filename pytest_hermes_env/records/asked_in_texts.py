"""What a verifier's commands and programs ask for by their texts, and no sandbox that is restored can give back: clocks, variables, paths of the host.

Place in the flow: `restored` reads each command, and each program that the verifier starts, before it is run again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from hermes_env_shared.processes import PATH_OF_MACHINE

_BEGIN = r"(?:^|[;&|(`{\n]|\$\(|\b(?:then|do|else|sudo|exec|time)\s)\s*"
_TEXTS = (
    ("clock", re.compile(rf"{_BEGIN}(date|uptime|hwclock)\b(?=\s|$|[;)|`])", re.MULTILINE)),
    ("clock", re.compile(r"\b(from time import\b|time\.(?:time|time_ns|monotonic|perf_counter|localtime|gmtime)\(|(?:datetime|date)\.(?:now|utcnow|today)\(|Date\.now\(|new Date\(\))")),
    ("clock", re.compile(r"(\$\{?(?:EPOCHSECONDS|EPOCHREALTIME|SECONDS)\b|\bfind\b[^\n;|]*\s-(?:mtime|mmin|atime|amin|ctime|cmin|newermt)\b)")),
    ("clock", re.compile(r"(printf\s+[\"']?%\([^)]*\)T)")),
    ("clock", re.compile(r"(\bsystime\(\)|\bstrftime\(|\bperl\b[^\n]*\btime\b|\bstat\b[^\n;|]*%[XYZ]|\btouch\b[^\n;|]*\s-d\b|\bimport time as\b|(?<=\w)\.(?:now|utcnow|today)\(|/proc/uptime)")),
    ("random number", re.compile(r"(\$\{?S?RANDOM\b|\bshuf\b|\bsort\s+(?:-\w*R|--random)|/dev/u?random\b|\brand\(\)|\bimport (?:random|secrets|uuid)\b|\bfrom (?:random|secrets|uuid) import\b|\bnp\.random\b|Math\.random\()")),
    ("environment variable", re.compile(rf"{_BEGIN}(env|set|export -p|declare -\w*[px]\w*|compgen -[ve])\s*(?=$|[;)|`&])", re.MULTILINE)),
    ("environment variable", re.compile(r"(\[\[? -v \w+|\bENVIRON\[|\$ENV\{|\bimport environ\b|/proc/(?:self|\d+)/environ)")),
    ("date of a file", re.compile(r"(\bstat\b[^\n;|]*%[wxyz]|\bls\b[^\n;|]*--(?:full-time|time-style)|-printf\s+\S*%[TAC]|\btar\s+-?(?:t\w*v|v\w*t)|\bzipinfo\b|\bunzip\s+-[lv]|\bgit\b[^\n;|]*(?:--(?:since|until|after|before)\b|%[ac][dr]\b|@\{))")),
    ("fact of the files that no record has", re.compile(r"(\bdu\b|(?<=\s)-ef(?=\s)|\bstat\b[^\n;|]*(?:%[uUgGhibdD]|\s-f\b)|\bfind\b[^\n;|]*\s-(?:links|inum|samefile|user|group|uid|gid)\b|\b[gs]etfattr\b|\blsattr\b|\bgit\b[^\n;|]*\bdiff-(?:files|index)\b)")),
    ("clock", re.compile(rf"{_BEGIN}(time)\s", re.MULTILINE)),
    ("random number", re.compile(r"(\bopenssl\s+rand\b|\brandom\(\)|\bmktemp\s+(?:-\w+\s+)*-\w*u)")),
    ("fact of the host", re.compile(rf"{_BEGIN}(cd)\s*(?=$|[;&|)])", re.MULTILINE)),
    ("network", re.compile(r"(/dev/(?:tcp|udp)/|\bgit\s+ls-remote\b|\bpip3?\s+(?:index|download)\b|\bgethostby\w+\()")),
    ("fact of the host", re.compile(r"(\bulimit\b|\bgetrusage\(|\bactive_count\(|\bpsutil\b|\bctypes\b|(?<![\w/])~(?=\s|$))")),
    ("fact of the host", re.compile(rf"{_BEGIN}(hostname|whoami|uname|df|free|nproc|lscpu|getconf|arch|locale|groups|id|tty|who)\b(?=\s|$|[;)|`&])", re.MULTILINE)),
    ("fact of the host", re.compile(r"\b(socket\.getfqdn|socket\.gethostname|platform\.\w+|(?:os|multiprocessing)\.cpu_count|os\.(?:uname|getloadavg|getlogin|getuid|sched_getaffinity|statvfs)|getpass\.getuser|shutil\.disk_usage|Path\.home|psutil\.\w+|os\.(?:hostname|cpus|userInfo|loadavg|freemem))\(")),
    ("processes of the sandbox", re.compile(rf"{_BEGIN}(ps|pgrep|pidof|pkill|lsof|ss|netstat|fuser|kill\s+-0)\b(?=\s|$|[;)|`&])", re.MULTILINE)),
    ("network", re.compile(rf"{_BEGIN}(curl|wget|nc|ncat|ssh|scp|ping|dig|nslookup|git\s+(?:clone|fetch|pull)|(?:pip3?|uv|npm|apt|apt-get|cargo|go)\s+(?:install|get|add|i|ci))\b", re.MULTILINE)),
    ("network", re.compile(r"\b(requests\.(?:get|post|put|head|request)\(|urllib\.request\b|http\.client\b|socket\.(?:create_connection|socket)\(|httpx\.|aiohttp\.)")),
    ("environment variable", re.compile(r"\b(?:os\.environ(?:\.get\(|\[)|(?:os\.)?getenv\(|process\.env[.\[])\s*[\"']?(\w+)")),
    ("environment variable", re.compile(rf"{_BEGIN}printenv\s+(\w+)")),
)  # fmt: skip
_VARIABLE = re.compile(r"(?<!\\)\$\{?([A-Za-z_]\w*)")
_SET = re.compile(r"\b([A-Za-z_]\w*)\+?=|\bfor\s+(\w+)|\bread\s+(?:-\w+\s+)*((?:\w+\s*)+)|\bgetopts\s+\S+\s+(\w+)|-v\s+(\w+)=")
USUAL = frozenset({"PATH", "PWD", "TMPDIR", "TERM", "SHELL", "LANG", "LC_ALL"})
"""Variables that every sandbox has, and that tell a program where it is and nothing of its work."""
OF_THE_SHELL = frozenset(
    ["HOME", "PATH", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "LANG", "LC_ALL", "IFS", "PPID", "UID", "EUID", "BASHPID", "BASH", "BASH_VERSION", "HOSTNAME", "LINENO", "REPLY", "OPTARG", "OPTIND", "FUNCNAME", "BASH_SOURCE", "PIPESTATUS", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "NF", "NR"]
)  # fmt: skip
_SINGLE_QUOTED = re.compile(r"'[^'\n]*'")
_PATH = re.compile(r"(?<![\w.$}~*/:-])(/([\w.+@-]+)((?:/[\w.+@/-]*\w)?))")
_USUAL = frozenset(["home", "root", "mnt", "data", "srv", "etc", "var", "opt", "Users", "media", "tmp"])
_OF_SYSTEM = frozenset(["usr", "bin", "sbin", "lib", "lib32", "lib64", "dev", "proc", "sys", "run"])
"""First parts of paths that are the host's own wherever that is, and of those that belong to every system."""
_OUTSIDE = re.compile(r"(?<![\w.$}~*/:-])(/\w*[*?][\w.*?/-]*)|(?<![\w./])(\.\.)(?=[/\s;&|)\"']|$)")
"""What a shell finds anywhere, and what is above the directory, unless the command went down before."""

_OF_HOME = re.compile(r"(?<![\w.])((?:~|\$\{?HOME\}?)/[\w.+@/-]*\w)")
_PROGRAM = re.compile(r"(?:^|[;&|(`{\n!]|\$\()\s*([^\s;&|()<>]+)")
_PLAIN = frozenset(
    [
        "[",
        "[[",
        "cat",
        "cut",
        "diff",
        "echo",
        "exit",
        "false",
        "grep",
        "head",
        "jq",
        "md5sum",
        "printf",
        "sha256sum",
        "sort",
        "tail",
        "test",
        "tr",
        "true",
        "uniq",
        "wc",
    ]
)
_MANY = re.compile(r"[*?~]|(?<![\w.])\.\.?(?=[\s/;&|)]|$)|\s-\w*[rR]\b|--recursive")
"""Programs that open what they are given and nothing else, and what names more than one file."""


def may_read(command: str, unkept: Collection[str]) -> bool:
    """Tell whether a command may look at one of these files: all but plain programs that are given others by name may."""
    return (
        any(os.path.basename(path) in command for path in unkept)
        or any(name not in _PLAIN for name in _PROGRAM.findall(command))
        or _MANY.search(command) is not None
    )


def set_in(text: str) -> set[str]:
    """Return the variables that a command of the shell sets."""
    return {name for groups in _SET.findall(text) for part in groups for name in part.split()}


def read_by_text(text: str, *, is_shell: bool, given: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield what a command or a program of the verifier asks for that a sandbox cannot give back: kind and name.

    ``given``: the variables that the commands which start a program set for it.
    """
    text = text.replace(PATH_OF_MACHINE, "")
    for kind, pattern in _TEXTS:
        for match in pattern.finditer(text):
            if kind != "environment variable" or match.group(1) not in {*given, *USUAL}:
                yield kind, match.group(1)
    if is_shell:
        known = {*set_in(text), *given, *OF_THE_SHELL}
        for match in _VARIABLE.finditer(_SINGLE_QUOTED.sub("", text)):
            if match.group(1) not in known:
                yield "environment variable", match.group(1)


def host_paths(text: str) -> list[str]:
    """Return the absolute paths that a text names, outside of the system's programs and libraries."""
    outside = [glob or above for glob, above in _OUTSIDE.findall(text) if glob or not re.search(r"\bcd \w", text)]
    return [*(path for path, first, rest in _PATH.findall(text) if _is_of_host(first, rest)), *_OF_HOME.findall(text), *outside]


def _is_of_host(first: str, rest: str) -> bool:
    if first in _OF_SYSTEM or (first == "tmp" and not rest):
        return False
    return (first in _USUAL and bool(rest)) or os.path.isdir(f"/{first}")

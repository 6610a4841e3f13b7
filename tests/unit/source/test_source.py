"""Reading classes: where bases lead, what is judged, and that no source is strange enough to crash the reader."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.contract import check
from pytest_hermes_env.contract.check import RULE_RAISED, check_class
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.source import SourceTree, modules, read_class, read_classes, without_abstract_bases
from pytest_hermes_env.source.installed import installed_config_fields


def write(root: Path, files: dict[str, str]) -> None:
    """Write a tree of files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


def names(root: Path, file: str) -> list[str]:
    """Return the names of the environments in a file of the tree."""
    return [source.name for source in read_classes(str(root / file)).classes]


@pytest.mark.parametrize(
    "text",
    [
        "from environments.hermes_base_env import HermesAgentBaseEnv\nclass Env(HermesAgentBaseEnv): ...",
        "from environments.hermes_base_env import HermesAgentBaseEnv as B\nclass Env(B[int]): ...",
        "import environments.hermes_base_env\nclass Env(environments.hermes_base_env.HermesAgentBaseEnv): ...",
        "import environments.hermes_base_env as h\nclass Env(h.HermesAgentBaseEnv): ...",
        "from environments.hermes_base_env import *\nclass Env(HermesAgentBaseEnv): ...",
        "from elsewhere import *\nclass Env(HermesAgentBaseEnv): ...",
        "import fork.hermes_base_env as h\nBase = h.HermesAgentBaseEnv\nclass Env(Base): ...",
        "try:\n    from environments.hermes_base_env import HermesAgentBaseEnv\nexcept ImportError:\n"
        "    HermesAgentBaseEnv = object\nif True:\n    class Env(HermesAgentBaseEnv): ...",
        "class HermesAgentBaseEnv: ...\nclass Env(HermesAgentBaseEnv): ...",
        "from environments.hermes_base_env import HermesAgentBaseEnv\nclass M(type): ...\n"
        "class Env(HermesAgentBaseEnv, metaclass=M): ...",
    ],
)
def test_an_environment_is_known_by_where_its_bases_lead(tmp_path, text):
    write(tmp_path, {"env.py": text})

    assert names(tmp_path, "env.py") == ["Env"]


def test_bases_are_followed_through_relative_imports_packages_and_parents(tmp_path):
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "pkg/__init__.py": "from .base import Company as Exported",
            "pkg/base.py": "from environments.hermes_base_env import HermesAgentBaseEnv\n"
            "class Company(HermesAgentBaseEnv):\n    async def setup(self): ...",
            "pkg/deep/one.py": "from ..base import Company\nclass One(Company): ...",
            "pkg/deep/two.py": "from pkg import Exported\nclass Two(Exported): ...",
            "pkg/deep/three.py": "from . import one as first\nclass Three(first.One): ...",
            "pkg/deep/four.py": "from .three import *\nclass Four(Three): ...",
        },
    )

    found = {file: read_classes(str(tmp_path / "pkg/deep" / f"{file}.py")).classes[0] for file in ("one", "two", "four")}
    assert {file: ("setup" in source.methods, source.missing) for file, source in found.items()} == dict.fromkeys(
        found, (True, ("get_next_item", "format_prompt", "compute_reward", "evaluate"))
    )
    assert [item.name for item in found["four"].readable] == ["Four", "Three", "One", "Company"]


def test_methods_of_mixins_in_other_files_are_followed(tmp_path):
    write(
        tmp_path,
        {
            "scoring.py": "class Scoring:\n    def _text(self, thing):\n        return thing.final_response\n",
            "env.py": "from environments.hermes_base_env import HermesAgentBaseEnv\nfrom scoring import Scoring\n"
            "class Env(Scoring, HermesAgentBaseEnv):\n    async def compute_reward(self, item, result, ctx):\n"
            "        return self._text(result)\n",
        },
    )

    (source,) = read_classes(str(tmp_path / "env.py")).classes
    ledger = check_class(source)
    (finding,) = next(entry for entry in ledger.entries if entry.rule.id == "HE301").findings
    assert (Path(finding.path).name, finding.line) == ("scoring.py", 3)


def test_what_is_no_hermes_environment_is_told_apart(tmp_path):
    write(
        tmp_path,
        {
            "env.py": """
            from abc import ABC, abstractmethod
            from atroposlib.envs.base import BaseEnv
            from environments.hermes_base_env import HermesAgentBaseEnv

            class Plain(BaseEnv): ...
            class Config: ...
            class Shared(HermesAgentBaseEnv):
                async def setup(self): ...
            class Marked(HermesAgentBaseEnv, ABC): ...
            class Open(HermesAgentBaseEnv):
                @abstractmethod
                def task(self): ...
            class Env(Shared):
                async def evaluate(self): ...
            """
        },
    )

    (reading,) = without_abstract_bases([read_classes(str(tmp_path / "env.py"))])
    assert [source.name for source in reading.classes] == ["Env"]
    assert {item.name: item.is_environment for item in reading.skipped} == {
        "Plain": True, "Config": False, "Shared": False, "Marked": False, "Open": False,
    }  # fmt: skip


def test_a_class_with_an_unreadable_base_is_judged_when_it_looks_like_an_environment(tmp_path):
    write(
        tmp_path,
        {
            "env.py": """
            from company import Base, Model
            class Env(Base):
                def format_prompt(self, item): ...
                async def compute_reward(self, item, result, ctx): ...
            class Own(Base):
                name = "own"
                env_config_cls = Model
            class Row(Model):
                name = "row"
            """
        },
    )

    assert names(tmp_path, "env.py") == ["Env", "Own"]


def test_methods_of_an_installed_environment_are_inherited(tmp_path):
    """An environment that comes with the layer is read as a base, wherever it is installed; the layer itself is not."""
    write(tmp_path, {"env.py": "from environments.web_research_env import WebResearchEnv\nclass Env(WebResearchEnv): ..."})

    (source,) = read_classes(str(tmp_path / "env.py")).classes
    assert [item.name for item in source.readable] == ["Env", "WebResearchEnv"]
    assert source.missing == ()
    assert source.unreadable == ()


def test_a_class_is_found_by_its_qualified_name(tmp_path):
    write(tmp_path, {"env.py": "def test():\n    class Inner: ...\nclass Outer:\n    class Env: ...\n"})
    path = tmp_path / "env.py"

    found = [read_class(path, name) for name in ("test.<locals>.Inner", "Outer.Env", "Env", "Missing")]
    assert [source and source.name for source in found] == ["Inner", "Env", "Env", None]


def messages(root: Path, rule_id: str, file: str = "env.py") -> list[str]:
    """Return what one rule finds in the first environment of a file."""
    (source, *_) = read_classes(str(root / file)).classes
    ledger = check_class(source)
    return [finding.message for entry in ledger.entries if entry.rule.id == rule_id for finding in entry.findings]


def test_self_of_a_class_inside_a_method_is_not_the_environment(tmp_path):
    write(
        tmp_path,
        {
            "env.py": """
            from environments.hermes_base_env import HermesAgentBaseEnv

            class Env(HermesAgentBaseEnv):
                def setup_logging(self):
                    class Handler:
                        def emit(self, record):
                            self.write(record)

                    return Handler()

                async def evaluate(self):
                    await self.evaluate_itms()
            """
        },
    )

    assert messages(tmp_path, "HE114") == [
        "evaluate calls self.evaluate_itms, which does not exist; did you mean 'evaluate_items'?"
    ]


@pytest.mark.parametrize("layer", ["fork/hermes_base_env.py", "fork/base.py"])
def test_the_base_of_a_fork_declares_its_fields(tmp_path, layer):
    """Whatever its file is called."""
    module = layer.removesuffix(".py").replace("/", ".")
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "fork/__init__.py": "",
            layer: """
            from atroposlib.envs.base import BaseEnv, BaseEnvConfig

            class HermesAgentEnvConfig(BaseEnvConfig):
                sandbox_region: str = "eu"

            class HermesAgentBaseEnv(BaseEnv): ...
            """,
            "env.py": f"""
            from {module} import HermesAgentBaseEnv, HermesAgentEnvConfig

            class Config(HermesAgentEnvConfig):
                depth: int = 3

            class Env(HermesAgentBaseEnv):
                env_config_cls = Config

                @classmethod
                def config_init(cls):
                    HermesAgentEnvConfig(sandbox_region="us", regoin="us")
                    return Config(sandbox_region="us", depth=2, dpth=1), []
            """,
        },
    )

    found = [message.partition(":")[0] for message in messages(tmp_path, "HE113")]
    assert found == ["the configuration has no field 'regoin'", "the configuration has no field 'dpth'"]


def test_the_fields_of_the_installed_layer_are_known():
    """In whichever of its files its configuration is."""
    assert {"split_rollouts", "enabled_toolsets", "group_size"} <= installed_config_fields()


def test_an_environment_that_is_made_at_run_time_is_named(tmp_path):
    """By a function that returns it, or by type(): the source does not show it."""
    write(
        tmp_path,
        {
            "env.py": """
            from environments.hermes_base_env import HermesAgentBaseEnv

            def make(name):
                class Made(HermesAgentBaseEnv):
                    async def setup(self): ...

                return Made

            def used():
                class Local(HermesAgentBaseEnv): ...

                return Local.name

            Typed = type("Typed", (HermesAgentBaseEnv,), {})
            Row = type("Row", (dict,), {})
            """
        },
    )

    reading = read_classes(str(tmp_path / "env.py"))
    assert reading.classes == ()
    assert [(item.name, item.line, item.reason.partition(":")[0]) for item in reading.skipped if item.is_unreadable] == [
        ("Made", 5, "made at run time by make()"),
        ("Typed", 15, "made at run time by type()"),
    ]


def test_each_file_is_parsed_once(tmp_path):
    write(tmp_path, {"a.py": "class A: ...", "b.py": "from a import A\nclass B(A): ..."})
    tree = SourceTree()

    assert tree.read(str(tmp_path / "a.py")) is tree.find("a", str(tmp_path / "b.py"))


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"class Env(:\n", 1, "the file does not parse: invalid syntax"),
        (b"x = 1\n%matplotlib inline\n", 2, "the file does not parse: invalid syntax"),
        (b"x = '\xff'\n", 1, "the file does not parse"),
        (b"x = 1\x00\n", 1, "the file does not parse"),
        (b"# -*- coding: no-such-code -*-\n", 1, "the file does not parse"),
        (b"x = " + b"(" * 5000 + b")" * 5000, 1, "the file does not parse"),
        (b"x = " + b"-" * 200_000 + b"1", 1, "the file does not parse"),
    ],
    ids=["syntax", "notebook export", "undecodable", "null byte", "unknown coding", "parentheses", "minus signs"],
)
def test_a_file_that_does_not_parse_is_a_problem_with_its_place(tmp_path, content, line, message):
    path = tmp_path / "env.py"
    path.write_bytes(content)

    problem = read_classes(str(path)).problem
    assert problem is not None
    assert (problem.id, problem.line) == ("HE111", line)
    assert problem.message.startswith(message)


HEAD = "from environments.hermes_base_env import HermesAgentBaseEnv\nfrom environments.agent_loop import *\n"

STRANGE = {
    "inherits from itself": "class Env(Env): ...\nclass Other(Env, HermesAgentBaseEnv): ...",
    "bases at run time": "class Env(*bases(), HermesAgentBaseEnv, **words): ...",
    "an inconsistent order": "class A(HermesAgentBaseEnv): ...\nclass B(A): ...\nclass Env(A, B): ...",
    "recursion": "class Env(HermesAgentBaseEnv):\n    def a(self, x):\n        return self.b(x)\n"
    "    def b(self, x):\n        return self.a([x])\n    compute_reward = a",
    "a name that grows with each call": "import lib\ndef walk(x, n):\n    walk(x.next, [n])\n    return walk(x.last, (n, x))\n"
    "class Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n        return walk(lib.start, self)\n",
    "no parameters": "class Env(HermesAgentBaseEnv):\n    def compute_reward(): return x.y\n"
    "    async def wandb_log(): ...\n"
    "    def evaluate(*, a): ...\n    config_init = None",
    "all kinds of statements": """
class Env(HermesAgentBaseEnv):
    async def compute_reward(self, item, /, result, *rest, ctx=None, **more):
        global g
        try:
            match result:
                case [a, *b] if a: del a, b[0], self.x, self.y[1:]
                case {"k": v, **w}: (lambda q, *r, s=v: q.z)(*b, **w)
                case AgentResult(messages=m) | None as n: raise n from m
                case _: pass
        except* (ValueError, TypeError) as e:
            assert e, f"{e!r:>{10}}"
        else:
            async for (i, [j, *k]) in self.x(): continue
            else: ...
        finally:
            while True:
                with open(x) as (y, z), self.w: break
        class Inner(result.Meta): a = result.b
        type_ = [x async for x in y if (z := x)] + [*a, *b] + {**c}
        x: int = yield from (yield)
        self.a.b[c].d += result[::2][...]
        nonlocal_ = await (self.f)(*a)(**b)
        return not -a < b < c if d else (e, *f)[0]
    evaluate = wandb_log = compute_reward
""",
    "a long sum": "class Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n        return " + "+".join(["self.x"] * 900),
    "deep nesting": "class Env(HermesAgentBaseEnv):\n"
    + "".join("    " * (depth + 1) + ("def f(self):\n" if depth == 0 else "def g(x=1):\n") for depth in range(60))
    + "    " * 61
    + "pass\n",
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_source_never_stops_the_rules(tmp_path, name):
    write(tmp_path, {"env.py": ""})
    (tmp_path / "env.py").write_text(HEAD + STRANGE[name], encoding="utf-8")

    reading = read_classes(str(tmp_path / "env.py"))
    notes = [entry.note for source in reading.classes for entry in check_class(source).entries]
    assert reading.problem is None
    assert reading.classes
    assert [note for note in notes if note.startswith(RULE_RAISED)] == []


def test_circular_imports_end(tmp_path):
    write(
        tmp_path,
        {
            "a.py": "from b import *\nfrom b import B\nclass A(B): ...",
            "b.py": "from a import *\nfrom a import A\nclass B(A): ...\nclass C(Missing): ...",
        },
    )

    assert read_classes(str(tmp_path / "a.py")).problem is None
    assert read_classes(str(tmp_path / "b.py")).problem is None


def test_a_sum_too_deep_to_follow_is_undecided(tmp_path):
    text = HEAD + "class Env(HermesAgentBaseEnv):\n    async def evaluate(self):\n        return " + "+".join(["1"] * 900)
    (tmp_path / "env.py").write_text(text, encoding="utf-8")

    (source,) = read_classes(str(tmp_path / "env.py")).classes
    ledger = check_class(source)
    outcomes = {entry.rule.id: entry.outcome for entry in ledger.entries}
    assert outcomes["HE701"] in {Outcome.UNDECIDED, Outcome.FAILED}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_chain_of_hundreds_of_classes_is_read(is_reversed: bool, tmp_path: Path) -> None:
    """Whichever of them is looked at first."""
    lines = ["class C0(HermesAgentBaseEnv): pass", *(f"class C{number}(C{number - 1}): pass" for number in range(1, 150))]
    (tmp_path / "chain.py").write_text("\n".join(lines), encoding="utf-8")
    tree = SourceTree()
    names = [f"C{number}" for number in range(150)]
    found = [read_class(tmp_path / "chain.py", name, tree) for name in (names[::-1] if is_reversed else names)]

    assert [[item.name for item in source.readable] for source in found if source] == [
        names[index::-1] for index in (reversed(range(150)) if is_reversed else range(150))
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ROWS = [\n    1,\n]\n", None),
        ("class Big:\n    pass\n", "the file defines classes and has 20 bytes; the limit is 10"),
    ],
)
def test_a_huge_file_is_not_parsed(text: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data is left out; classes that cannot be judged are a problem."""
    monkeypatch.setattr(modules, "LARGEST", 10)
    (tmp_path / "big.py").write_text(text, encoding="utf-8")
    reading = read_classes(str(tmp_path / "big.py"))

    assert (reading.classes, reading.problem and reading.problem.message) == ((), problem)


def test_a_check_forgets_the_files_that_it_has_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory does not depend on their number."""
    parsed: list[int] = []
    real = check.SourceTree.newly_read

    def counting(tree: SourceTree) -> Any:
        parsed.append(len(tree._modules))
        return real(tree)

    monkeypatch.setattr(check, "RECENT", 5)
    monkeypatch.setattr(check.SourceTree, "newly_read", counting)
    for number in range(60):
        (tmp_path / f"env{number}.py").write_text(f"class Env{number}(HermesAgentBaseEnv): pass\n", encoding="utf-8")
    report = check.check_paths([str(tmp_path)])

    assert (report.files, len(report.ledgers)) == (60, 60)
    assert max(parsed) < 20

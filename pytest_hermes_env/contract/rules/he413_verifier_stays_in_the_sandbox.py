"""HE413 verifier-stays-in-the-sandbox
Nothing of the host is run, opened or imported that depends on the agent's work.

What: While `compute_reward` runs, in training and in evaluation, an audit hook hears which programs, code, files and databases it uses on the host.
One that is given the agent's work, or is used where the agent's work is at hand, is a violation: `subprocess` with the agent's code, `exec` and
`eval` of an answer, `pickle.loads`, an import of its file, a database whose path the agent wrote, a query that it wrote on a database file of the host, `open` of a path that the agent wrote in its sandbox. Data
files of the environment are its own. In the source, such calls with arguments that are not constant are found where no rollout reaches them.

Why: The sandbox is there so that what a model writes cannot reach the trainer. A verifier that runs the agent's code on the host gives it the trainer's
files, keys and network, and a policy that is rewarded for whatever works will use them. A host file of the same name is another file than the agent's:
the reward then judges the wrong work.

Fix: Run the check in the sandbox, by `ctx.terminal`, and read files by `ctx.read_file`. Parse answers with `ast.literal_eval`, `json.loads` or a
parser of your own. For code, use `environments.verification`, which runs a check on copies in a fresh directory.

Source: CPython's audit events (PEP 578).
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.play.journal import HostUsed
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import Call, ClassSource, finding_at, reach_of

_RUNS = frozenset(
    {"exec", "eval", "os.system", "os.popen", "runpy.run_path", "importlib.import_module", "__import__", "marshal.loads"}
    | {f"{module}.{name}" for module in ("pickle", "dill", "cloudpickle") for name in ("load", "loads")}
    | {"yaml.unsafe_load", "yaml.unsafe_load_all", "joblib.load"}
    | {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput", "Popen")}
    | {f"asyncio.create_subprocess_{kind}" for kind in ("exec", "shell")}
)
SCENARIOS = ("happy", "silent", "evaluate")


def static(source: ClassSource) -> Verdict:
    """Look for calls in the reward that run what they are given."""
    findings = [
        finding_at(call.function, call.node, f"{call.dotted} runs on the host what {call.function.name} gives it")
        for call in host_calls(source)
        if not _is_constant(call)
    ]
    return Verdict.of_source(findings, "nothing that the reward leads to runs what it is given")


def host_calls(source: ClassSource) -> list[Call]:
    """Return the calls that the reward leads to and that run something on the host."""
    return [call for call in reach_of(source).calls_where(lambda _: True, "compute_reward") if call.dotted in _RUNS]


def _is_constant(call: Call) -> bool:
    """Whether the first argument, and all that it holds, is written down."""
    given = call.node.args[0] if call.node.args else None
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    return all(isinstance(part, ast.Constant) or (part is not None and ast.unparse(part) == "sys.executable") for part in parts)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what rewards used on the host."""
    if missing := evidence.without_rewards(*SCENARIOS):
        return missing
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    findings = [
        finding_in(scenario.name, used.place, f"{used.place.function} {used.what} with the agent's work: {used.value!r}")
        for scenario in ran
        for used in scenario.of(HostUsed)
    ]
    return Verdict.of(one_per_place(findings), f"no reward of {len(ran)} scenarios used the host with the agent's work")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))

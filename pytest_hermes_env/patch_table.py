"""Every place where the test kit replaces something that belongs to Python, a library or the code under test.

`PATCHES` lists them: what is replaced, what the replacement does, why, and for how long. docs/reference/patches.md shows the same
table, which ``python -m pytest_hermes_env.patch_table`` prints.

Place in the flow: `patches` does nothing that is not listed here. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

_CONTRACT_RUN = "while the scenarios of a contract run are played"


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One row of the table. ``targets`` are dotted names; a name that begins with a class is looked up on the class or object
    that the caller passes as ``owner``, because it depends on the environment under test.
    """

    targets: tuple[str, ...]
    does: str
    why: str
    lasts: str


PATCHES: tuple[Patch, ...] = (
    Patch(
        targets=(
            "socket.socket.bind",
            "socket.socket.connect",
            "socket.socket.connect_ex",
            "socket.socket.sendto",
            "socket.socket.sendmsg",
            "socket.getaddrinfo",
            "socket.gethostbyname",
            "socket.gethostbyname_ex",
            "socket.getnameinfo",
        ),
        does="refuse the names of other hosts, resolve those below localhost on this machine, note the addresses of allowed hosts",
        why="Python resolves a name before its audit event, and the resolver asks a DNS server; an allowed host is reached by its address",
        lasts="during a test that uses the kit; during the scenario `setup_offline`; while `--hermes-env` imports",
    ),
    Patch(
        targets=("sys.addaudithook",),
        does="refuse hosts other than this machine and the allowed ones, before Python connects, sends or resolves",
        why="tests must not depend on a network; a hook sees every thread, and functions that were imported before the test",
        lasts="as above, and for threads that a test started as long as they live; Python keeps the hook itself, idle, to the end",
    ),
    Patch(
        targets=(
            "huggingface_hub.constants.HF_HUB_OFFLINE",
            "huggingface_hub.constants.HF_HUB_CACHE",
            "huggingface_hub.constants.HUGGINGFACE_HUB_CACHE",
            "datasets.config.HF_HUB_OFFLINE",
            "datasets.config.HF_DATASETS_OFFLINE",
            "datasets.config.HF_DATASETS_CACHE",
            "datasets.config.HF_MODULES_CACHE",
        ),
        does="switch the dataset hub off; in `setup_offline` and with `hub` the caches are empty directories",
        why="the libraries read these constants, not the variables, once they are imported",
        lasts="during a test that is kept from the network; during the scenario `setup_offline`; during a test that has `hub`",
    ),
    Patch(
        targets=(
            "datasets.load.load_dataset_builder",
            "datasets.load_dataset_builder",
            "datasets.inspect.load_dataset_builder",
        ),
        does="give the library a local directory in place of a repository's name",
        why="every `load_dataset` passes it, however the environment imported it",
        lasts="during a test that has `hub`",
    ),
    Patch(
        targets=(
            "httpx.AsyncHTTPTransport.handle_async_request",
            "httpx.HTTPTransport.handle_request",
            "aiohttp.ClientSession._request",
        ),
        does="record or replay requests to models; in live mode count them; answer the routes of `mock_http`; refuse connections",
        why="openai clients use httpx, atroposlib's token-mode servers use aiohttp",
        lasts="while a cassette is recorded or replayed; during a live test; during a test that has `mock_http`; while a server "
        "with a fault plan runs",
    ),
    Patch(
        targets=("requests.adapters.HTTPAdapter.send",),
        does="count requests to models",
        why="a judge that is called through requests spends the same budget",
        lasts="during a live test",
    ),
    Patch(
        targets=("tenacity.BaseRetrying.iter", "tenacity.AsyncRetrying.iter"),
        does="raise a cassette miss at once instead of retrying",
        why="atroposlib retries in three layers with growing pauses, and a missing recording stays missing",
        lasts="while a cassette is recorded or replayed",
    ),
    Patch(
        targets=("APIServer.openai", "APIServer.*"),
        does="close connections with the event loop, send requests in-process where asked, fail at the first failure, count calls",
        why="an unclosed client fails the next test under -W error, and retries turn one failing call into 27 requests",
        lasts="for the life of the server object, which belongs to one environment that the kit built",
    ),
    Patch(
        targets=("wandb.log", "wandb.init", "Run.log"),
        does="collect metrics; with `wandb_capture`, runs are in wandb's disabled mode, and one is started if there is none",
        why="rules and tests read what was logged",
        lasts=f"{_CONTRACT_RUN}; during a test that has `wandb_capture`",
    ),
    Patch(
        targets=(
            "time.time",
            "time.time_ns",
            "time.localtime",
            "time.gmtime",
            "datetime.datetime",
        ),
        does="show another day and another time of day",
        why="a reward must not depend on the clock",
        lasts="in the process of its own of the scenario `reward_probes_elsewhere`",
    ),
    Patch(
        targets=("atroposlib.api.server.app.state",),
        does="give the app of run-api an empty state",
        why="the app keeps its queue and its environments in the module, and every test starts with none",
        lasts="while `run_api` runs in this process",
    ),
    Patch(
        targets=("atroposlib.envs.base.asyncio", "Config.rollout_server_url"),
        does="shorten the pauses of serve's main loop, and name the run-api of the test",
        why="it waits 5 s for other environments before its first step",
        lasts="inside `train_steps`",
    ),
    Patch(
        targets=("HermesAgentLoop.run", "HermesAgentLoop.server"),
        does="note start, end and arguments of each loop, count its turns, and fail or hang where the scenario asks for it",
        why="a tool call is assigned to the agent or the verifier, and to its rollout, by the loop that is running",
        lasts=f"{_CONTRACT_RUN}; while an environment built on a sandbox lives; while a cassette is recorded or replayed",
    ),
    Patch(
        targets=("ToolContext.__init__", "ToolContext.cleanup"),
        does="note each context and its cleanup",
        why="rules check that every context is released",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=(
            "HermesAgentBaseEnv.collect_trajectory",
            "HermesAgentBaseEnv.compute_reward",
            "HermesAgentBaseEnv.evaluate_items",
            "HermesAgentBaseEnv.evaluate_log",
        ),
        does="note items, rewards and evaluations, and fail or hang where the scenario asks for it",
        why="recorded calls belong to rollouts, and rules read rewards with their inputs",
        lasts=f"{_CONTRACT_RUN} (on the instance); while a cassette is recorded or replayed (on the class)",
    ),
    Patch(
        targets=("HermesAgentBaseEnv.get_eval_items",),
        does="return three of the held-out items",
        why="after one full evaluation, the evaluations in which something fails need no more",
        lasts="while such a scenario of a contract run is played (on the instance)",
    ),
    Patch(
        targets=("TerminalWriter.write", "_pytest.setuponly.saferepr", "LogXML.add_global_property"),
        does="redact what pytest's terminal writer prints, what `--setup-show` cuts, and the properties of the suite in JUnit's file",
        why="these reach a terminal or a file past the reports of tests, and pytest has no hook for them",
        lasts="from the end of the collection to the end of a run in which a test uses the kit",
    ),
    Patch(
        targets=("ToolRegistry.dispatch",),
        does="let the sandbox answer tool calls, and note them",
        why="every tool call of every layer passes this method of hermes-agent's registry",
        lasts="while a sandbox fixture, a contract run or a cassette is open",
    ),
    Patch(
        targets=("ToolEntry.check_fn",),
        does="offer tools whose key, browser or terminal is absent, and withhold others",
        why="the sandbox answers for them, so the model must see the same tools on every machine",
        lasts="while an environment built on a sandbox lives",
    ),
    Patch(
        targets=(
            "agent.lsp.get_service",
            "tools.environments.local._read_terminal_shell_init_config",
            "tools.file_operations.ShellFileOperations._has_command",
            "tools.terminal_tool._sudo_nopasswd_works",
        ),
        does="return no language servers, no shell start-up files, no optional programs such as ripgrep, and no sudo",
        why="they would run outside of the confined shell, and a rollout must not depend on what a machine has",
        lasts="while a local sandbox is open",
    ),
    Patch(
        targets=("os._exit", "asyncio.base_events.BaseEventLoop.stop"),
        does="note the line that calls them, and do what they do",
        why="a rule names the line where an environment ended its process or its event loop",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("os._Environ.__setitem__", "os._Environ.__delitem__", "os.chdir"),
        does="note changes made by the environment's own code",
        why="rules report variables and working directories that are not restored",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=(
            "tempfile.mkdtemp",
            "threading.Thread.start",
            "subprocess.Popen.__init__",
            "os.fork",
            "aiohttp.ClientSession.__init__",
            "httpx.AsyncClient.__init__",
            "httpx.Client.__init__",
        ),
        does="note what the environment's own code creates; find no space for the directory of a sandbox",
        why="rules report leaked directories, threads, processes and clients with the line that created them; a disk may be full",
        lasts=f"{_CONTRACT_RUN}; while a tool seam with a fault plan is open",
    ),
    Patch(
        targets=("openai.resources.chat.completions.completions.async_maybe_transform",),
        does="return a request of plain JSON values as it is, without what was not given",
        why="openai compares every value with the types of all messages, which changes no such request and is a third of a rollout's CPU time",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("ssl.create_default_context",),
        does="return one context for equal arguments",
        why="reading the certificate authorities takes longer than a scripted rollout",
        lasts=f"{_CONTRACT_RUN}; while `make_env` builds an environment on a mock model",
    ),
)


def as_markdown() -> str:
    """Return the table of docs/reference/patches.md."""
    rows = [
        f"| {'<br>'.join(f'`{target}`' for target in patch.targets)} | {patch.does} | {patch.why} | {patch.lasts} |"
        for patch in PATCHES
    ]
    return "\n".join(("| What is replaced | What the replacement does | Why | How long |", "|---|---|---|---|", *rows))


if __name__ == "__main__":
    print(as_markdown())  # noqa: T201 - the table of the page

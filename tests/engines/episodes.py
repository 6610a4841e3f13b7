"""Runs in the engine's Python: plays episodes on an env server over TCP, as prime-rl's orchestrator does. Reads JSON, prints JSON lines."""

import asyncio
import json
import multiprocessing
import sys

import verifiers.v1 as vf
from verifiers.v1.serve import EnvClient, serve_env


async def main(plan: dict) -> None:
    """Serve the environment in a process of its own, and play ``plan["episodes"]``; cancel them when a line comes in."""
    config = {"taskset": {"id": "hermes-env", "num_tasks": plan["tasks"]}}
    if "harness" in plan:
        config["agent"] = {"harness": {"id": "hermes-env"} | plan["harness"]}
    queue = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(
        target=serve_env,
        kwargs={"max_workers": 1, "address": "tcp://127.0.0.1:0", "address_queue": queue, "config_data": config},
    )
    server.start()
    client = EnvClient(queue.get(timeout=120))
    await client.wait_for_server_startup()
    tasks = list(vf.load_environment(vf.resolve_env_config(config)).taskset)
    model = vf.EvalClientConfig(base_url=plan["endpoint"], api_key_var="POLICY_KEY")
    if plan.get("tokenizer"):
        renderer = {"name": plan["renderer"], "enable_thinking": False}
        model = vf.TrainClientConfig(
            base_url=plan["endpoint"], api_key_var="POLICY_KEY", renderer=renderer, renderer_model_name=plan["tokenizer"]
        )

    async def episode(number: int) -> None:
        data = tasks[number % len(tasks)].data.model_dump(mode="json")
        record = await client.run(client=model, model="mock-model", sampling=vf.SamplingConfig(temperature=1.0), task_data=data)
        (trace,) = record.traces
        branches = [
            {name: getattr(branch, name) for name in ("token_ids", "sampled_mask", "logprobs")} for branch in trace.branches
        ]
        errors = [[error.type, error.message] for error in trace.errors]
        reward = trace.rewards.get("reward")
        found = {"reward": reward and reward.score, "ok": trace.ok, "errors": errors, "branches": branches}
        print(json.dumps(found | {"task": data["idx"]}, default=lambda array: array.tolist()), flush=True)

    try:
        playing = [asyncio.create_task(episode(number)) for number in range(plan["episodes"])]
        if plan.get("cancels"):
            await asyncio.to_thread(sys.stdin.readline)
            for one in playing:
                one.cancel()
        await asyncio.gather(*playing, return_exceptions=bool(plan.get("cancels")))
        await client.close()
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.stdin.readline())))

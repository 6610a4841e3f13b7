"""What is observed while an environment runs, and where it is written down.

| module | observes | writes |
|---|---|---|
| `layer` | ToolContext and HermesAgentLoop of the layer under test | ContextOpened, Cleaned, LoopStarted, LoopEnded, the turn of each tool call |
| `environment` | compute_reward, collect_trajectory and evaluate_log of one instance | Reward, UnknownRead, ItemScored, EvaluationLogged |
| `process` | variables, the working directory, directories, threads, processes, clients | SurroundingChanged; `leaked` returns the rest |
| `services` | wandb.log, warnings | Journal.log, Journal.warnings |

Two observers live where they take part: the tools' in `play.tool_backend` (tool calls, Crossed), the event loop's in
`play.blocking` (Blocked). All of them write into the journal that is current; without one they do nothing.
"""

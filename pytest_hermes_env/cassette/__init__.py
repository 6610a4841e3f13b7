"""WHAT WAS RECORDED: cassettes with the model calls and tool calls of rollouts, their recording and replay."""

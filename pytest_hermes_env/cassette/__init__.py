"""WHAT WAS RECORDED: cassettes, which hold the model calls and tool calls of rollouts, and play them again."""

"""``python -m environments.agentic_opd_env``: the command line of AgenticOPDEnv."""

from environments.agentic_opd_env.agentic_opd_env import AgenticOPDEnv

AgenticOPDEnv.cli()

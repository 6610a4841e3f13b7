"""hermes' own tools, answered on the in-memory machine of a fake sandbox with hermes' own result shapes.

One file per tool or family; each names the file of hermes-agent 0.19 that it follows. These tools do not mask secrets, ask for
approval, or run language servers and external linters: hermes does that for the machine around it.
"""

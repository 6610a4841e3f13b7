"""hermes' own tools, answered on the in-memory machine of a fake sandbox with hermes' own result shapes.

One file per tool or family; each names the file of hermes-agent 0.19 that it follows. Secrets are not masked here, approvals are
not asked for, and language servers and linters that are programs do not run: what hermes does about the machine around it.
"""

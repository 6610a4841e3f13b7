"""Reads and runs the command lines that an in-memory machine answers exactly as bash does."""

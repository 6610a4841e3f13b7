"""Declared cases: transcripts of known quality, written in YAML or Python, found next to a class or given by a test, and played."""

"""Declared cases: transcripts of known quality, written in YAML next to a class or in Python by a test, and played."""

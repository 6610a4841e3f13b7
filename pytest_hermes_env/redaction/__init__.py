"""Finds secrets in texts and replaces them: the only room that does. Cassettes, reports, live mode, logs and errors ask it.

It stands below all of them, beside nothing, because an error's text is cut (and must be redacted before) in the lowest rooms.
"""

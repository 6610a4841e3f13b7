"""Finds secrets in texts and replaces them: the only room that does. Cassettes, reports, live mode, logs and errors ask it.

It is below all of them, because the text of an error is cut, and must be redacted before, in the lowest rooms.

`redactor` replaces secrets in texts and JSON values, `shown_text` does so for what is shown, and `file_check` looks at a text once more
before it is written. What they guarantee is the table in docs/reference/secrets.md.
"""

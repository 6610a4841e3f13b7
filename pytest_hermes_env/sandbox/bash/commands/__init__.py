"""The commands that an in-memory machine answers exactly as GNU's do."""

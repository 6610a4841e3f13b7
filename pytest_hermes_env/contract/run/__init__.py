"""The contract as pytest runs it: items, decorated tests, and the end of the run.

`rows` is loaded by the plugin in every run, so nothing is imported here.
"""

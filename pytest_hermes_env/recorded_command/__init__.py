"""RECORD AND REPLAY A COMMAND: ``hermes-env record -- python my_env.py evaluate``, and ``hermes-env replay`` of the same.

command (the user's process) · run (what both processes know) · child (the command's process) · startup (what Python runs at the
start of the command)
"""

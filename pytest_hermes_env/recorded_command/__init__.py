"""RECORD AND REPLAY A COMMAND: ``hermes-env record -- python my_env.py evaluate``, and ``hermes-env replay`` of the same.

record_and_replay (the user's process) · process_settings (files that both processes share) · child (the command's process) · startup
(run by Python at the start of the command)
"""

"""Which class a target of the command names."""

from __future__ import annotations

import os

from pytest_hermes_env.errors import BadTarget
from pytest_hermes_env.source import ClassSource, SourceTree, read_class, read_classes, without_abstract_bases


def chosen_class(target: str) -> ClassSource:
    """Return the environment class that ``path.py`` or ``path.py:Class`` names.

    Raises: no such file, it does not parse, it has no environment, or several and none is named → BadTarget.
    """
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target):
        path, name = target, ""
    if not os.path.isfile(path):
        raise BadTarget(f"{path} is not a file: give path/to/my_env.py or path/to/my_env.py:MyEnv")
    tree = SourceTree()
    reading = read_classes(path, tree)
    if reading.problem is not None:
        raise BadTarget(f"{path}:{reading.problem.line}: {reading.problem.message}")
    if name:
        source = read_class(path, name, tree)
        if source is None:
            known = ", ".join(item.name for item in reading.classes) or "none"
            raise BadTarget(f"{path} has no class {name}; its environments are: {known}")
        return source
    (whole,) = without_abstract_bases([reading])
    if len(whole.classes) != 1:
        known = ", ".join(item.name for item in whole.classes) or "none"
        raise BadTarget(f"{path} has {len(whole.classes)} environments ({known}): name one as {path}:CLASS")
    return whole.classes[0]

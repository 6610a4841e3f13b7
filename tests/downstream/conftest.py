"""The projects are tested by their own pytest, not by this one."""

collect_ignore = ["projects"]

"""``todo``: the session's list, as hermes keeps it."""

from __future__ import annotations


def item(identity, content="do it", status="pending"):
    return {"id": identity, "content": content, "status": status}


def test_list_is_written_and_read(sandbox, ask):
    """With a summary."""
    items = [item("1"), item("2", status="completed"), item("3", status="in_progress"), item("4", status="cancelled")]

    results = [ask(sandbox, "todo", todos=items), ask(sandbox, "todo")]

    summary = {"total": 4, "pending": 1, "in_progress": 1, "completed": 1, "cancelled": 1}
    assert results == [{"todos": items, "summary": summary}] * 2


def test_list_is_replaced_or_merged(sandbox, ask):
    """Merged by id: only what is given changes, what is new goes to the end, what has no id is passed over."""
    ask(sandbox, "todo", todos=[item("old")])
    ask(sandbox, "todo", todos=[item("1", "one"), item("2", "two")])

    changes = [
        {"id": "2", "status": "COMPLETED"},
        {"id": "1", "content": "uno", "status": "nonsense"},
        item("3"),
        {"content": "x"},
    ]
    result = ask(sandbox, "todo", todos=changes, merge=True)

    assert result["todos"] == [item("1", "uno"), item("2", "two", "completed"), item("3")]
    assert ask(sandbox, "todo", todos=[7], merge=True) == {
        "error": "[TOOL_ERROR] Tool execution failed: AttributeError: 'int' object has no attribute 'get'"
    }
    assert ask(sandbox, "todo")["todos"] == result["todos"]

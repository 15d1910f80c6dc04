"""What the stand-in does when somebody new asks for a program: writes it with its tests, runs them, and says how that
went."""

from __future__ import annotations

from typing import Any

QUESTION = "Write a todo list program in Python with tests and run them"
FILES = {
    "todo.py": '''class TodoList:
    """Things to do, in order."""

    def __init__(self):
        self.items = []

    def add(self, text):
        self.items.append(text)

    def done(self, text):
        self.items.remove(text)
''',
    "test_todo.py": """import unittest

from todo import TodoList


class TodoListTest(unittest.TestCase):
    def test_what_is_added_is_there_until_it_is_done(self):
        todo = TodoList()
        todo.add("milk")
        self.assertEqual(todo.items, ["milk"])
        todo.done("milk")
        self.assertEqual(todo.items, [])
""",
}
RUN = "python3 -B -m unittest -v test_todo"
TURN: dict[str, Any] = {
    "user": "todo list program",
    "replies": [
        {
            "thinking": "The program and its tests first.",
            "tool_calls": [
                {"name": "write_file", "arguments": {"path": path, "content": text}} for path, text in FILES.items()
            ],
        },
        {"thinking": "Do they pass?", "tool_calls": [{"name": "shell_exec", "arguments": {"command": RUN}}]},
        {"content": "todo.py and test_todo.py are written. The tests say: {result:3}"},
    ],
}

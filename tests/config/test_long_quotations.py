"""Errors about files: however long what is in a file is, they quote a little of it."""

import json
import re

import pytest

from tests.cli.test_cli import parley as command

LONG = "x" * 3_000_000
QUESTION = {"question": "Which?", "A": "1", "B": "2", "C": "3", "D": "4", "answer": "A"}
ENTRY = {"description": "Count."}
HEAD = "kind: experiment\ntask: public_goods\n"
FILES = {
    "an id that occurs twice": ("d.jsonl", [{**QUESTION, "id": LONG}] * 2),
    "an answer": ("d.jsonl", [{**QUESTION, "answer": LONG}]),
    "the name of a column": ("d.jsonl", [{LONG: "a", "b": "c"}]),
    "many columns": ("d.jsonl", [dict.fromkeys(map(str, range(3_000)), "a")]),
    "a value of the wrong type": ("d.jsonl", [{**QUESTION, "question": [LONG]}]),
    "a pattern": ("d.jsonl", [{**ENTRY, "evaluation": {"match": {"regex": f"({LONG}"}}}]),
    "a script": ("d.jsonl", [{**ENTRY, "evaluation": {"check": [{"run": LONG}]}}]),
    "words in quotes": ("d.jsonl", [{**QUESTION, "id": "x x' " * 600_000}] * 2),
    "a key": ("x.yaml", f"{HEAD}{LONG}: 1\n"),
    "a task": ("x.yaml", f"kind: experiment\ntask: {LONG}\n"),
    "a kind": ("x.yaml", f"kind: {LONG}\n"),
    "an alias": ("x.yaml", f"{HEAD}models: {{a: bot/random}}\ncontestants: [{LONG}]\n"),
    "a model": ("x.yaml", f"{HEAD}models: {{a: {LONG}/x}}\n"),
    "a parameter": ("x.yaml", f"{HEAD}set: {{{LONG}: 1}}\n"),
    "the value of a parameter": ("x.yaml", f"{HEAD}set: {{rounds: {LONG}}}\n"),
    "a path": ("x.yaml", f"{HEAD}prompts: {{public_goods.turn: ../{LONG}}}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_an_error_quotes_little_of_a_file(tmp_path, name):
    file, content = FILES[name]
    if file == "x.yaml":
        (tmp_path / file).write_text(content)
        words = "run", file, "--yes", "-m", "bot/random", "-m", "b=bot/random"
    else:
        (tmp_path / file).write_text("".join(f"{json.dumps(row)}\n" for row in content))
        words = "datasets", "check", file
    said = command(*words, cwd=tmp_path, code=2)
    assert len(said.err) < 3000
    assert max(map(len, re.findall(r"(?:x+[ ']*)+", said.err)), default=0) <= 200

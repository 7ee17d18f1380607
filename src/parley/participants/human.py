"""A person at the terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

from parley.errors import Refused, UsageError, unknown_name
from parley.match.protocol import Call
from parley.match.threads import in_daemon_thread
from parley.rules.pool import View
from parley.rules.task import Task

TERMINAL = threading.Lock()  # there is only one, however many people share it


class Human:
    """Shows what is new in a view and reads lines until an empty one; one question at a time."""

    sees_item: bool = False

    async def reply(self, view: View, call: Call) -> str:
        return await in_daemon_thread(converse, view)

    async def close(self) -> None:
        pass


def converse(view: View) -> str:
    """Show the last message to the seat, and read the person's answer."""
    with TERMINAL:
        print(
            f"\n── {view.seat}, round {view.round} " + "─" * 30,
            *show_examples(view),
            view.text,
            sep="\n",
            file=sys.stderr,
        )
        print("Your answer (end it with an empty line):", file=sys.stderr, flush=True)
        lines: list[str] = []
        try:
            while (line := sys.stdin.readline()) and (line.strip() or not lines):
                if line.strip():
                    lines.append(line)
        # no terminal, a closed one, text in another encoding
        except (AttributeError, OSError, ValueError) as wrong:
            raise Refused(f"cannot read from the terminal: {wrong}") from None
    if not lines:
        raise Refused("no answer from the person: the input has ended")
    return "".join(lines).strip()


def show_examples(view: View) -> list[str]:
    """The demonstrations, shown once with the question that they belong to."""
    if view.examples is None or view.attempt or len(view) != view.examples[0] + 1:
        return []
    shown = [
        f"Example {number}\n{example.question}\n\nAnswer: {example.answer}\n"
        for number, example in enumerate(view.examples[1], 1)
    ]
    return [*shown, "Now your question:"]


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Human:
    if name != "terminal":
        raise UsageError(f"human/{name} does not exist: use human/terminal")
    if options:
        raise unknown_name("option of human/terminal:", next(iter(options)), ())
    return Human()

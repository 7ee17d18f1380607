"""A person: at the terminal (`human/terminal`) or in a browser (`human/web`)."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from parley.errors import Refused, UsageError, unknown_name
from parley.match.protocol import Call, Reply
from parley.match.threads import in_daemon_thread
from parley.participants._desk import Chair
from parley.participants._form import (
    AnswerField,
    AnswerForm,
    hide_format,
    make_form,
    show_example,
)
from parley.rules.parameters import build_dataclass
from parley.rules.pool import View
from parley.rules.quotations import split_quotations
from parley.rules.task import Task

TERMINAL = threading.Lock()  # there is only one, however many people share it
QUOTED = "  │ "  # before each line that somebody else said
END_OF_CODE = "."  # alone on a line
LOOK_SECONDS = 0.5  # how long a waiting question takes to notice that the run stops


@dataclass
class WebOptions:
    """The options of `human/web`."""

    deadline: float | None = None  # seconds for an answer


class WebPerson:
    """Asks through a page in the browser. The run puts the person on a chair before it begins."""

    sees_item: bool = False

    def __init__(self, options: WebOptions) -> None:
        self._deadline = options.deadline
        self.chair: Chair | None = None
        self._turn = asyncio.Lock()  # one question at a time, also if the person has two seats

    async def reply(self, view: View, call: Call) -> Reply:
        if self.chair is None:
            raise Refused("nobody serves the page for human/web: start the run with `parley run`")
        async with self._turn:
            call.check_running()
            began = time.monotonic()
            question = self.chair.ask(view, self._deadline)
            try:
                while not question.answer.done():
                    left = question.seconds_left()
                    if left is not None and left <= 0:
                        question.expire()
                        break
                    wait = LOOK_SECONDS if left is None else min(LOOK_SECONDS, left)
                    await asyncio.wait({question.answer}, timeout=wait)
                    if not question.answer.done():
                        call.check_running()
            except BaseException:
                self.chair.withdraw(question)
                raise
            return Reply(question.answer.result(), latency=time.monotonic() - began)

    async def close(self) -> None:
        pass


class Human:
    """Shows what is new in a view and asks for each field of the answer; one question at a time."""

    sees_item: bool = False

    async def reply(self, view: View, call: Call) -> str:
        return await in_daemon_thread(converse, view)

    async def close(self) -> None:
        pass


def converse(view: View) -> str:
    """Show the last message to the seat, and ask for the person's answer field by field."""
    form = make_form(view.expect, view.free)
    with TERMINAL:
        print(
            f"\n── {view.seat}, round {view.round} " + "─" * 30,
            *show_examples(view),
            *show_message(hide_format(view.text, view.expect.hint if form.replaces_hint else "")),
            "",
            sep="\n",
            file=sys.stderr,
        )
        try:
            return fill_in(form)
        # no terminal, a closed one, text in another encoding
        except (AttributeError, OSError, ValueError) as wrong:
            raise Refused(f"your answer cannot be read from the terminal: {wrong}") from None


def show_message(text: str) -> list[str]:
    """A message without the marks around quotations: what others said is indented."""
    shown = []
    for part in split_quotations(text):
        said = indent(part.text, QUOTED, lambda line: True)
        shown.append(f"{part.said_by}:\n{said}" if part.said_by else part.text)
    return shown


def fill_in(form: AnswerForm) -> str:
    """Ask for each field, and make the reply."""
    given: dict[str, str] = {}
    group = ""
    for field in form.fields:
        if field.group != group:
            group = field.group
            print(f"{group}:", file=sys.stderr)
        entered = ask_field(field)
        if entered is None and (field.required or not given):
            raise Refused("there is no answer, because the input has ended")
        given[field.name] = entered or ""
    return form.write(given)


def ask_field(field: AnswerField) -> str | None:
    """Read one field; None if the input has ended."""
    print(describe_field(field), file=sys.stderr, flush=True)
    end = END_OF_CODE if field.kind == "code" else ""
    lines: list[str] = []
    while line := sys.stdin.readline():
        words = line.rstrip("\r\n")
        if words.strip() == end and (lines or not field.required):
            break
        if lines or words.strip():
            lines.append(words)
        if lines and not takes_lines(field):
            break
    else:
        if not lines:
            return None
    entered = "\n".join(lines)
    return pick_option(field, entered.strip()) if field.kind == "choice" else entered.strip("\n")


def takes_lines(field: AnswerField) -> bool:
    """Whether an entry may have several lines."""
    return field.kind == "code" or (field.kind == "text" and field.required)


def describe_field(field: AnswerField) -> str:
    """What to enter, in words."""
    told = ", ".join(filter(None, [field.label, field.bounds]))
    if field.kind == "choice":
        numbered = [f"  {number}  {label}" for number, (_, label) in enumerate(field.options, 1)]
        return "\n".join([f"{told} (enter the number of your choice):", *numbered])
    how = [field.help.rstrip(".")] if field.help else []
    if field.kind == "code":
        how.append(f"end it with a line that has only {END_OF_CODE!r}")
    elif takes_lines(field):
        how.append("end it with an empty line")
    elif not field.required:
        how.append("press Enter to leave it empty")
    return f"{told} ({'; '.join(how)}):" if how else f"{told}:"


def pick_option(field: AnswerField, entered: str) -> str:
    """The option by its number or its word; other text stays as it is."""
    if entered.isdecimal() and 1 <= int(entered) <= len(field.options):
        numbered = field.options[int(entered) - 1][0]
        # an option that is itself a number comes first
        return next((value for value, _ in field.options if value == entered), numbered)
    folded = entered.casefold()
    return next((value for value, _ in field.options if value.casefold() == folded), entered)


def show_examples(view: View) -> list[str]:
    """The demonstrations, shown once with the question that they belong to."""
    if view.examples is None or view.attempt or len(view) != view.examples[0] + 1:
        return []
    shown = [
        show_example(number, example.question, example.answer) + "\n"
        for number, example in enumerate(view.examples[1], 1)
    ]
    return [*shown, "Now your question:"]


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Human | WebPerson:
    if name == "web":
        chosen = build_dataclass(WebOptions, options, "option of", "human/web")
        if chosen.deadline is not None and not chosen.deadline > 0:
            raise UsageError(
                f"deadline of human/web must be more than 0 seconds, not {chosen.deadline:g}"
            )
        return WebPerson(chosen)
    if name != "terminal":
        raise UsageError(f"human/{name} does not exist: use human/web or human/terminal")
    if options:
        raise unknown_name("option of human/terminal:", next(iter(options)), ())
    return Human()

"""`parley new`: a starting point for a task."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

import click

from parley.cli.invocation import command_name
from parley.cli.progress_line import say
from parley.errors import UsageError


@click.command()
@click.argument("file", metavar="FILE.py", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """Write FILE.py, a starting point for a task of your own.

    It is a small game with comments: rule, prompts, a metric and a bot. It can be played at once.
    A file that exists is not changed.

    \b
    parley new my_game.py
    parley check my_game.py
    """
    if not re.fullmatch(r"[\w.-]+\.py", file.name):
        raise UsageError(
            f"{file} cannot be the file of a task: choose a name that ends with .py and has only "
            "letters, digits, '_', '-' and '.', such as my_game.py"
        )
    try:
        with file.open("x", encoding="utf-8") as to:
            to.write(write_task(file.name))
    except FileExistsError:
        raise UsageError(f"{file} exists already: choose another name") from None
    except OSError as wrong:
        raise UsageError(f"{file} cannot be written: {wrong.strerror}") from None
    place = shlex.quote(str(file))
    say(f"written to {place}; check it with: {command_name()} check {place}")
    say(f"play it with: {command_name()} run {place} -m bot/thinker -m bot/random")


def write_task(name: str) -> str:
    """The starting point as a file of this name. Its class is named after the file."""
    text = files("parley.cli").joinpath("starting_point.py").read_text(encoding="utf-8")
    words = re.findall(r"[^\W_]+", name.removesuffix(".py"))
    made = "".join(word[0].upper() + word[1:] for word in words)
    taken = {*re.findall(r"\w+", text)} - {"MyGame"}
    if iskeyword(made) or made in taken or not made.isidentifier():
        made = f"My{made}"
    return text.replace("MyGame", made if made.isidentifier() else "MyGame").replace(
        "my_game.py", name
    )

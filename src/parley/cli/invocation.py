"""How this command was called, so that commands printed for the user work as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """What to type for this command: `parley` where the shell finds this very program, else the
    path or the `python -m parley` that it was called by."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{name_program(sys.executable)} -m parley"
    return name_program(called)


def allowing_words() -> list[str]:
    """The `--allow-…` flags of this command, as they would be typed again."""
    words, found = sys.argv[1:], []
    for number, word in enumerate(words):
        if word.startswith(("--allow-host", "--allow-path", "--allow-env")):
            found += [word] if "=" in word else words[number : number + 2]
    return [shlex.quote(word) for word in found]


def name_program(called: str) -> str:
    """A program by its name, where the shell finds it by that; else by its path."""
    found = shutil.which(Path(called).name)
    if not os.path.dirname(called) or (found and is_same_file(found, called)):
        return Path(called).name
    return shlex.quote(called)


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one place; links are not followed, since a virtual environment's
    python is one."""
    return os.path.abspath(one) == os.path.abspath(other)
